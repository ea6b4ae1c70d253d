"""CPUs and devices that were chosen for a Reservation go to its owners, and to nobody else."""

import aiohttp
import pytest

from api import names
from tests.planes.devices import device_floor, device_recount

pytestmark = pytest.mark.timeout(120)
TEAM = {"team": "x"}
OWNERS = [{"labelSelector": {"matchLabels": TEAM}}]
LSR = {names.LABEL_QOS: "LSR"}


@pytest.fixture
def floor(holding):
    """Nodes with CPUs and devices, in the world of the test."""

    async def page(path):
        url = holding.system.extender.health_url + path
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.text()

    return device_floor.Floor(holding.here, page)


async def test_an_owner_gets_the_cpus_that_were_chosen_for_the_reservation(holding, floor):
    await floor.machine("zones")
    try:
        await holding.reserve("r", OWNERS, {"cpu": "4", "memory": "1Gi"}, labels=LSR)
        await holding.available("r")
        found = await holding.api.get(holding.path("r"))
        kept = device_recount.cpuset(found)
        assert len(kept) == 4
        await floor.exclusive("alien", 4)
        assert not set(device_recount.cpuset(await floor.placed("alien"))) & set(kept)
        requests = {"memory": "1Gi"}
        await holding.pod("own", "4", labels={**TEAM, **LSR}, requests=requests)
        await holding.uses("own", "r")
        own = await floor.placed("own")
        assert set(device_recount.cpuset(own)) == set(kept)
        await holding.phase("r", "Succeeded")
        await floor.agree()
    finally:
        await floor.remove()


async def test_an_owner_gets_the_gpu_that_was_chosen_for_the_reservation(holding, floor):
    await floor.machine("pair")
    try:
        wanted = {"cpu": "1", names.GPU: "100"}
        await holding.reserve("r", OWNERS, wanted)
        await holding.available("r")
        kept = device_recount.minors(await holding.api.get(holding.path("r")))
        assert len(kept) == 1
        await floor.share("alien", 100)
        assert device_recount.minors(await floor.placed("alien")) == [1 - kept[0]]
        await floor.share("late", 50)
        await holding.refused("late", "Insufficient GPU Devices")
        await holding.pod("own", "1", labels=TEAM, requests={names.GPU: "100"})
        await holding.uses("own", "r")
        assert device_recount.minors(await floor.placed("own")) == kept
        await holding.phase("r", "Succeeded")
        await floor.agree()
    finally:
        await floor.remove()
