"""Pods that act as Reservations, and the policies of Reservations that share a node."""

import json

import pytest

from api import names
from tests.planes.migration import reserving

pytestmark = pytest.mark.timeout(120)
TEAM = {"team": "x"}
OWNERS = [{"labelSelector": {"matchLabels": TEAM}}]


async def runs(holding, name):
    """Let a pod be Running and Ready, as its kubelet says it."""
    ready = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "conditions": [ready]}
    await holding.api.patch(holding.here.path("pods", name) + "/status", {"status": status})


async def test_a_pod_in_operating_mode_draws_its_owner_and_keeps_its_own_room(holding):
    small = await holding.here.node("small")
    notes = {names.ANNOTATION_RESERVATION_OWNERS: json.dumps(OWNERS)}
    labels = {names.LABEL_OPERATING_MODE: "Reservation"}
    await holding.pod("holder", "4", labels=labels, annotations=notes)
    assert (await holding.here.bound("holder"))["spec"]["nodeName"] == small
    await holding.here.node("large", cpu="64", memory="256Gi")
    wants = {"name": "holder"}
    await holding.pod("early", "1", labels=TEAM, wants=wants)
    await holding.refused("early", "reservation")
    await runs(holding, "holder")
    # It is woken for the pod that now acts as a Reservation.
    used = json.loads(
        (await holding.here.bound("early"))["metadata"]["annotations"][reserving.ALLOCATED]
    )
    assert used["name"] == "holder"
    await holding.pod("second", "1", labels=TEAM, wants=wants)
    await holding.refused("second", "reservation")
    # The pod holds its room itself: no more is free than kube-scheduler counts.
    await holding.here.remove("early")
    await holding.here.remove("second")
    await holding.pod("big", "5", labels=TEAM, wants=wants)
    await holding.refused("big", "Insufficient cpu")
    await holding.here.remove("holder")
    await holding.pod("last", "1", labels=TEAM)
    await holding.uses("last")


async def test_a_reservation_with_a_policy_is_not_placed_beside_one_without(holding):
    first = await holding.here.node("a")
    await holding.reserve("plain", OWNERS, {"cpu": "2"}, allocateOnce=False)
    assert await holding.available("plain") == first
    await holding.reserve(
        "strict", OWNERS, {"cpu": "2"}, allocateOnce=False, allocatePolicy="Restricted"
    )
    await holding.waits("strict", "reservation allocate policy conflict")
    await holding.reserve("plain-too", OWNERS, {"cpu": "2"}, allocateOnce=False)
    assert await holding.available("plain-too") == first
    await holding.remove("plain-too")
    second = await holding.here.node("b")
    assert await holding.available("strict") == second
    await holding.consistent()
