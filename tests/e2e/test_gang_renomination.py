"""A member whose Binding fails once: kube-scheduler forgets its node, and its gang still starts."""

import aiohttp
import pytest

from api import names
from tests.planes import gang_stand, raw
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
            assert await extender.figure("koord_extender_gang_moves_total", place="free") > 0
            assert counts == {}
            return
        lost = {path.removesuffix("/binding") for path in fault.lost}
        assert {path for path, count in counts.items() if count > 1} >= lost
