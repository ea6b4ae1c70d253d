"""PodLifeTime: every criterion has to hold, the oldest pod leaves first."""

from typing import Any

import pytest

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.model import podinfo
from descheduler.plugins.pod_life_time import pod_life_time
from tests.descheduler import builders
from tests.descheduler.plugins import driving

NOW = builders.NOW


def container(name: str = "main", **fields: Any) -> podinfo.Container:
    return podinfo.Container(name, **fields)


WAITING = container(state="waiting", reason="CrashLoopBackOff")
KILLED = container(state="terminated", reason="OOMKilled", exit_code=137)
INIT = container("init", kind="init", state="terminated", reason="Error", exit_code=3)
DEBUG = container("debug", kind="ephemeral", state="waiting", reason="ImagePullBackOff")
READY_AN_HOUR_AGO = podinfo.Condition("Ready", "False", "PodCompleted", NOW - 3600)
OWNED_BY_JOB = builders.owner("Job/batch")


def suggested(written: dict[str, Any], *pods: podinfo.Pod, **given: Any) -> list[str]:
    arguments = compliance.PodLifeTimeArgs.model_validate(written)
    seen = builders.picture_of([builders.node("n")], pods)
    plugin = pod_life_time.PodLifeTime(arguments)
    return driving.names(driving.run(plugin, driving.view(seen, **given)))


@pytest.mark.parametrize(
    ("written", "fields", "expected"),
    [
        pytest.param({"maxPodLifeTimeSeconds": 100}, {"created": NOW - 101}, True, id="older"),
        pytest.param({"maxPodLifeTimeSeconds": 100}, {"created": NOW - 100}, False, id="as old"),
        pytest.param({"maxPodLifeTimeSeconds": 0}, {"created": -1.0}, False, id="age unknown"),
        pytest.param({"states": ["Running"]}, {}, True, id="phase"),
        pytest.param({"states": ["Pending"]}, {}, False, id="other phase"),
        pytest.param(
            {"states": ["Succeeded"]}, {"phase": "Succeeded"}, True, id="a pod that has ended"
        ),
        pytest.param(
            {"states": ["Evicted"]},
            {"phase": "Failed", "reason": "Evicted"},
            True,
            id="reason of the pod",
        ),
        pytest.param(
            {"states": ["CrashLoopBackOff"]}, {"containers": (WAITING,)}, True, id="waiting reason"
        ),
        pytest.param(
            {"states": ["OOMKilled"]}, {"containers": (KILLED,)}, True, id="terminated reason"
        ),
        pytest.param(
            {"states": ["Error"]}, {"containers": (INIT,)}, False, id="init container left out"
        ),
        pytest.param(
            {"states": ["Error"], "includingInitContainers": True},
            {"containers": (INIT,)},
            True,
            id="init container included",
        ),
        pytest.param(
            {"states": ["ImagePullBackOff"]},
            {"containers": (DEBUG,)},
            False,
            id="ephemeral container left out",
        ),
        pytest.param(
            {"states": ["ImagePullBackOff"], "includingEphemeralContainers": True},
            {"containers": (DEBUG,)},
            True,
            id="ephemeral container included",
        ),
        pytest.param({"exitCodes": [1, 137]}, {"containers": (KILLED,)}, True, id="exit code"),
        pytest.param({"exitCodes": [1]}, {"containers": (KILLED,)}, False, id="other exit code"),
        pytest.param(
            {"exitCodes": [3], "includingInitContainers": True},
            {"containers": (INIT,)},
            True,
            id="exit code of an init container",
        ),
        pytest.param(
            {"conditions": [{"reason": "PodCompleted"}]},
            {"conditions": (READY_AN_HOUR_AGO,)},
            True,
            id="condition by reason",
        ),
        pytest.param(
            {"conditions": [{"type": "Ready", "status": "True"}]},
            {"conditions": (READY_AN_HOUR_AGO,)},
            False,
            id="condition with another status",
        ),
        pytest.param(
            {"conditions": [{"type": "Other"}, {"type": "Ready"}]},
            {"conditions": (READY_AN_HOUR_AGO,)},
            True,
            id="one of two conditions is enough",
        ),
        pytest.param(
            {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 3600}]},
            {"conditions": (READY_AN_HOUR_AGO,)},
            True,
            id="condition holds long enough",
        ),
        pytest.param(
            {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 3601}]},
            {"conditions": (READY_AN_HOUR_AGO,)},
            False,
            id="condition is too young",
        ),
        pytest.param(
            {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 0}]},
            {"conditions": (podinfo.Condition("Ready", "False"),)},
            False,
            id="condition without a time",
        ),
        pytest.param(
            {"states": ["Running"], "exitCodes": [137]}, {}, False, id="every criterion has to hold"
        ),
        pytest.param(
            {"states": ["Running"], "ownerKinds": {"exclude": ["Job"]}},
            {"owners": (OWNED_BY_JOB,)},
            False,
            id="owner excluded",
        ),
        pytest.param(
            {"states": ["Running"], "ownerKinds": {"exclude": ["Job"]}},
            {},
            True,
            id="other owner than the excluded",
        ),
        pytest.param(
            {"states": ["Running"], "ownerKinds": {"include": ["Job"]}},
            {"owners": (OWNED_BY_JOB,)},
            True,
            id="owner included",
        ),
        pytest.param(
            {"states": ["Running"], "ownerKinds": {"include": ["Job"]}},
            {},
            False,
            id="owner not among the included",
        ),
        pytest.param(
            {"states": ["Running"], "namespaces": {"exclude": ["default"]}},
            {},
            False,
            id="namespace excluded",
        ),
        pytest.param(
            {"states": ["Running"], "labelSelector": {"matchLabels": {"app": "web"}}},
            {"labels": {"app": "web"}},
            True,
            id="labels selected",
        ),
        pytest.param(
            {"states": ["Running"], "labelSelector": {"matchLabels": {"app": "web"}}},
            {},
            False,
            id="labels not selected",
        ),
        pytest.param(
            {"states": ["Running"]}, {"leaves_at": NOW + 5}, False, id="a pod that is terminating"
        ),
    ],
)
def test_a_pod_is_removed_when_all_criteria_hold(
    written: dict[str, Any], fields: dict[str, Any], expected: bool
) -> None:
    assert suggested(written, builders.pod("p", "n", **fields)) == (["p"] if expected else [])


