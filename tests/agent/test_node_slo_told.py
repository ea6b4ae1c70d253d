"""An agent says in the status of its NodeSLO what of it is enforced."""

import pytest

from api import resources
from tests.agent import test_app
from tests.agent.app_world import GIB

world = test_app.world
MEMORY = {
    "resourceQOSStrategy": {
        "lsClass": {"memoryQOS": {"enable": True, "minLimitPercent": 100, "throttlingPercent": 0}}
    }
}

# Thresholds switch evictions on as well.
NO_EVICTION = "feature gate off: memory-evict (BEMemoryEvict)"


@pytest.mark.parametrize(
    ("modes", "gates", "message", "protected"),
    [
        (
            {"cpu-suppress": "observe"},
            {},
            f"only observed: cpu-suppress; {NO_EVICTION}; enforced: memory-qos",
            True,
        ),
        (
            {},
            {"BECPUSuppress": False, "BEMemoryEvict": True},
            "feature gate off: cpu-suppress (BECPUSuppress); enforced: memory-qos, memory-evict",
            True,
        ),
        (
            {"memory-qos": "observe"},
            {},
            f"only observed: memory-qos; {NO_EVICTION}; enforced: cpu-suppress",
            False,
        ),
        (
            {"memory-qos": "observe", "cpu-suppress": "observe"},
            {},
            f"only observed: cpu-suppress, memory-qos; {NO_EVICTION}",
            False,
        ),
        (
            {},
            {"MemoryEvict": True},
            f"{NO_EVICTION}; enforced: cpu-suppress, memory-qos",
            True,
        ),
        ({}, {"BEMemoryEvict": True}, "enforced: cpu-suppress, memory-qos, memory-evict", True),
    ],
    ids=[
        *("suppression observed", "suppression gated", "memory observed", "all observed"),
        *("no priority to evict by", "all"),
    ],
)
async def test_the_node_slo_says_what_of_it_is_enforced(
    world, new_pod, modes, gates, message, protected
):
    world.add_pod(new_pod("online", "Burstable"), 500)
    for folder in {file.parent for file in world.tree.cgroup.rglob("memory.max")}:
        for name, value in (("memory.min", "0"), ("memory.low", "0"), ("memory.high", "max")):
            (folder / name).write_text(f"{value}\n")
    world.create(resources.NODE_METRICS, {"spec": {}})
    world.create(resources.NODE_SLOS, {"spec": {**test_app.THRESHOLDS, **MEMORY}})
    strategies = {"mode": "enforce", "modes": modes}
    gates = {"CgroupReconcile": True, **gates}
    async with world.agent(strategies=strategies, feature_gates=gates):
        await world.seconds(45)
        status = world.status(resources.NODE_SLOS)
        minimums = {file.read_text().strip() for file in world.tree.cgroup.rglob("memory.min")}
    (condition,) = status["conditions"]
    assert condition["message"] == message
    assert (condition["status"], condition["observedGeneration"]) == (
        "True" if condition["reason"] == "AllEnforced" else "False",
        1,
    )
    assert ("nodeMetric" in status) is ("enforced:" in message)
    assert (str(GIB) in minimums) is protected


async def test_a_node_slo_that_cannot_be_read_says_so_itself(world):
    world.create(resources.NODE_METRICS, {"spec": {}})
    world.create(resources.NODE_SLOS, {"spec": {}})
    bad = {"systemStrategy": {"totalNetworkBandwidth": "1e.5"}}
    async with world.agent() as agent:
        await world.until_ticking(lambda: world.status(resources.NODE_SLOS))
        world.change(resources.NODE_SLOS, bad)
        await world.until(lambda: "nodeslo" in agent.health.warnings())
        await world.seconds(65)
        (condition,) = world.status(resources.NODE_SLOS)["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "SpecUnreadable")
        assert "totalNetworkBandwidth" in condition["message"]
        world.change(resources.NODE_SLOS, {})
        await world.until_ticking(
            lambda: world.status(resources.NODE_SLOS)["conditions"][0]["status"] == "True"
        )
