"""RemoveFailedPods: pods of the phase Failed, by reason, exit code, owner and age."""

from typing import Any

import pytest

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.model import podinfo
from descheduler.plugins.remove_failed_pods import remove_failed_pods
from tests.descheduler import builders
from tests.descheduler.plugins import driving

NOW = builders.NOW
EXITED = podinfo.Container("main", state="terminated", reason="Error", exit_code=1)
INIT = podinfo.Container("init", kind="init", state="terminated", reason="OOMKilled", exit_code=137)
AT_ONCE = {"minPodLifetimeSeconds": 0}


def found(written: dict[str, Any], *pods: podinfo.Pod, **given: Any) -> list[protocols.Suggestion]:
    arguments = compliance.RemoveFailedPodsArgs.model_validate(written)
    seen = builders.picture_of([builders.node("n")], pods)
    plugin = remove_failed_pods.RemoveFailedPods(arguments)
    return driving.run(plugin, driving.view(seen, **given))


@pytest.mark.parametrize(
    ("written", "fields", "expected"),
    [
        pytest.param({}, {"created": NOW - 3600}, True, id="an hour old by default"),
        pytest.param({}, {"created": NOW - 3599}, False, id="younger than an hour"),
        pytest.param({}, {"created": -1.0}, False, id="age unknown"),
        pytest.param(AT_ONCE, {"created": -1.0}, True, id="no least age"),
        pytest.param(AT_ONCE, {"phase": "Running"}, False, id="running"),
        pytest.param(AT_ONCE, {"phase": "Succeeded"}, False, id="succeeded"),
        pytest.param(AT_ONCE, {"leaves_at": NOW}, False, id="terminating"),
        pytest.param(
            {"reasons": ["NodeAffinity"]}, {"reason": "NodeAffinity"}, True, id="reason of the pod"
        ),
        pytest.param(
            {"reasons": ["Error"]}, {"containers": (EXITED,)}, True, id="reason of a container"
        ),
        pytest.param({"reasons": ["Error"]}, {}, False, id="no reason given"),
        pytest.param(
            {"reasons": ["OOMKilled"]}, {"containers": (INIT,)}, False, id="init left out"
        ),
        pytest.param(
            {"reasons": ["OOMKilled"], "includingInitContainers": True},
            {"containers": (INIT,)},
            True,
            id="init included",
        ),
        pytest.param({"exitCodes": [1]}, {"containers": (EXITED,)}, True, id="exit code"),
        pytest.param({"exitCodes": [2]}, {"containers": (EXITED,)}, False, id="other exit code"),
        pytest.param(
            {"reasons": ["Error"], "exitCodes": [2]},
            {"containers": (EXITED,)},
            False,
            id="both have to hold",
        ),
        pytest.param({"excludeOwnerKinds": ["ReplicaSet"]}, {}, False, id="owner excluded"),
        pytest.param({"excludeOwnerKinds": ["Job"]}, {}, True, id="other owner"),
        pytest.param({"namespaces": {"include": ["other"]}}, {}, False, id="other namespace"),
    ],
)
def test_which_failed_pods_are_removed(
    written: dict[str, Any], fields: dict[str, Any], expected: bool
) -> None:
    pod = builders.pod("p", "n", **{"phase": "Failed", **fields})
    assert driving.names(found(written, pod)) == (["p"] if expected else [])


def test_the_oldest_goes_first_and_protected_ones_stay() -> None:
    pods = [
        builders.pod(f"p{age}", "n", phase="Failed", created=NOW - age) for age in (20, 40, 30, 50)
    ]
    listed = found(AT_ONCE, *pods, kept={"p40"}, kept_late={"p30"})
    assert driving.names(listed) == ["p50", "p20"]


def test_the_reason_says_why_the_pod_has_failed() -> None:
    known = builders.pod("p", "n", phase="Failed", reason="Evicted", containers=(EXITED,))
    unknown = builders.pod("q", "n", phase="Failed")
    first, second = found({}, known, unknown)
    assert first.reason == "pod has failed: Error, Evicted"
    assert second.reason == "pod has failed"
    assert {first.purpose, second.purpose} == {protocols.Purpose.REMOVE}
