"""How much of a NodeSLO is enforced, and what is said of the rest."""

import pytest

from agent.decide import catalogue, spec_enforcement, windows
from agent.informers import node_objects
from agent.model import edits, live_switches, strategy_settings

Mode = live_switches.Mode
GATES = frozenset({"BECPUSuppress", "CgroupReconcile"})
KEY = edits.Role.MEMORY_MIN, "kubepods"
WANTED = (edits.Edit(*KEY, "1", ""),)
SUPPRESS = spec_enforcement.Part("cpu-suppress", ("BECPUSuppress",))
MEMORY = spec_enforcement.Part("memory-qos", ("CgroupReconcile",))
ON = {"enable": True}


def strategy(name):
    everything = catalogue.catalogue(windows.Windows(1.0), strategy_settings.Pressure())
    return next(one for one in everything if one.name == name)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"systemStrategy": {"totalNetworkBandwidth": "10G"}}, []),
        ({"resourceUsedThresholdWithBE": {"cpuEvictThresholdPercent": 80}}, []),
        (
            {"resourceUsedThresholdWithBE": ON},
            ["cpu-suppress BECPUSuppress", "memory-evict BEMemoryEvict"],
        ),
        (
            {
                "resourceUsedThresholdWithBE": {
                    **ON, "cpuEvictThresholdPercent": 80, "cpuAllocatableEvictThresholdPercent": 90,
                    "cpuEvictBESatisfactionUpperPercent": 60,
                    "cpuEvictBESatisfactionLowerPercent": 40,
                    "memoryAllocatableEvictThresholdPercent": 90,
                    "memoryRequestUtilizationPercent": 90, "evictEnabledPriorityThreshold": 5999,
                }
            },
            [
                "cpu-suppress BECPUSuppress", "cpu-evict BECPUEvict",
                "cpu-evict CPUAllocatableEvict", "cpu-evict CPUEvict",
                "memory-evict BEMemoryEvict MemoryEvict", "memory-evict MemoryAllocatableEvict",
                "memory-evict BEMemoryEvict",
            ],
        ),
        ({"cpuBurstStrategy": {"policy": "auto"}}, ["cpu-burst CPUBurst"]),
        ({"systemStrategy": {"minFreeKbytesFactor": 100}}, ["system SystemConfig"]),
        (
            {"resourceQOSStrategy": {"beClass": {"cpuQOS": ON, "memoryQOS": ON}}},
            ["group-identity GroupIdentity", "memory-qos CgroupReconcile"],
        ),
        (
            {
                "resourceQOSStrategy": {
                    "policies": {"cpuPolicy": "coreSched", "netQOSPolicy": "terway-qos"},
                    "lsClass": {"cpuQOS": ON, "networkQOS": ON, "resctrlQOS": ON},
                }
            },
            ["core-sched CoreSched", "cache RdtResctrl", "terway-qos TerwayQoS"],
        ),
        (
            {
                "resourceQOSStrategy": {
                    "beClass": {
                        "networkQOS": ON,
                        "blkioQOS": {**ON, "blocks": [{"name": "sda", "ioCfg": {"readIOPS": 1}}]},
                    }
                }
            },
            ["block-io BlkIOReconcile", "network-qos TCNetworkQoS"],
        ),
    ],
    ids=[
        "nothing", "bandwidth", "off", "thresholds", "evictions", "burst", "kernel", "cpu, memory",
        "core scheduling, Terway", "disks, network",
    ],
)  # fmt: skip
def test_what_a_node_slo_switches_on(spec, expected):
    slo = node_objects.read_slo({"spec": spec})
    parts = spec_enforcement.configured(slo.thresholds, slo.enforced)
    assert [" ".join((part.strategy, *part.gates)) for part in parts] == expected
    for part in parts:
        assert set(part.gates) <= set(strategy(part.strategy).gates)


