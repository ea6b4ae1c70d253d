"""RemovePodsViolatingNodeTaints: which taints count, which pods tolerate them."""

from collections.abc import Sequence
from typing import Any

import pytest

from api.kubernetes import core
from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.plugins.remove_pods_violating_node_taints import (
    remove_pods_violating_node_taints as plugin_module,
)
from tests.descheduler import builders
from tests.descheduler.plugins import driving

DEDICATED = core.Taint("dedicated", "ml", "NoSchedule")
BARE = core.Taint("reserved", effect="NoSchedule")
SOFT = core.Taint("noisy", "yes", "PreferNoSchedule")
EXECUTE = core.Taint("gone", "yes", "NoExecute")
CORDONED = core.Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")


def plugin(**written: Any) -> plugin_module.RemovePodsViolatingNodeTaints:
    arguments = compliance.RemovePodsViolatingNodeTaintsArgs.model_validate(written)
    return plugin_module.RemovePodsViolatingNodeTaints(arguments)


@pytest.mark.parametrize(
    ("written", "taints", "tolerations", "expected"),
    [
        pytest.param({}, (DEDICATED,), (), "dedicated=ml:NoSchedule", id="not tolerated"),
        pytest.param({}, (BARE,), (), "reserved:NoSchedule", id="taint without a value"),
        pytest.param({}, (), (), "", id="no taint"),
        pytest.param({}, (EXECUTE,), (), "", id="NoExecute is enforced by Kubernetes"),
        pytest.param({}, (SOFT,), (), "", id="PreferNoSchedule left out"),
        pytest.param(
            {"includePreferNoSchedule": True},
            (SOFT,),
            (),
            "noisy=yes:PreferNoSchedule",
            id="PreferNoSchedule included",
        ),
        pytest.param(
            {},
            (DEDICATED,),
            (core.Toleration("dedicated", "Equal", "ml", "NoSchedule"),),
            "",
            id="tolerated by value",
        ),
        pytest.param(
            {},
            (DEDICATED,),
            (core.Toleration("dedicated", "Equal", "db"),),
            "dedicated=ml:NoSchedule",
            id="tolerated with another value",
        ),
        pytest.param(
            {}, (DEDICATED,), (core.Toleration(operator="Exists"),), "", id="tolerates all"
        ),
        pytest.param(
            {},
            (DEDICATED, BARE),
            (core.Toleration("dedicated", "Exists"),),
            "reserved:NoSchedule",
            id="one of two tolerated",
        ),
        pytest.param({"excludedTaints": ["dedicated"]}, (DEDICATED,), (), "", id="excluded by key"),
        pytest.param(
            {"excludedTaints": ["dedicated=ml"]}, (DEDICATED,), (), "", id="excluded by value"
        ),
        pytest.param(
            {"excludedTaints": ["dedicated=db"]},
            (DEDICATED,),
            (),
            "dedicated=ml:NoSchedule",
            id="another value excluded",
        ),
        pytest.param(
            {"includedTaints": ["reserved"]},
            (DEDICATED, BARE),
            (),
            "reserved:NoSchedule",
            id="only an included one counts",
        ),
        pytest.param(
            {"includedTaints": ["dedicated=ml"]},
            (BARE, DEDICATED),
            (),
            "dedicated=ml:NoSchedule",
            id="included by value",
        ),
    ],
)
def test_which_taints_count(
    written: dict[str, Any],
    taints: Sequence[core.Taint],
    tolerations: Sequence[core.Toleration],
    expected: str,
) -> None:
    pod = builders.pod("p", "n", tolerations=tolerations)
    seen = builders.picture_of([builders.node("n", taints=tuple(taints))], [pod])
    reasons = [one.reason for one in driving.run(plugin(**written), driving.view(seen))]
    assert reasons == ([f"taint {expected} is not tolerated"] if expected else [])


@pytest.mark.parametrize(
    ("written", "taints", "expected"),
    [
        pytest.param({}, (), True, id="the taint of a cordoned node counts"),
        pytest.param({}, (CORDONED,), True, id="and counts once where it is written out"),
        pytest.param({"excludedTaints": [CORDONED.key]}, (CORDONED,), False, id="unless excluded"),
    ],
)
def test_cordoned_nodes_are_tainted(
    written: dict[str, Any], taints: tuple[core.Taint, ...], expected: bool
) -> None:
    node = builders.node("n", schedulable=False, taints=taints)
    seen = builders.picture_of([node], [builders.pod("p", "n")])
    assert driving.names(driving.run(plugin(**written), driving.view(seen))) == ["p"] * expected


def test_pods_that_ended_or_are_protected_stay_and_the_least_important_go_first() -> None:
    pods = [
        builders.pod("important", "n", priority=9),
        builders.pod("plain", "n", priority=1),
        builders.pod("ended", "n", phase="Succeeded"),
        builders.pod("terminating", "n", leaves_at=1.0),
        builders.pod("protected", "n"),
        builders.pod("fits-nowhere", "n"),
        builders.pod("other/elsewhere", "n"),
    ]
    seen = builders.picture_of([builders.node("n", taints=(DEDICATED,))], pods)
    view = driving.view(seen, kept={"protected"}, kept_late={"fits-nowhere"})
    found = driving.run(plugin(namespaces={"exclude": ["other"]}), view)
    assert driving.names(found) == ["plain", "important"]
    assert {one.purpose for one in found} == {protocols.Purpose.COMPLY}
