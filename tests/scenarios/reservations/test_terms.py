"""On which terms a Reservation is used: policies, affinity, taints, ports, spread, expiry."""

import pytest

from tests.planes.migration import reserving

pytestmark = pytest.mark.timeout(120)
TEAM = {"team": "x"}
OWNERS = [{"labelSelector": {"matchLabels": TEAM}}]


async def reserved(holding, cpu="6", **more):
    """A node with ten cores, two of them in use, and a Reservation there."""
    await holding.here.node("a", cpu="10")
    await holding.pod("other", "2")
    await holding.here.bound("other")
    await holding.reserve("r", OWNERS, {"cpu": cpu}, allocateOnce=False, **more)
    await holding.available("r")


async def test_an_owner_of_an_aligned_one_takes_from_the_node_what_it_lacks(holding):
    await reserved(holding, allocatePolicy="Aligned")
    await holding.pod("own", "7", labels=TEAM)
    await holding.uses("own", "r")
    used = await holding.owned("r", "own")
    assert used["status"]["allocated"]["cpu"] == "7"
    # What it holds beyond the Reservation is not given to others a second time.
    await holding.pod("alien", "2")
    await holding.refused("alien", "Insufficient cpu")
    await holding.consistent()


async def test_an_owner_of_a_restricted_one_gets_no_more_than_is_reserved(holding):
    await reserved(holding, allocatePolicy="Restricted")
    await holding.pod("big", "7", labels=TEAM)
    await holding.refused("big", "Insufficient cpu")
    await holding.pod("own", "6", labels=TEAM)
    await holding.uses("own", "r")
    # It is used up, and a pod without a reservation affinity falls back on what is free.
    await holding.pod("late", "2", labels=TEAM)
    await holding.uses("late")
    await holding.consistent()


async def test_a_pod_uses_one_reservation_of_several(holding):
    await reserved(holding, "3")
    await holding.reserve("r2", OWNERS, {"cpu": "3"}, allocateOnce=False)
    await holding.available("r2")
    await holding.pod("big", "6", labels=TEAM)
    await holding.refused("big", "Insufficient cpu")
    await holding.pod("own", "5", labels=TEAM)
    used = (await holding.here.bound("own"))["metadata"]["annotations"]
    assert reserving.ALLOCATED in used
    await holding.consistent()


async def test_a_pod_that_ignores_reservations_may_use_them_without_owning(holding):
    await reserved(holding)
    label = {"scheduling.koordinator.sh/reservation-ignored": "true"}
    await holding.pod("ignoring", "8", labels=label)
    await holding.uses("ignoring")


async def test_an_affinity_confines_a_pod_to_the_reservation_that_it_names(holding):
    await holding.here.node("a")
    await holding.here.node("b")
    for name in ("r1", "r2"):
        await holding.reserve(name, OWNERS, {"cpu": "6"}, allocateOnce=False)
    nodes = await reserving.together(holding.available("r1"), holding.available("r2"))
    name = holding.here.name("r2")
    await holding.pod("own", "4", labels=TEAM, wants={"name": name})
    assert await holding.uses("own", "r2") == nodes[1]
    # Two cores are left of it, and two of its node.
    await holding.pod("second", "5", labels=TEAM, wants={"name": name})
    await holding.refused("second", "Insufficient cpu")
    await holding.pod("stranger", "1", wants={"name": name})
    await holding.refused("stranger", "reservation")


async def test_an_affinity_selects_among_reservations_by_label(holding):
    await holding.here.node("a")
    await holding.reserve("plain", OWNERS, {"cpu": "3"}, allocateOnce=False)
    await holding.available("plain")
    await holding.pod("picky", "1", labels=TEAM, wants={"reservationSelector": {"pool": "a"}})
    await holding.refused("picky", "reservation")
    await holding.api.patch(holding.path("plain"), {"metadata": {"labels": {"pool": "a"}}})
    await holding.uses("picky", "plain")


