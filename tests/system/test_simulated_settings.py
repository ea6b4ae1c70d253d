"""What `koord simulate settings` predicts of a running system is what happens.

A snapshot is taken of a running system, a change is tried on it, and then applied.
"""

import json

import pytest

from api import names, resources
from api.wire import quantity
from cli.simulation import command, lent
from cli.snapshot import reader
from tests.system.world import COLOCATION

NODES = {"a": 16, "b": 24, "c": 32, "d": 40}
# Both stay below what the load-aware plug-in lets a node be loaded.
LESS = {"cpuReclaimThresholdPercent": 35}
MORE = {"cpuReclaimThresholdPercent": 55, "midCPUThresholdPercent": 30}
HOPELESS = 4


def change():
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": names.CONFIG_MAP_SLO},
        "data": {"colocation-config": json.dumps(COLOCATION | MORE)},
    }  # fmt: skip


def published(world):
    """What the nodes lend, as it stands on them."""
    found = {}
    for node in world.plane.objects.list(resources.NODES).items:
        offered = node["status"]["allocatable"]
        found[node["metadata"]["name"]] = {
            name: quantity.whole(offered[name]) for name in lent.RESOURCES if name in offered
        }
    return found


def waiting(world):
    return [one["metadata"]["name"] for one in world.pods() if not one["spec"].get("nodeName")]


def right(world, names_of, predicted):
    """The share of pods that are where they were predicted, or wait as predicted."""
    happened = {name: world.node_of(name) for name in names_of}
    good = [one for one, node in happened.items() if predicted.get(f"default/{one}", "") == node]
    return len(good) / len(happened)


async def filled(world):
    """Machines of different sizes with a service each; batch pods hold what is lent."""
    await world.colocation(**LESS)
    for name, cores in NODES.items():
        await world.add_node(name, cpu=cores, memory_gib=4 * cores)
        await world.create(f"web-{name}", cpu=cores // 4, memory="4Gi", node=name)
        await world.bound(f"web-{name}")
    # Until every service is measured, the load changes what is lent.
    await world.pass_time(20)
    for name in NODES:
        await world.processes[f"agent-{name}"].kill()
    await world.pass_time(40)
    for name in NODES:
        cores = world.lent(name) // 1000
        await world.create(f"held-{name}", cpu=cores, memory="1Gi", batch=True, node=name)
        await world.bound(f"held-{name}")


async def asked(world, snapshot, changes):
    """Let pods wait that each fill what a change leaves free on one node, the largest first."""
    after = command.compared(snapshot, *changes)
    nodes = after.changed.lent.nodes
    free = {name: nodes[name][names.BATCH_CPU] // 1000 for name in nodes}
    for name in free:
        held = world.pod(f"held-{name}") or {"spec": {"containers": []}}
        for container in held["spec"]["containers"]:
            free[name] -= (
                quantity.whole(container["resources"]["requests"][names.BATCH_CPU]) // 1000
            )
    sizes = sorted(free.values(), reverse=True)
    for number, cores in enumerate([*sizes, *[max(sizes) + 1] * HOPELESS]):
        await world.create(f"{len(nodes)}-job-{number}", cpu=cores, memory="1Gi", batch=True)
        # Of pods of the same second nobody can tell which one is first in the queue.
        await world.pass_time(1)
    await world.pass_time(5)


async def taken(world):
    async with world.flowing():
        return await reader.taken(world.kube, world.clock)


@pytest.mark.timeout(120)
async def test_amounts_are_exact_and_pods_stand_where_predicted(world):
    await filled(world)
    await asked(world, await taken(world), ([change()],))
    found = command.compared(await taken(world), [change()])
    assert found.without.lent.nodes == published(world)
    assert found.without.placed.places == ()
    predicted = {one.key: one.node for one in found.changed.placed.places}
    assert len(predicted) == len(NODES)
    expected = {node: dict(amounts) for node, amounts in found.changed.settled.nodes.items()}
    assert expected != found.without.lent.nodes

    tried = waiting(world)
    # The manager publishes node by node. A small pod that is tried in between may take the node
    # that a large one needs, which nobody can foresee. So the scheduler goes on once all is there.
    await world.plane.stop_scheduler()
    await world.colocation(**MORE)
    at_once = {node: dict(amounts) for node, amounts in found.changed.lent.nodes.items()}
    await world.until(lambda: published(world) == at_once, "the manager has published")
    await world.pass_time(2)
    await world.start_scheduler()
    await world.until(lambda: published(world) == expected, "the manager has seen the pods")
    await world.pass_time(20)
    assert published(world) == expected
    assert right(world, tried, predicted) >= 0.99

    # One more machine, as large as one that is there.
    again = ([], (1, "b"))
    await asked(world, await taken(world), again)
    found = command.compared(await taken(world), *again)
    predicted = {one.key: "e" for one in found.changed.placed.places}
    assert {one.node for one in found.changed.placed.places} == {"b-copy-1"}
    tried = waiting(world)
    await world.add_node("e", cpu=NODES["b"], memory_gib=4 * NODES["b"])
    await world.pass_time(20)
    assert right(world, tried, predicted) >= 0.99
    # What the system uses is measured anew there, to the milli-core.
    lends = found.changed.lent.nodes["b-copy-1"][names.BATCH_CPU]
    assert abs(lends - published(world)["e"][names.BATCH_CPU]) <= 20
