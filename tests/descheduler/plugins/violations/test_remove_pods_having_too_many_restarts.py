"""RemovePodsHavingTooManyRestarts: restarts added up, the most first."""

from typing import Any

import pytest

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.model import podinfo
from descheduler.plugins.remove_pods_having_too_many_restarts import (
    remove_pods_having_too_many_restarts as plugin_module,
)
from tests.descheduler import builders
from tests.descheduler.plugins import driving


def restarted(main: int, init: int = 0, reason: str = "") -> tuple[podinfo.Container, ...]:
    state = "waiting" if reason else "running"
    return (
        podinfo.Container("a", restarts=main, state=state, reason=reason),
        podinfo.Container("b", restarts=main),
        podinfo.Container("i", kind="init", restarts=init),
    )


def found(written: dict[str, Any], *pods: podinfo.Pod, **given: Any) -> list[protocols.Suggestion]:
    arguments = compliance.RemovePodsHavingTooManyRestartsArgs.model_validate(
        {"podRestartThreshold": 10, **written}
    )
    seen = builders.picture_of([builders.node("n")], pods)
    plugin = plugin_module.RemovePodsHavingTooManyRestarts(arguments)
    return driving.run(plugin, driving.view(seen, **given))


LOOPING = restarted(5, reason="CrashLoopBackOff")
SLOW = restarted(5, reason="ImagePullBackOff")


@pytest.mark.parametrize(
    ("written", "fields", "expected"),
    [
        pytest.param({}, {"containers": restarted(5)}, True, id="as many as the threshold"),
        pytest.param({}, {"containers": restarted(4, 5)}, False, id="init containers left out"),
        pytest.param(
            {"includingInitContainers": True},
            {"containers": restarted(4, 2)},
            True,
            id="init containers included",
        ),
        pytest.param({}, {}, False, id="no containers known"),
        pytest.param({}, {"containers": restarted(9), "phase": "Failed"}, False, id="has ended"),
        pytest.param({}, {"containers": restarted(9), "leaves_at": 1.0}, False, id="terminating"),
        pytest.param({"states": ["Running"]}, {"containers": restarted(5)}, True, id="phase"),
        pytest.param(
            {"states": ["Running"]},
            {"containers": restarted(5), "phase": "Pending"},
            False,
            id="other phase",
        ),
        pytest.param(
            {"states": ["CrashLoopBackOff"]}, {"containers": LOOPING}, True, id="waiting reason"
        ),
        pytest.param(
            {"states": ["CrashLoopBackOff"]}, {"containers": SLOW}, False, id="other waiting reason"
        ),
        pytest.param(
            {"namespaces": {"exclude": ["default"]}},
            {"containers": restarted(9)},
            False,
            id="namespace excluded",
        ),
    ],
)
def test_which_pods_are_removed(
    written: dict[str, Any], fields: dict[str, Any], expected: bool
) -> None:
    pod = builders.pod("p", "n", **fields)
    assert driving.names(found(written, pod)) == (["p"] if expected else [])


def test_most_restarts_go_first_and_protected_pods_stay() -> None:
    pods = [builders.pod(f"p{n}", "n", containers=restarted(n)) for n in (6, 8, 7, 9)]
    listed = found({}, *pods, kept={"p8"}, kept_late={"p7"})
    assert driving.names(listed) == ["p9", "p6"]
    assert listed[0].reason == "containers restarted 18 times, podRestartThreshold is 10"
    assert listed[0].purpose is protocols.Purpose.REMOVE
