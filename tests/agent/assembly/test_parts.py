"""What the tasks of an agent tell the API server of what they have done."""

from api import resources
from tests.agent import test_app

world = test_app.world


async def test_a_node_slo_that_was_made_anew_is_answered_anew(world, new_pod):
    world.add_pod(new_pod("batch", "BestEffort"), 6000)
    world.create(resources.NODE_SLOS, {"spec": test_app.THRESHOLDS})
    async with world.agent():
        await world.until_ticking(lambda: world.status(resources.NODE_SLOS))
        world.plane.objects.delete(resources.NODE_SLOS, test_app.NODE)
        world.create(resources.NODE_SLOS, {"spec": test_app.THRESHOLDS})
        await world.until_ticking(lambda: world.status(resources.NODE_SLOS))
