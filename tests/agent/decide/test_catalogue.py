"""The strategies by name, gate and time."""

import dataclasses
import typing

import msgspec
import pytest

from agent import settings
from agent.assembly import feature_gates
from agent.decide import catalogue, windows
from agent.model import edits, state, strategy_settings
from agent.store import time_series

QUIET = strategy_settings.Pressure()
SEEN = windows.Windows(1.0)


def entries(pressure=QUIET):
    return {one.name: one for one in catalogue.catalogue(SEEN, pressure)}


def look(picture, wanted=None, now=0.0, **more):
    given = wanted or strategy_settings.Strategies()
    return catalogue.Look(picture, given, time_series.Histories(), now, **more)


@pytest.fixture
def now(node, placed):
    batch = dataclasses.replace(placed, quality="BE", kubernetes_qos="BestEffort")
    pods = (placed("ls"), batch("be", usage=state.Usage(cpu=1.0, memory=1 << 30)))
    every = frozenset(range(8))
    return state.NodeState(
        at=0,
        node=node,
        thresholds=state.Thresholds(True),
        usage=state.Usage(cpu=4.0, memory=15 << 30),
        pods=pods,
        best_effort=state.BestEffort((state.Group("k/e", 0, every),), every, -1),
        processors=tuple(state.Processor(cpu, cpu, 0, 0) for cpu in range(8)),
        online_pressure=state.Pressure(cpu=60.0, memory=50.0),
        qos_groups={"Guaranteed": "k", "Burstable": "k/b", "BestEffort": "k/e"},
    )


def test_every_strategy_can_be_named_in_the_settings():
    assert set(typing.get_args(settings.Name)) == set(entries())


MEASURED = {
    "Accelerators", "CPICollector", "ColdPageCollector", "PSICollector", "RDMADevices",
    "ResctrlCollector", "ThrottlingCollector",
}  # fmt: skip
"""Gates that switch what is looked at or told, and no strategy."""
TOLD = {
    feature_gates.NODE_TOPOLOGY_REPORT, feature_gates.HUGE_PAGE_REPORT, feature_gates.INTERFERENCE,
    "PodResourcesProxy",
}  # fmt: skip
WAYS = {"BECPUManager", "GPUEnvInject", "RDMADeviceInject"}
"""Gates that change how strategies decide, or what containers are handed."""


def test_every_gate_switches_a_strategy_or_a_measurement():
    named = {gate for one in entries().values() for gate in one.gates} - {"PressureEvict"}
    assert {gate.name for gate in feature_gates.GATES} == named | MEASURED | TOLD | WAYS


@pytest.mark.parametrize("name", sorted(entries()))
def test_every_strategy_decides_on_any_picture(now, name):
    enabled = {gate.name for gate in feature_gates.GATES}
    for picture in (now, state.NodeState(at=0), msgspec.structs.replace(now, node=None)):
        found = entries()[name].decide(look(picture, enabled=enabled))
        assert found.reason


def test_suppression_says_what_best_effort_may_use(now):
    found = entries()["cpu-suppress"].decide(look(now))
    assert found.figures["allowed-milli"] == 5200 - 3000
    off = msgspec.structs.replace(now, thresholds=state.Thresholds(False))
    found = entries()["cpu-suppress"].decide(look(off))
    assert found.decided
    assert {edit.value for edit in found.wanted} == {None}
    assert not entries()["cpu-suppress"].decide(look(msgspec.structs.replace(now, pods=()))).decided


def test_under_pressure_best_effort_loses_more_with_every_look(now):
    decide = entries(strategy_settings.Pressure(enable=True))["cpu-suppress"].decide
    found = [decide(look(now)).figures["allowed-milli"] for _ in range(3)]
    assert found == [5200 - 800 * step - 3000 for step in (1, 2, 3)]


def test_memory_pressure_evicts_under_its_own_name(now):
    decide = entries(strategy_settings.Pressure(enable=True))["memory-evict"].decide
    wanted = strategy_settings.Strategies(evicting=True)
    found = decide(look(now, wanted))
    assert [(one.uid, one.feature) for one in found.evictions] == [("uid-be", "PressureEvict")]
    # It does not depend on the thresholds: those may be off.
    assert decide(look(now)).evictions


def test_an_eviction_stays_asked_for_until_it_is_on_its_way(now):
    decide = entries()["memory-evict"].decide
    wanted = strategy_settings.Strategies(evicting=True)
    enabled = {"BEMemoryEvict"}
    for second in (0.0, 1.0):
        found = decide(look(now, wanted, second, enabled=enabled))
        assert [one.uid for one in found.evictions] == ["uid-be"]
    found = decide(look(now, wanted, 2.0, enabled=enabled, leaving={"uid-be"}))
    assert found.evictions == ()
    found = decide(look(now, wanted, 9.0, enabled=enabled, refused={"uid-be"}))
    assert found.evictions == ()
    calm = msgspec.structs.replace(now, usage=state.Usage(memory=1 << 30))
    assert decide(look(calm, wanted, 3.0, enabled=enabled)).reason == (
        "nothing has to be given back"
    )


@pytest.mark.parametrize("name", ["memory-evict", "cpu-evict"])
def test_thresholds_that_are_off_evict_nobody(now, name):
    enabled = {gate.name for gate in feature_gates.GATES}
    decide = entries()[name].decide
    for second in (0.0, 30.0):
        found = decide(look(now, strategy_settings.Strategies(), second, enabled=enabled))
        assert found.evictions == ()
        assert found.reason == "eviction is switched off"


RATIO = "node.koordinator.sh/cpu-normalization-ratio"


@pytest.mark.parametrize(("written", "expected"), [("2", "100000"), ("bad", "200000")])
def test_a_ratio_of_the_node_scales_batch_quotas(now, placed, written, expected):
    node = msgspec.structs.replace(
        now.node, metadata=msgspec.structs.replace(now.node.metadata, annotations={RATIO: written})
    )
    asked = {"kubernetes.io/batch-cpu": "2000"}
    pod = placed("be", quality="BE", requests=asked, limits=asked)
    found = entries()["batch-resources"].decide(
        look(msgspec.structs.replace(now, node=node, pods=(pod,)))
    )
    quotas = {edit.value for edit in found.wanted if edit.role is edits.Role.CPU_QUOTA}
    assert quotas == {expected}


def test_a_quota_for_all_best_effort_leaves_pods_without(now, placed):
    asked = {"kubernetes.io/batch-cpu": "2000"}
    pod = placed("be", quality="BE", requests=asked, limits=asked)
    thresholds = state.Thresholds(True, cpu_suppress_policy="cfsQuota")
    picture = msgspec.structs.replace(now, pods=(pod,), thresholds=thresholds)
    found = entries()["batch-resources"].decide(look(picture))
    quotas = {edit.value for edit in found.wanted if edit.role is edits.Role.CPU_QUOTA}
    assert quotas == {"-1"}
