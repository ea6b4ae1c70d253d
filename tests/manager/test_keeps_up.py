"""One replica of the manager keeps up: what it does grows with what happens, not with the cluster.

Counted in keys and writes of virtual minutes. How much processor time that is, in a cluster of
1,000 nodes, `python -m benchmarks.manager_minutes` measures.
"""

import pytest

from api import resources
from manager.settings import CONTROLLERS
from tests import builders

REPORTS = 4
"""Minutes in which every node reports once."""


async def populated(world, nodes):
    """A cluster with something of every kind that people create."""
    await world.configure(colocation_config={"enable": True})
    for number in range(nodes):
        await world.node(f"n{number}", labels={"pool": "a"})
        await world.pod(f"p{number}", f"n{number}", "2")
    for number in range(5):
        await create(
            world, resources.ELASTIC_QUOTAS, f"team-{number}",
            spec={"min": {"cpu": "1"}, "max": {"cpu": "9"}},
        )  # fmt: skip
        await create(
            world, resources.COLOCATION_PROFILES, f"c{number}",
            spec={"selector": {"matchLabels": {"app": f"a{number}"}}, "qosClass": "BE"},
        )  # fmt: skip
        template = {"spec": builders.a_pod(cpu="1")["spec"]}
        owners = [{"labelSelector": {"matchLabels": {"job": f"j{number}"}}}]
        spec = {"template": template, "owners": owners, "ttl": "24h"}
        await create(world, resources.RESERVATIONS, f"r{number}", spec=spec)
    await create(
        world, resources.ELASTIC_QUOTA_PROFILES, "pool",
        spec={"quotaName": "root", "nodeSelector": {"matchLabels": {"pool": "a"}}},
    )  # fmt: skip


async def create(world, resource, name, **body):
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
    await world.admin.create(resource, {**head, **body}, "default" if resource.namespaced else "")


def counted(running, name):
    """Return the sum of all samples of a counter."""
    return sum(
        sample.value
        for family in running.registry.collector.collect()
        for sample in family.samples
        if sample.name == name
    )


def waiting(running):
    """Return the keys that wait for a worker, by controller, where there are any."""
    depths = {
        name: running.registry.value("koord_controller_queue_keys", {"controller": name})
        for name in (*CONTROLLERS, "settings")
    }
    return {name: keys for name, keys in depths.items() if keys}


async def minute(world, nodes, number):
    """Let every node report in the course of a minute, each a little more than before."""
    for node in range(nodes):
        await world.report(f"n{node}", f"{10_000 + 10 * number}m", {f"p{node}": "1"})
        if node % 5 == 4:
            await world.clock.advance(1)
    await world.pass_time(60 - nodes // 5)


async def steady(world, nodes):
    """Return the reconciles and the writes of steady minutes, each a list by minute."""
    await populated(world, nodes)
    reconciles, writes = [], []
    async with world.manager() as running:
        # In the first minutes everything is written for the first time.
        for number in range(2):
            await minute(world, nodes, number)
        for number in range(REPORTS):
            before = [counted(running, name) for name in COUNTERS]
            await minute(world, nodes, number + 2)
            after = [counted(running, name) for name in COUNTERS]
            assert waiting(running) == {}, "no queue grows"
            reconciles.append(after[0] - before[0])
            writes.append(after[1] - before[1])
    return reconciles, writes


COUNTERS = ("koord_controller_reconciles_total", "koord_manager_writes_total")
FIXED = 60
"""Keys of a minute that do not depend on nodes: rounds of controllers that look at everything."""


@pytest.mark.parametrize("nodes", [10, 40])
async def test_queues_stay_empty_and_work_follows_the_reports(world, nodes) -> None:
    reconciles, writes = await steady(world, nodes)
    # Every five minutes a node is looked at once more, since small changes are written then.
    assert max(reconciles) <= FIXED + 7 * nodes, reconciles
    assert sum(reconciles) <= REPORTS * FIXED + 10 * nodes, reconciles
    assert sum(writes) <= 10 + 2 * nodes, writes
