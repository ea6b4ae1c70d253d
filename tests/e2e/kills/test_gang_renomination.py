"""A member whose Binding fails once: kube-scheduler forgets its node, and its gang still starts."""

import asyncio

import aiohttp
import pytest

from api import names
from tests.e2e.kills import test_gang_kills as kills
from tests.planes import raw
from tests.planes.gangs import gang_stand
from tests.planes.stage import PATIENCE

NODES, MEMBERS, CORES = 240, 8, 4
"""kube-scheduler looks at half of so many nodes; a member needs a whole one."""
FAILING = 4
pytestmark = pytest.mark.timeout(180)


class Fault:
    """Loses the first Bindings of some members on their way."""

    def __init__(self, uplink):
        self.lost = set()
        uplink.before = self._lose

    async def _lose(self, call):
        if call.is_binding and call.path not in self.lost and len(self.lost) < FAILING:
            self.lost.add(call.path)
            raise aiohttp.ClientConnectionError("lost on its way")


def nominations(calls):
    """How often the extender has nominated each member, by its path."""
    found = {}
    for call in calls:
        if call.method == "PATCH" and b"nominatedNodeName" in call.body and b"uid" in call.body:
            path = call.path.removesuffix("/status")
            found[path] = found.get(path, 0) + 1
    return found


async def moves(extender):
    """How many members were placed anew: on free nodes, or on those of other members."""
    name = "koord_extender_gang_moves_total"
    return sum([await extender.figure(name, place=place) for place in ("free", "exchanged")])


@pytest.mark.parametrize("is_ranked", [True, False], ids=["ranked", "anywhere"])
async def test_members_whose_binding_was_lost_find_their_places_and_the_plan_goes_on(
    stage, is_ranked
):
    """Those with a rank are nominated anew, others take places where kube-scheduler looks."""
    notes = {names.ANNOTATION_GANG_NETWORK_INDEX: "1"} if is_ranked else {}
    for number in range(NODES):
        await stage.node(f"n{number}", cpu=str(CORES))
    async with gang_stand.standing(stage, **gang_stand.GATED) as stand:
        fault = Fault(stand.pair.uplink)
        await stand.gangs.pod_group("a", MEMBERS)
        await stand.gangs.gang(
            "a", MEMBERS, form="PodGroup", requests={"cpu": str(CORES)}, annotations=notes
        )
        await stand.gangs.whole("a", MEMBERS)
        extender = stand.pair.extender
        assert len(fault.lost) == FAILING
        again = await extender.figure("koord_extender_gang_renominations_total")
        failed = await extender.figure("koord_extender_gang_plans_total", result="failed")
        assert failed == 0
        assert again >= FAILING * is_ranked

        async def at_rest():
            return await extender.figure("koord_extender_gang_plans_in_force") == 0

        await raw.eventually(at_rest, PATIENCE)
        await stand.unclaimed()
        counts = nominations(stand.pair.uplink.calls)
        if not is_ranked:
            assert await moves(extender) > 0
            assert counts == {}
            return
        lost = {path.removesuffix("/binding") for path in fault.lost}
        assert {path for path, count in counts.items() if count > 1} >= lost


async def test_a_gang_is_whole_after_a_kill_between_bindings_to_places_that_have_moved(stage):
    """What is written on members names the nodes that they were planned on at first."""
    members = 3 * MEMBERS
    for number in range(NODES):
        await stage.node(f"n{number}", cpu=str(CORES))
    async with gang_stand.standing(stage, **gang_stand.GATED) as stand:
        uplink = stand.uplinks["extender"]
        hold = kills.Hold(uplink, "after", kills.bound, members // 2)
        await stand.gangs.pod_group("a", members)
        await stand.gangs.gang("a", members, form="PodGroup", requests={"cpu": str(CORES)})
        await asyncio.wait_for(hold.reached.wait(), PATIENCE)
        assert await moves(stand.pair.extender) > 0
        await stand.kill("extender")
        uplink.reset()
        hold.gone.set()
        await stand.start_again("extender")
        await stand.gangs.whole("a", members)
        await stand.unclaimed()
