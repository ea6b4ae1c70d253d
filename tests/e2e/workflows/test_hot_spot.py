"""200 nodes of which eight are hot: they cool within the limits, and then nothing moves any more.

Their reported load follows the pods that run on them, which a real Deployment controller creates
anew where they were evicted.
"""

import math

import pytest
import pytest_asyncio

from api import names
from tests.planes import stage as stages
from tests.planes.migration import rebalancing

NODES, HOT, CORES = 200, 8, 16
HIGH = 600 * CORES
"""The high threshold of `rebalancing.configuration`, in thousandths of a CPU."""
WEB, REPLICAS, LEAST = 12, 4, 3
LOAD = 1500
MOST, PER_NODE = 6, 2
EXEMPT = {names.ANNOTATION_EXEMPT: "true"}
PROTECTED = ("exempt", "guarded")
pytestmark = pytest.mark.timeout(240)


@pytest_asyncio.fixture(loop_scope="session")
async def stand(stage, tmp_path):
    document = rebalancing.configuration(stage.id, most=MOST, per_node=PER_NODE)
    async with rebalancing.standing(stage, tmp_path, document) as made:
        yield made


async def fill(stand):
    """Start pods on what are all nodes then, and let the cluster grow."""
    hot = await stand.nodes(*(f"hot-{number}" for number in range(HOT)), cpu=str(CORES))
    for number in range(WEB):
        await stand.deployment(f"web-{number}", REPLICAS, LOAD, least=LEAST)
    await stand.deployment("exempt", HOT, LOAD, annotations=EXEMPT)
    await stand.deployment("guarded", HOT, LOAD, least=HOT)
    for number in range(WEB):
        await stand.run(f"web-{number}", REPLICAS)
    for name in PROTECTED:
        await stand.run(name, HOT)
    cold = (f"cold-{number}" for number in range(NODES - HOT))
    await stand.nodes(*cold, cpu=str(CORES), labels={"pool": "cold"})
    await stand.deployment("background", NODES // 4, 500, nodeSelector={"pool": "cold"})
    await stand.run("background", NODES // 4)
    return hot


async def test_a_hot_spot_cools_and_then_nothing_moves(stand):
    record, fleet = stand.record, stand.fleet
    hot = await fill(stand)
    descheduler = stand.deschedulers["a"]
    await descheduler.start()
    await descheduler.ready()
    fleet.all_busy = True
    before = fleet.loads()
    hottest = {name for name, load in before.items() if load > HIGH}
    needed = sum(math.ceil((before[name] - HIGH) / LOAD) for name in hottest)
    assert hottest <= set(hot)
    assert needed >= HOT

    def has_cooled():
        return max(fleet.loads().values()) <= HIGH and stand.rests()

    await record.until(has_cooled, "the hot spot did not cool")
    reports = fleet.reports
    await stand.rounds("a", 8)
    assert fleet.reports > reports
    await stand.at_rest()

    evicted = [record.pods.last[uid] for uid in record.evicted()]
    assert len(evicted) == needed, record.story()
    assert len(record.jobs.last) == needed, record.story()
    assert {pod["spec"]["nodeName"] for pod in evicted} <= hottest
    assert not {pod["metadata"]["labels"]["app"] for pod in evicted} & set(PROTECTED)
    for number in range(WEB):
        assert record.fewest_ready(app=f"web-{number}") >= LEAST
    for name in PROTECTED:
        assert record.fewest_ready(app=name) == HOT
    together, of_node = record.most_migrating()
    assert 1 <= together <= MOST
    assert of_node <= PER_NODE
    assert max(fleet.loads().values()) <= HIGH
    await stand.stage.sound(stand.pair, timeout=stages.PATIENCE)
