"""The quota layer of a pod's story: which quota, why, and what the pod waits for."""

import msgspec
import pytest

from api import names
from api.kubernetes import core
from cli.commands import explain
from cli.explain.pod import pod_facts, quota_layer
from cli.quota import cluster
from tests.cli.commands.test_get import PLAIN, a_pod, a_quota, a_snapshot

LABEL = names.LABEL_QUOTA_NAME


def told(pods, about, quotas=None, **more):
    quotas = [a_quota("team", "team", most="10")] if quotas is None else quotas
    found = cluster.build(a_snapshot(quotas, pods, **more))
    pod = msgspec.convert(about, core.Pod)
    planned = explain.planned(pod_facts.Facts("", about, quotas=found))
    sentences = quota_layer.told(found, pod, planned).sentences
    return "\n".join(sentences), quota_layer.helps(found, pod)


def waiting(name="p", namespace="team", cpu="2", **more):
    return a_pod(name, namespace, cpu, "", **more)


@pytest.mark.parametrize(
    ("pod", "sentence"),
    [
        pytest.param(
            waiting(), "It counts in quota team, to which namespace team is bound.", id="namespace"
        ),
        pytest.param(
            waiting(namespace="x", labels={LABEL: "team"}),
            f"It counts in quota team, which its label {LABEL} names.", id="label",
        ),
        pytest.param(
            waiting(namespace="x"), "namespace x is bound to none: the default quota.", id="default"
        ),
        pytest.param(
            waiting(labels={LABEL: "gone"}),
            "It names quota gone, which does not exist: it counts in the default quota.",
            id="unknown label",
        ),
    ],
)  # fmt: skip
def test_which_quota_and_why(pod, sentence):
    assert sentence in told([pod], pod)[0]


def test_without_quotas_there_is_nothing_to_tell():
    pod = waiting()
    assert told([pod], pod, quotas=[]) == ("", ())


def test_a_pod_without_room_gets_the_sum_its_place_and_who_could_be_preempted():
    low = [a_pod(f"low-{i}", "team", "4", priority=i) for i in range(2)]
    firm = a_pod("firm", "team", "1", labels={names.LABEL_QUOTA_PREEMPTIBLE: "false"})
    first = waiting("first", priority=50, gates=[names.GATE_QUOTA])
    second = waiting("second", priority=9, gates=[names.GATE_QUOTA])
    second["status"]["conditions"] = [
        {"type": names.CONDITION_QUOTA, "status": "False", "message": "quota team is full"}
    ]
    text, helps = told([*low, firm, first, second], second)
    assert "Its quota has no room for it: Insufficient quotas, quotaName: team" in text
    assert "It is number 2 of 2 that wait for team." in text
    assert "The extender would evict team/low-0 (priority 0) for it, for node n0." in text
    assert "low-1" not in text
    assert "The manager says: quota team is full." in text
    assert "firm" not in text
    assert helps[0].startswith("1 core less used in quota team, or more of it: `koord explain")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        pytest.param(
            {"spec": {"preemptionPolicy": "Never"}}, "preemptionPolicy is Never", id="never"
        ),
        pytest.param({"priority": 0}, "No preemptible pod of team has a lower priority", id="low"),
    ],
)  # fmt: skip
def test_why_nobody_is_preempted(more, sentence):
    pod = waiting(**more)
    text, _ = told([pod, a_pod("full", "team", "10", priority=5)], pod)
    assert sentence in text


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        pytest.param({}, "would evict team/young (priority 1) for it, for node n0.", id="youngest"),
        pytest.param({"cpu": "7"}, "evict team/old (priority 1), team/young", id="two"),
        pytest.param({"nodes": ("10",)}, "No pod is preempted for it now: ", id="no room"),
    ],
)
def test_whom_the_extender_would_evict(more, sentence):
    pod = waiting(priority=9, cpu=more.get("cpu", "2"))
    full = [
        a_pod("old", "team", "5", priority=1, created=100.0),
        a_pod("young", "team", "5", priority=1, created=200.0),
    ]
    text, _ = told([pod, *full], pod, nodes=more.get("nodes", ("40",)))
    assert sentence in text


def test_a_pod_that_has_its_turn_and_one_that_runs():
    pod = waiting(gates=[names.GATE_QUOTA])
    text, helps = told([pod], pod)
    assert "quota team has room; the gate opens soon." in text
    assert "It is number 1 of 1" in text
    assert helps == ()
    runs = a_pod("r", "team", "2", labels={names.LABEL_QUOTA_PREEMPTIBLE: "false"})
    text, helps = told([runs], runs, quotas=[a_quota("team", "x", PLAIN), a_quota("t", "team")])
    assert "It counts in quota t, to which namespace team is bound." in text
    assert "never preempted" in text
    assert "wait" not in text
