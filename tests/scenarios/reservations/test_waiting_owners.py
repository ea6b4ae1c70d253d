"""Pods that wait are tried again as soon as a Reservation gets its node or gives it back."""

import pytest

pytestmark = pytest.mark.timeout(120)
TEAM = {"team": "x"}
OWNERS = [{"labelSelector": {"matchLabels": TEAM}}]
OTHERS = [{"labelSelector": {"matchLabels": {"team": "y"}}}]


async def test_a_pod_waits_for_its_reservation_and_another_one_for_what_is_kept(holding):
    node = await holding.here.node("a", cpu="8")
    await holding.reserve("theirs", OTHERS, {"cpu": "6"})
    await holding.available("theirs")
    await holding.pod("named", "1", labels=TEAM, wants={"name": holding.here.name("r")})
    await holding.refused("named", "no reservations match reservation affinity")
    await holding.pod("big", "4", labels=TEAM)
    await holding.refused("big", "Insufficient cpu")
    await holding.reserve("r", OWNERS, {"cpu": "2"}, allocateOnce=False)
    # Nothing in-tree has changed for the first pod: only the Reservation is there now.
    assert await holding.available("r") == node
    assert await holding.uses("named", "r") == node
    await holding.refused("big", "Insufficient cpu")
    await holding.remove("theirs")
    assert (await holding.here.bound("big", 60.0))["spec"]["nodeName"] == node
    await holding.consistent()
