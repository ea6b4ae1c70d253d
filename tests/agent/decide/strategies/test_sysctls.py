"""Kernel settings of the node."""

import msgspec

from agent.decide.strategies import sysctls
from agent.model import edits, state, strategy_settings
from api.kubernetes import core


def decide(settings, memory="512Gi"):
    raw = {"metadata": {"name": "n"}, "status": {"capacity": {"memory": memory}}}
    node = None if memory is None else msgspec.convert(raw, core.Node)
    found = sysctls.decide(state.NodeState(at=0, node=node), settings)
    return found, {(edit.role, edit.group): edit.value for edit in found.wanted}


def test_free_memory_is_a_share_of_all():
    _, values = decide(strategy_settings.System(min_free_factor=100, watermark_scale=150))
    assert values == {
        (edits.Role.VM_MIN_FREE_KBYTES, ""): "5368709",
        (edits.Role.VM_WATERMARK_SCALE, ""): "150",
    }


def test_features_are_switched_by_name():
    settings = strategy_settings.System(features={"B": False, "A": True}, group_identity=1)
    _, values = decide(settings)
    assert values == {
        (edits.Role.SCHED_GROUP_IDENTITY, ""): "1",
        (edits.Role.SCHED_FEATURE, "A"): "1",
        (edits.Role.SCHED_FEATURE, "B"): "0",
    }


def test_what_the_kernel_refuses_is_named():
    found, values = decide(strategy_settings.System(min_free_factor=1, watermark_scale=9), "1Gi")
    assert values == {}
    assert "vm-min-free-kbytes 104, vm-watermark-scale 9" in found.reason


def test_nothing_set_nothing_wanted():
    assert decide(strategy_settings.System())[1] == {}
    assert decide(strategy_settings.System(min_free_factor=100), None)[1] == {}
