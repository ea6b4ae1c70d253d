"""Discovery, lists, tables and watches over HTTPS, beyond what the scenarios cover."""

import pytest

from simulator.apiserver import apiserver

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def config_map(name, **labels):
    return {"metadata": {"name": name, "labels": labels}}


async def test_callers_without_a_token_see_health_and_version_only(server, connect):
    async with connect(server, token="") as anyone:
        assert (await anyone.call("GET", "/readyz")).body == "ok"
        assert (await anyone.call("GET", "/version")).body["minor"] == "32"
        answer = await anyone.call("GET", "/api/v1/pods")
        assert (answer.status, answer.body["reason"]) == (401, "Unauthorized")
    async with connect(server, token="wrong") as anyone:
        assert (await anyone.call("GET", "/readyz")).status == 401


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", "/api/v1/persistentvolumeclaims", "resource persistentvolumeclaims"),
        ("GET", "/api/v1/namespaces/default/pods/x/log", "subresource pods/log"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "subjectaccessreviews"),
        ("POST", "/api/v1/namespaces/default/limitranges", "enforcement of limitranges"),
        ("GET", "/api/v1/watch/pods", "deprecated /watch/ paths"),
        ("GET", "/metrics", "the path /metrics"),
        ("GET", "/apis/autoscaling/v2", "API group autoscaling"),
    ],
)
async def test_what_is_missing_is_refused_by_name(api, method, path, words):
    answer = await api.call(method, path, {} if method == "POST" else None)
    assert (answer.status, answer.body["reason"]) == (501, "NotImplemented")
    assert words in answer.message


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/apis/metrics.k8s.io/v1beta1", 404),
        ("GET", "/apis/example.com/v1/things", 404),
        ("GET", "/apis/scheduling.k8s.io/v1beta1/podgroups", 404),
        ("GET", "/api/v2", 404),
        ("POST", "/api/v1/namespaces/default/pods/x", 405),
        ("PUT", "/api/v1/nodes", 405),
        ("POST", "/api/v1/pods", 405),
        ("GET", "/api/v1/namespaces/default/pods/x/binding", 405),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("OPTIONS", "/api/v1/nodes", 405),
    ],
)
async def test_paths_and_verbs_that_do_not_exist(api, method, path, status):
    assert (await api.call(method, path)).status == status


async def test_both_forms_of_discovery_agree(api):
    groups = (await api.must("GET", "/apis"))["groups"]
    answer = await api.call("GET", "/apis", headers={"Accept": V2})
    assert answer.headers["Content-Type"] == V2
    aggregated = {item["metadata"]["name"]: item["versions"] for item in answer.body["items"]}
    assert sorted(aggregated) == [group["name"] for group in groups]
    for group in groups:
        for version in group["versions"]:
            listed = await api.must("GET", f"/apis/{version['groupVersion']}")
            names = [r["name"] for r in listed["resources"] if "/" not in r["name"]]
            (found,) = [v for v in aggregated[group["name"]] if v["version"] == version["version"]]
            assert [r["resource"] for r in found["resources"]] == names
    core = await api.call("GET", "/api", headers={"Accept": V2})
    pods = next(
        r for r in core.body["items"][0]["versions"][0]["resources"] if r["resource"] == "pods"
    )
    assert {s["subresource"] for s in pods["subresources"]} == {"binding", "eviction", "status"}


async def test_every_schema_that_is_announced_is_served(api):
    index = await api.must("GET", "/openapi/v3")
    assert {"api/v1", "apis/apps/v1"} <= index["paths"].keys()
    for entry in index["paths"].values():
        document = await api.must("GET", entry["serverRelativeURL"])
        assert document["paths"]
        for path in document["paths"].values():
            for operation in path.values():
                assert operation["x-kubernetes-group-version-kind"]["kind"]


async def test_the_two_views_of_events_show_one_set(api):
    core, new = (f"/{p}/namespaces/default/events" for p in ("api/v1", "apis/events.k8s.io/v1"))
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    body = {
        "metadata": {"name": "e"},
        "regarding": about,
        "note": "because",
        "reason": "Why",
        "type": "Warning",
        "reportingController": "koord",
        "deprecatedCount": 2,
    }
    made = await api.must("POST", new, body)
    assert (made["apiVersion"], made["note"]) == ("events.k8s.io/v1", "because")
    query = {"fieldSelector": "involvedObject.name=p,reason=Why,reportingComponent=koord"}
    (old,) = (await api.must("GET", core, params=query))["items"]
    assert (old["involvedObject"], old["message"], old["count"]) == (about, "because", 2)
    await api.must("PATCH", f"{core}/e", {"count": 3}, media="application/merge-patch+json")
    assert (await api.must("GET", f"{new}/e"))["deprecatedCount"] == 3
    async with api.watch(new) as following:
        assert (await following())["object"]["note"] == "because"


