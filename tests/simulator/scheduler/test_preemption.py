import dataclasses

import pytest

from simulator.scheduler import intree, preemption


@pytest.fixture
def high(pod_info):
    return pod_info("high", priority=100, requests={"cpu": "2"})


def names(victims):
    return [pod.name for pod in victims.pods]


def test_the_least_important_leave_first(pod_info, node_info, high):
    node = node_info(
        pod_info("low", priority=1, requests={"cpu": "2"}),
        pod_info("mid", priority=50, requests={"cpu": "2"}),
    )
    assert names(preemption.candidates(high, [node], [])["n"]) == ["low"]


def test_equals_are_safe(pod_info, node_info, high):
    node = node_info(pod_info("same", priority=100, requests={"cpu": "4"}))
    assert preemption.candidates(high, [node], []) == {}


def test_nobody_leaves_for_nothing(pod_info, node_info, high):
    node = node_info(pod_info("low", requests={"memory": "1Gi"}))
    assert preemption.candidates(high, [node], []) == {}


def test_a_node_that_is_too_small_is_no_candidate(pod_info, node_info, high):
    node = node_info(pod_info("low", requests={"cpu": "1"}), cpu="1")
    assert preemption.candidates(high, [node], []) == {}


def test_room_that_was_promised_to_equals_is_not_there(pod_info, node_info, high):
    node = node_info(*(pod_info(name, requests={"cpu": "2"}) for name in ("one", "two")))
    equal = pod_info("equal", priority=100, requests={"cpu": "2"})
    both = preemption.candidates(high, [node], [], lambda _: [equal])["n"]
    assert sorted(names(both)) == ["one", "two"]
    assert len(names(preemption.candidates(high, [node], [])["n"])) == 1


def budget(allowed, **labels):
    return preemption.Budget("a", {"matchLabels": labels}, allowed)


def test_a_budget_is_broken_only_when_nothing_else_helps(pod_info, node_info, high):
    node = node_info(
        pod_info("guarded", priority=1, requests={"cpu": "2"}, labels={"app": "db"}),
        pod_info("free", priority=50, requests={"cpu": "2"}),
    )
    found = preemption.candidates(high, [node], [budget(0, app="db")])["n"]
    assert (names(found), found.violations) == (["free"], 0)


def test_a_broken_budget_is_counted(pod_info, node_info, high):
    node = node_info(pod_info("guarded", requests={"cpu": "4"}, labels={"app": "db"}))
    found = preemption.candidates(high, [node], [budget(0, app="db")])["n"]
    assert (names(found), found.violations) == (["guarded"], 1)


def test_a_budget_lets_as_many_go_as_it_says(pod_info, node_info, high):
    pods = [pod_info(f"p{n}", requests={"cpu": "2"}, labels={"app": "db"}) for n in range(2)]
    wanting = preemption.candidates(
        pod_info_like(high, "4"), [node_info(*pods)], [budget(1, app="db")]
    )
    assert wanting["n"].violations == 1


def pod_info_like(pod, cpu):
    return dataclasses.replace(pod, requests={"cpu": int(cpu) * 1000})


@pytest.mark.parametrize(
    ("offers", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"a": ([(1, "")], 1), "b": ([(50, "")], 0)}, "b", id="budgets first"),
        pytest.param({"a": ([(50, "")], 0), "b": ([(1, "")], 0)}, "b", id="lower highest"),
        pytest.param({"a": ([(5, ""), (5, "")], 0), "b": ([(5, ""), (1, "")], 0)}, "b", id="sum"),
        pytest.param({"a": ([(0, ""), (0, "")], 0), "b": ([(0, "")], 0)}, "b", id="fewer"),
        pytest.param(
            {"a": ([(5, "2026-01-01")], 0), "b": ([(5, "2026-01-02")], 0)}, "b", id="younger"
        ),
    ],
)
def test_the_smallest_loss_wins(pod_info, offers, expected):
    offered = {
        node: preemption.Victims(
            tuple(
                pod_info(f"{node}{n}", priority=priority, status={"startTime": start})
                for n, (priority, start) in enumerate(pods)
            ),
            violations,
        )
        for node, (pods, violations) in offers.items()
    }
    assert preemption.best(offered) == expected


def test_who_never_preempts_says_so(pod_info):
    pod = pod_info(preemptionPolicy="Never")
    assert preemption.obstacle(pod, None) == "not eligible due to preemptionPolicy=Never."


def test_while_victims_leave_nobody_else_is_evicted(pod, pod_info, node_info, high):
    leaving = pod(
        "low",
        status={
            "conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            ]
        },
    )
    node = node_info(intree.read_pod(leaving))
    assert preemption.obstacle(high, node) == ""
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    node = node_info(intree.read_pod(leaving))
    assert "terminating pod" in preemption.obstacle(high, node)
    assert preemption.obstacle(high, node_info(pod_info("low"))) == ""


def test_a_budget_is_read():
    raw = {
        "metadata": {"namespace": "a"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": 2},
    }
    assert preemption.read_budget(raw) == budget(2, app="db")
