"""What a plug-in refused last: the latest of each pod, shared among namespaces."""

from extender.explain import recent_refusals


def put(recent, *call):
    recent.put(recent_refusals.RecentRefusal(*call))


def test_the_latest_of_each_pod_is_kept():
    recent = recent_refusals.RecentRefusals()
    put(recent, "a/p", 1.0, 5, {("LoadAware", "busy"): 5})
    put(recent, "a/q", 2.0, 5, {("LoadAware", "busy"): 3, ("BatchFit", "full"): 2})
    put(recent, "a/p", 3.0, 4, {("LoadAware", "stale"): 1, ("LoadAware", "busy"): 2})
    assert [one.document("LoadAware") for one in recent.of("LoadAware")] == [
        {
            "pod": "a/p",
            "at": "1970-01-01T00:00:03.000000Z",
            "nodesAsked": 4,
            "nodesRefused": {"stale": 1, "busy": 2},
        },
        {
            "pod": "a/q",
            "at": "1970-01-01T00:00:02.000000Z",
            "nodesAsked": 5,
            "nodesRefused": {"busy": 3},
        },
    ]
    assert [one.pod for one in recent.of("BatchFit")] == ["a/q"]
    assert recent.of("Reservation") == []


def test_no_namespace_takes_the_places_of_another():
    recent = recent_refusals.RecentRefusals()
    put(recent, "quiet/p", 0.0, 1, {("X", "no"): 1})
    for number in range(20):
        put(recent, f"loud/p{number}", float(number), 1, {("X", "no"): 1})
    assert [one.pod for one in recent.of("X", most=4)] == [
        "loud/p19",
        "loud/p18",
        "loud/p17",
        "quiet/p",
    ]