async def test_events_are_forgotten_after_an_hour(api, clock):
    path = "/api/v1/namespaces/default/events"
    await api.must("POST", path, {"metadata": {"name": "e"}, "involvedObject": {"name": "p"}})
    await clock.advance(3590)
    assert len((await api.must("GET", path))["items"]) == 1
    await clock.advance(20)
    assert (await api.must("GET", path))["items"] == []


async def test_a_page_says_what_is_left(api, maps):
    for number in range(5):
        await api.must("POST", maps, config_map(f"m{number}"))
    page = await api.must("GET", maps, params={"limit": "2"})
    assert page["metadata"]["remainingItemCount"] == 3
    await api.must("DELETE", f"{maps}/m3")
    query = {"limit": "2", "continue": page["metadata"]["continue"]}
    page = await api.must("GET", maps, params=query)
    assert [item["metadata"]["name"] for item in page["items"]] == ["m2", "m3"]


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        pytest.param({"resourceVersion": "x"}, 400, "must be a number", id="no number"),
        pytest.param({"resourceVersion": "99999"}, 504, "Too large", id="future"),
        pytest.param({"resourceVersionMatch": "Exact"}, 422, "forbidden unless", id="no version"),
        pytest.param(
            {"resourceVersionMatch": "Any", "resourceVersion": "1"}, 422, "Unsupported", id="match"
        ),
        pytest.param({"limit": "many"}, 400, "whole number", id="limit"),
        pytest.param({"watch": "1", "resourceVersion": "99999"}, 504, "Too large", id="watch"),
        pytest.param(
            {"watch": "1", "sendInitialEvents": "true"}, 400, "NotOlderThan", id="streamed list"
        ),
    ],
)
async def test_versions_that_make_no_sense(api, maps, query, status, words):
    answer = await api.call("GET", maps, params=query)
    assert answer.status == status
    assert words in answer.message


async def test_an_exact_version_is_served_from_the_history(api, maps):
    first = await api.must("POST", maps, config_map("a"))
    await api.must("POST", maps, config_map("b"))
    query = {
        "resourceVersion": first["metadata"]["resourceVersion"],
        "resourceVersionMatch": "Exact",
    }
    items = (await api.must("GET", maps, params=query))["items"]
    assert [item["metadata"]["name"] for item in items] == ["a"]


async def test_bookmarks_come_every_minute_and_at_the_end(api, maps, clock):
    query = {"allowWatchBookmarks": "true", "timeoutSeconds": "90", "resourceVersion": "0"}
    async with api.watch(maps, **query) as following:
        await clock.advance(61)
        first = await following()
        assert first["type"] == "BOOKMARK"
        # The last one comes two seconds before the end.
        await clock.advance(28)
        assert (await following())["type"] == "BOOKMARK"
        await clock.advance(2)
        assert await following() is None
    assert "annotations" not in first["object"]["metadata"]


@pytest.mark.parametrize(("seconds", "comes"), [(1, False), (2, False), (3, True)])
async def test_only_a_watch_of_more_than_two_seconds_gets_a_bookmark_before_its_end(
    api, maps, clock, seconds, comes
):
    query = {"allowWatchBookmarks": "true", "resourceVersion": "0"}
    async with api.watch(maps, timeoutSeconds=str(seconds), **query) as following:
        await clock.advance(1.25)
        await clock.advance(seconds)
        event = await following()
        assert (event is not None and event["type"] == "BOOKMARK") is comes


async def test_a_watch_whose_history_is_lost_ends_with_an_error(api, maps, server):
    async with api.watch(maps) as following:
        made = await api.must("POST", maps, config_map("a"))
        assert (await following())["object"] == made
        # The first write wakes the watch only after both happened.
        server.objects.modify(
            CONFIG_MAPS, "a", "default", lambda body: body.update(data={"x": "1"})
        )
        server.objects.compact()
        event = await following()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await following() is None


CONFIG_MAPS = apiserver.object_store.Collection("", "configmaps")


async def test_a_watched_table_has_its_head_once(api, maps, server, connect):
    await api.must("POST", maps, config_map("a"))
    await api.must("POST", maps, config_map("b"))
    url = f"{server.url}{maps}?watch=1"
    async with api.session.get(url, headers=TABLE) as response:
        lines = [await response.content.readline() for _ in range(2)]
    assert [b'"columnDefinitions":[]' in line for line in lines] == [False, True]


async def test_a_restarted_server_shows_the_same_state(clock, connect, maps):
    state = apiserver.new_state(clock)
    async with apiserver.running(clock=clock, state=state) as first, connect(first) as client:
        made = await client.must("POST", maps, config_map("a"))
    async with apiserver.running(clock=clock, state=state) as second, connect(second) as client:
        assert await client.must("GET", f"{maps}/a") == made
        names = [kind.plural for kind in second.state.registry.kinds()]
        assert len(names) == len([k.plural for k in first.state.registry.kinds()])


async def test_an_accept_header_of_another_world_is_refused(api, maps):
    answer = await api.call("GET", maps, headers={"Accept": "text/html"})
    assert answer.status == 406