@pytest.mark.parametrize(
    ("closed", "toleration"),
    [
        pytest.param(
            {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
            {"key": "k", "operator": "Exists"},
            id="taint",
        ),
        pytest.param(
            {"unschedulable": True},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
            id="unschedulable",
        ),
    ],
)
async def test_closed_ones_take_only_owners_that_tolerate_it(holding, closed, toleration):
    await holding.here.node("a")
    await holding.reserve("r", OWNERS, {"cpu": "6"}, allocateOnce=False, **closed)
    await holding.available("r")
    await holding.pod("plain", "2", labels=TEAM, wants={"reservationSelector": {}})
    await holding.refused("plain", "reservation")
    await holding.pod(
        "tolerant", "2", labels=TEAM,
        wants={"reservationSelector": {}, "tolerations": [toleration]},
    )  # fmt: skip
    await holding.uses("tolerant", "r")


async def test_ports_of_a_node_are_kept_for_owners(holding):
    await holding.here.node("a")
    port = {"ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]}
    await holding.reserve("r", OWNERS, {"cpu": "2"}, spec={"container": port})
    await holding.available("r")

    async def serve(name, **metadata):
        body = holding.here.pod_body(name, requests={"cpu": "1"})
        body["metadata"] |= metadata
        body["spec"]["containers"][0] |= port
        await holding.api.post(holding.here.path("pods"), body)

    await serve("alien")
    await holding.refused("alien", "port")
    await serve("own", labels=TEAM)
    await holding.uses("own", "r")


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": TEAM}, "topologyKey": "kubernetes.io/hostname"},
            ]}}},
            id="anti-affinity",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": TEAM},
            }]},
            id="topology spread",
        ),
    ],
)  # fmt: skip
async def test_owners_that_keep_apart_find_reservations_on_nodes_of_their_own(holding, rule):
    nodes = {await holding.here.node(suffix) for suffix in "ab"}
    for name in ("r1", "r2"):
        # Each takes more than half of a node, so there is one on each.
        await holding.reserve(name, OWNERS, {"cpu": "6"}, labels=TEAM, spec=dict(rule))
        await holding.available(name)
    found = set()
    for name in ("one", "two"):
        await holding.pod(name, "6", labels=TEAM, **rule)
        pod = await holding.here.bound(name)
        assert reserving.ALLOCATED in pod["metadata"]["annotations"]
        found.add(pod["spec"]["nodeName"])
    assert found == nodes
    await reserving.together(holding.phase("r1", "Succeeded"), holding.phase("r2", "Succeeded"))


async def test_what_has_expired_is_free_and_its_owners_run_on(holding):
    await holding.here.node("a")
    await holding.reserve("r", OWNERS, {"cpu": "6"}, allocateOnce=False)
    await holding.available("r")
    await holding.pod("own", "2", labels=TEAM)
    await holding.uses("own", "r")
    await holding.owned("r", "own")
    await holding.pod("alien", "6")
    await holding.refused("alien", "Insufficient cpu")
    await holding.change("r", ttl="1s")
    failed = await holding.phase("r", "Failed")
    ready = next(one for one in failed["status"]["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Expired")
    await holding.uses("alien")
    assert (await holding.here.bound("own"))["status"].get("phase") != "Failed"
    await holding.consistent()


async def test_what_is_deleted_is_free(holding):
    await holding.here.node("a")
    await holding.reserve("r", OWNERS, {"cpu": "6"})
    await holding.available("r")
    await holding.pod("alien", "6")
    await holding.refused("alien", "Insufficient cpu")
    await holding.remove("r")
    await holding.uses("alien")


async def test_a_reservation_is_not_placed_inside_another_one_whose_owner_it_resembles(holding):
    nodes = {await holding.here.node(suffix) for suffix in "ab"}
    for name in ("r1", "r2"):
        await holding.reserve(name, OWNERS, {"cpu": "5"}, labels=TEAM, allocateOnce=False)
    places = await reserving.together(holding.available("r1"), holding.available("r2"))
    assert set(places) == nodes
    await holding.consistent()


@pytest.mark.parametrize("once", [True, False], ids=["allocateOnce", "shared"])
async def test_one_that_is_placed_over_a_running_pod_gets_what_that_pod_leaves(holding, once):
    node = await holding.here.node("a", cpu="10")
    await holding.pod("old", "7", labels=TEAM)
    await holding.here.bound("old")
    await holding.reserve("r", OWNERS, {"cpu": "8"}, preAllocation=True, allocateOnce=once)
    found = await holding.phase("r", "Waiting")
    assert found["status"]["nodeName"] == node
    assert [one["name"] for one in found["status"]["currentOwners"]] == ["old"]
    # Beside the pod, the Reservation keeps one core of the three that are free.
    await holding.pod("small", "2")
    await holding.uses("small")
    await holding.pod("alien", "1")
    await holding.refused("alien", "Insufficient cpu")
    await holding.here.remove("old")
    assert await holding.available("r") == node
    await holding.refused("alien", "Insufficient cpu by node")
    await holding.pod("new", "8", labels=TEAM)
    await holding.uses("new", "r")
    await holding.owned("r", "new")
    assert (await holding.phase("r", "Succeeded" if once else "Available"))["status"]
    await holding.consistent()