_LENT = {"allocatableEvictPriorityThreshold": 5999}
_FLAWS = {
    "cpu in use": ({"cpuEvictThresholdPercent": 80}, "CPUEvict", ""),
    "cpu in use, lower mark too high": (
        {"cpuEvictThresholdPercent": 80, "cpuEvictLowerPercent": 80}, "CPUEvict",
        "cpuEvictLowerPercent 80 is not below cpuEvictThresholdPercent 80",
    ),
    "satisfaction": (
        {"cpuEvictBESatisfactionUpperPercent": 60, "cpuEvictBESatisfactionLowerPercent": 40},
        "BECPUEvict", "",
    ),
    "satisfaction, half a pair": (
        {"cpuEvictBESatisfactionUpperPercent": 60}, "BECPUEvict",
        "cpuEvictBESatisfactionLowerPercent is not set",
    ),
    "cpu requested": (
        {
            **_LENT, "cpuAllocatableEvictThresholdPercent": 90,
            "cpuAllocatableEvictLowerPercent": 80,
        },
        "CPUAllocatableEvict", "",
    ),
    "cpu requested, half a pair": (
        {**_LENT, "cpuAllocatableEvictThresholdPercent": 90}, "CPUAllocatableEvict",
        "cpuAllocatableEvictLowerPercent is not set",
    ),
    "cpu requested, no priority": (
        {"cpuAllocatableEvictThresholdPercent": 90, "cpuAllocatableEvictLowerPercent": 80},
        "CPUAllocatableEvict", "allocatableEvictPriorityThreshold is not set",
    ),
    "memory in use": ({}, "BEMemoryEvict", ""),
    "memory in use, lower mark too high": (
        {"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 75}, "BEMemoryEvict",
        "memoryEvictLowerPercent 75 is not below memoryEvictThresholdPercent 70",
    ),
    "memory requested": (
        {
            **_LENT, "memoryAllocatableEvictThresholdPercent": 90,
            "memoryAllocatableEvictLowerPercent": 80,
        },
        "MemoryAllocatableEvict", "",
    ),
    "memory requested, production": (
        {
            "allocatableEvictPriorityThreshold": 9000, "memoryAllocatableEvictLowerPercent": 80,
            "memoryAllocatableEvictThresholdPercent": 90,
        },
        "MemoryAllocatableEvict",
        (
            "allocatableEvictPriorityThreshold 9000 covers production, whose lowest priority is "
            "9000; the most is 7999"
        ),
    ),
    "all memory requested": ({"memoryRequestUtilizationPercent": 90}, "BEMemoryEvict", ""),
}  # fmt: skip


@pytest.mark.parametrize(("written", "gate", "flaw"), _FLAWS.values(), ids=_FLAWS.keys())
def test_settings_by_which_nothing_can_be_evicted_are_named(written, gate, flaw):
    slo = node_objects.read_slo({"spec": {"resourceUsedThresholdWithBE": {**ON, **written}}})
    parts = spec_enforcement.configured(slo.thresholds, slo.enforced)
    of_gate = [one for one in parts if gate in one.gates]
    names = {one.strategy for one in of_gate}
    now = standing(gates={gate}, decisions=dict.fromkeys(names, edits.Decision("decided")))
    found = spec_enforcement.judge(of_gate, now)
    (name,) = names
    said = f"settings of no use: {name} ({flaw})" if flaw else f"enforced: {name}"
    assert found.condition.message == said
    assert found.condition.holds is (not flaw)
    assert found.applied is (not flaw)


def standing(**changes):
    decision = edits.Decision("decided", WANTED)
    given = {
        "mode": lambda _name: Mode.ENFORCE,
        "gates": GATES,
        "decisions": {"cpu-suppress": edits.Decision("decided"), "memory-qos": decision},
        "strategies": strategy_settings.Strategies(),
        "writing": True,
    }
    return spec_enforcement.Standing(**{**given, **changes})


def memory(decision):
    return {"decisions": {"cpu-suppress": edits.Decision("decided"), "memory-qos": decision}}


def modes(**changes):
    return {"mode": lambda name: changes.get(name.replace("-", "_"), Mode.ENFORCE)}


PARTLY = "; enforced: cpu-suppress"
_CASES = {
    "all": ({}, True, "AllEnforced", "enforced: cpu-suppress, memory-qos"),
    "observed": (
        modes(memory_qos=Mode.OBSERVE), True, "PartlyEnforced", "only observed: memory-qos" + PARTLY
    ),
    "observed all": (
        {"mode": lambda _name: Mode.OBSERVE}, False, "NotEnforced",
        "only observed: cpu-suppress, memory-qos",
    ),
    "switched off": (
        modes(memory_qos=Mode.OFF), True, "PartlyEnforced", "switched off: memory-qos" + PARTLY
    ),
    "gate": (
        {"gates": {"BECPUSuppress"}}, True, "PartlyEnforced",
        "feature gate off: memory-qos (CgroupReconcile)" + PARTLY,
    ),
    "only suppression observed": (
        modes(cpu_suppress=Mode.OBSERVE), True, "PartlyEnforced",
        "only observed: cpu-suppress; enforced: memory-qos",
    ),
    "failed": (
        {"unwritten": {KEY: "EBUSY: busy"}}, False, "PartlyEnforced",
        "failed: memory-qos (memory-min: EBUSY: busy)" + PARTLY,
    ),
    "failed elsewhere": (
        {"unwritten": {(edits.Role.CPU_SHARES, "kubepods"): "EBUSY: busy"}}, True, "AllEnforced",
        "enforced: cpu-suppress, memory-qos",
    ),
    "undecided": (
        memory(edits.undecided("the Node object")), False, "PartlyEnforced",
        "not decided yet: memory-qos (waiting for the Node object)" + PARTLY,
    ),
    "impossible": (
        memory(edits.impossible("no disk")), True, "PartlyEnforced",
        "not possible on this node: memory-qos (no disk)" + PARTLY,
    ),
    "impossible, and what was set stands": (
        memory(edits.Decision("no", decided=False, unmet="more than there is")), True,
        "PartlyEnforced",
        "not possible on this node: memory-qos (more than there is)" + PARTLY,
    ),
    "not put back": (
        {"unreleased": True}, False, "AllEnforced", "enforced: cpu-suppress, memory-qos"
    ),
    "nothing can be written": (
        {"problem": "the journal is full"}, False, "NotEnforced",
        "failed: cpu-suppress (the journal is full), memory-qos (the journal is full)",
    ),
    "not started": (
        {"writing": False, "decisions": {}}, False, "NotEnforced",
        "not decided yet: cpu-suppress, memory-qos",
    ),
    "spared": (
        {"spared": ("namespace a", "class BE")}, True, "PartlyEnforced",
        "enforced: cpu-suppress, memory-qos; not for pods of namespace a, class BE",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "applied", "reason", "message"), _CASES.values(), ids=_CASES.keys()
)
def test_what_is_said(changes, applied, reason, message):
    found = spec_enforcement.judge((SUPPRESS, MEMORY), standing(**changes))
    assert (found.condition.reason, found.condition.message) == (reason, message)
    assert found.applied is applied
    assert found.condition.holds is (reason == "AllEnforced")


def test_what_the_host_cannot_do_is_not_waited_for():
    lacks = {"memory-qos": "groups have no memory-min"}
    found = spec_enforcement.judge((SUPPRESS, MEMORY), standing(), lacks)
    expected = "not possible on this node: memory-qos (groups have no memory-min)" + PARTLY
    assert (found.condition.message, found.applied) == (expected, True)


@pytest.mark.parametrize(("writing", "applied"), [(True, True), (False, False)])
def test_a_node_slo_that_switches_nothing_on_takes_effect_where_the_agent_writes(writing, applied):
    found = spec_enforcement.judge((), standing(writing=writing))
    assert (found.condition.holds, found.condition.reason) == (True, "NothingConfigured")
    assert found.applied is applied


def test_a_node_slo_that_cannot_be_read_is_told_in_bounds():
    found = spec_enforcement.unreadable("spec.cpuBurstStrategy: " + "x" * 5000)
    assert (found.condition.holds, found.condition.reason) == (False, "SpecUnreadable")
    assert found.condition.message.startswith("spec.cpuBurstStrategy: xxx")
    assert (len(found.condition.message), found.applied) == (1000, False)


def test_long_causes_leave_room_for_others():
    unwritten = {KEY: "y" * 5000}
    found = spec_enforcement.judge((SUPPRESS, MEMORY), standing(unwritten=unwritten))
    assert len(found.condition.message) < 250
    assert found.condition.message.endswith(PARTLY)