def test_the_oldest_pod_leaves_first_and_protected_ones_stay() -> None:
    pods = [builders.pod(f"p{age}", "n", created=NOW - age) for age in (20, 40, 30, 50)]
    written = {"maxPodLifeTimeSeconds": 10}
    assert suggested(written, *pods, kept={"p40"}, kept_late={"p30"}) == ["p50", "p20"]


def test_pods_of_nodes_outside_the_profile_stay() -> None:
    pods = [builders.pod("waits"), builders.pod("elsewhere", "other")]
    assert suggested({"maxPodLifeTimeSeconds": 10}, *pods) == []
    assert suggested({"maxPodLifeTimeSeconds": 10}, *pods, nodes=()) == []


def test_a_removed_pod_needs_no_target_and_its_reason_names_the_criteria() -> None:
    arguments = compliance.PodLifeTimeArgs(
        max_pod_life_time_seconds=10,
        states=("OOMKilled",),
        exit_codes=(137,),
        conditions=(compliance.ConditionFilter(type="Ready"),),
    )
    pod = builders.pod("p", "n", containers=(KILLED,), conditions=(READY_AN_HOUR_AGO,))
    seen = driving.view(builders.picture_of([builders.node("n")], [pod]))
    (found,) = driving.run(pod_life_time.PodLifeTime(arguments), seen)
    assert found.purpose is protocols.Purpose.REMOVE
    assert found.targets is None
    assert found.reason == (
        "age 3600s is more than 10s; state OOMKilled; exit code 137;"
        " a condition that conditions names"
    )
