"""Who gets what is reserved: owners by object, controller and selector, and nobody else."""

import asyncio

import pytest

pytestmark = pytest.mark.timeout(120)
TEAM = {"team": "x"}
OWNERS = [{"labelSelector": {"matchLabels": TEAM}}]


async def by_object(holding):
    return [{"object": {"namespace": holding.here.namespace, "name": "own"}}], {}


async def by_controller(holding):
    # Garbage collection deletes pods whose owner does not exist.
    body = {"metadata": {"name": "holder"}, "data": {}}
    made = await holding.api.post(holding.here.path("configmaps"), body)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "holder"}
    reference["uid"] = made["metadata"]["uid"]
    owner = {"controller": {**reference, "namespace": holding.here.namespace}}
    return [owner], {"ownerReferences": [{**reference, "controller": True}]}


async def by_selector(holding):
    return OWNERS, {"labels": TEAM}


async def by_the_second_of_two(holding):
    other = {"object": {"namespace": holding.here.namespace, "name": "somebody-else"}}
    return [other, *OWNERS], {"labels": TEAM}


@pytest.mark.parametrize("kind", [by_object, by_controller, by_selector, by_the_second_of_two])
async def test_the_owner_finds_what_others_do_not_get(holding, kind):
    node = await holding.here.node("a")
    owners, metadata = await kind(holding)
    await holding.reserve("r", owners, {"cpu": "6"})
    assert await holding.available("r") == node
    await holding.pod("alien", "4")
    await holding.refused("alien", "Insufficient cpu")
    body = holding.here.pod_body("own", requests={"cpu": "6"})
    body["metadata"] |= metadata
    await holding.api.post(holding.here.path("pods"), body)
    assert await holding.uses("own", "r") == node
    done = await holding.phase("r", "Succeeded")
    (owner,) = done["status"]["currentOwners"]
    assert (owner["namespace"], owner["name"]) == (holding.here.namespace, "own")
    assert done["status"]["allocated"]["cpu"] == "6"
    await holding.consistent()


async def test_what_a_template_only_limits_is_held_as_well(holding):
    """GPUs are usually written in limits alone: of pods, requests follow from limits."""
    gpu = {"nvidia.com/gpu": "1"}
    await holding.here.node("a", more=gpu)
    resources = {"requests": {"cpu": "2"}, "limits": gpu}
    await holding.reserve("r", OWNERS, spec={"container": {"resources": resources}})
    await holding.available("r")
    await holding.pod("alien", "1", requests=gpu)
    await holding.refused("alien", "Insufficient")
    await holding.pod("own", "2", labels=TEAM, requests=gpu)
    await holding.uses("own", "r")
    await holding.consistent()


async def test_an_owner_that_has_only_one_of_two_labels_is_none(holding):
    await holding.here.node("a")
    both = {"job-id": "spark-123", "app": "spark-executor"}
    await holding.reserve("r", [{"labelSelector": {"matchLabels": both}}])
    await holding.available("r")
    await holding.pod("half", labels={"job-id": "spark-123"})
    await holding.refused("half", "Insufficient cpu")


async def test_owners_share_until_it_is_used_up_and_get_it_back(holding):
    await holding.here.node("a")
    await holding.reserve("r", OWNERS, {"cpu": "6"}, allocateOnce=False)
    await holding.available("r")
    for name in ("first", "second"):
        await holding.pod(name, "3", labels=TEAM)
        await holding.uses(name, "r")
    used = await holding.owned("r", "first", "second")
    assert (used["status"]["phase"], used["status"]["allocated"]["cpu"]) == ("Available", "6")
    # The rest of the node is for all, owners without a place included.
    await holding.pod("third", "2", labels=TEAM)
    await holding.here.bound("third")
    await holding.pod("alien", "3")
    await holding.refused("alien", "Insufficient cpu")
    await holding.here.remove("first")
    await holding.owned("r", "second", *await owning(holding, "third"))
    await holding.pod("fourth", "3", labels=TEAM)
    await holding.uses("fourth", "r")
    await holding.consistent()
    await holding.refused("alien", "Insufficient cpu")


async def owning(holding, *pods):
    """Return those of these pods that use a Reservation."""
    found = [await holding.here.bound(name) for name in pods]
    marked = (pod for pod in found if holding_mark(pod))
    return [pod["metadata"]["name"] for pod in marked]


def holding_mark(pod):
    notes = pod["metadata"].get("annotations", {})
    return "scheduling.koordinator.sh/reservation-allocated" in notes


async def test_one_owner_uses_it_up_and_the_rest_is_free(holding):
    await holding.here.node("a")
    await holding.reserve("r", OWNERS, {"cpu": "6"})
    await holding.available("r")
    await holding.pod("own", "2", labels=TEAM)
    await holding.uses("own", "r")
    await holding.phase("r", "Succeeded")
    await holding.pod("second", "6", labels=TEAM)
    await holding.uses("second")
    await holding.consistent()


async def test_reservations_of_a_full_node_wait_and_are_placed_when_there_is_room(holding):
    await holding.here.node("a")
    await holding.pod("running", "4")
    await holding.here.bound("running")
    await holding.reserve("r", OWNERS, {"cpu": "6"})
    assert "Insufficient cpu" in await holding.waits("r", "Insufficient cpu")
    await holding.here.remove("running")
    await holding.available("r")
    await holding.pod("alien", "4")
    await holding.refused("alien", "Insufficient cpu")


@pytest.mark.parametrize("chosen", [("extender",), ("manager",), ("extender", "manager")])
async def test_a_restart_forgets_nothing(holding, chosen):
    await holding.here.node("a")
    await holding.reserve("r", OWNERS, {"cpu": "6"}, allocateOnce=False)
    await holding.available("r")
    await holding.pod("first", "2", labels=TEAM)
    await holding.uses("first", "r")
    await holding.system.restart(*chosen)
    await holding.pod("alien", "3")
    await holding.refused("alien", "Insufficient cpu")
    await holding.pod("second", "4", labels=TEAM)
    await holding.uses("second", "r")
    used = await holding.owned("r", "first", "second")
    assert used["status"]["allocated"]["cpu"] == "6"
    await holding.consistent()


async def test_pods_of_the_owner_prefer_the_node_with_the_reservation(holding):
    small = await holding.here.node("small")
    await holding.reserve("r", OWNERS, {"cpu": "2"}, allocateOnce=False)
    assert await holding.available("r") == small
    for number in range(3):
        await holding.here.node(f"large-{number}", cpu="64", memory="256Gi")
    await asyncio.gather(*(holding.pod(f"p{i}", "1", labels=TEAM) for i in range(2)))
    for i in range(2):
        assert await holding.uses(f"p{i}", "r") == small
