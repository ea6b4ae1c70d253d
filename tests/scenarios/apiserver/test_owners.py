"""What becomes of objects whose owners go."""

import pytest

from tests.planes import raw


def config_map(name, *owners, **meta):
    """A ConfigMap that is owned by others; `blocking` ones wait for it in the foreground."""
    blocking = meta.pop("blocking", False)
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocking,
        }
        for owner in owners
    ]
    meta = {"name": name, "ownerReferences": references, **meta}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


@pytest.fixture
def maps(here):
    return here.path("configmaps")


def is_gone(found):
    return found is None


def is_owned_by(*owners):
    wanted = {owner["metadata"]["uid"] for owner in owners}
    return lambda found: {one["uid"] for one in found["metadata"]["ownerReferences"]} == wanted


async def test_an_owned_object_follows_its_owner(here, maps):
    owner = await here.api.post(maps, config_map("owner"))
    await here.api.post(maps, config_map("owned", owner))
    await here.api.delete(f"{maps}/owner")
    await here.api.wait_until(f"{maps}/owned", is_gone)


async def test_an_object_of_an_owner_that_is_gone_leaves_too(here, maps):
    owner = await here.api.post(maps, config_map("owner"))
    await here.api.delete(f"{maps}/owner")
    await here.api.post(maps, config_map("late", owner))
    await here.api.wait_until(f"{maps}/late", is_gone)


async def test_an_object_that_is_given_to_an_owner_that_is_gone_leaves_too(here, maps):
    owner = await here.api.post(maps, config_map("owner"))
    await here.api.post(maps, config_map("late"))
    await here.api.delete(f"{maps}/owner")
    references = config_map("late", owner)["metadata"]["ownerReferences"]
    await here.api.patch(f"{maps}/late", {"metadata": {"ownerReferences": references}})
    await here.api.wait_until(f"{maps}/late", is_gone)


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_an_object_of_two_owners_stays_with_the_one_that_is_left(here, maps, policy):
    going = await here.api.post(maps, config_map("going"))
    staying = await here.api.post(maps, config_map("staying"))
    await here.api.post(maps, config_map("owned", going, staying, blocking=True))
    await here.api.delete(f"{maps}/going", propagationPolicy=policy)
    await here.api.wait_until(f"{maps}/owned", is_owned_by(staying))
    await here.api.wait_until(f"{maps}/going", is_gone)


@pytest.mark.parametrize("blocking", [False, True])
async def test_in_the_foreground_only_who_blocks_is_waited_for(here, maps, blocking):
    owner = await here.api.post(maps, config_map("owner"))
    body = config_map("owned", owner, blocking=blocking, finalizers=["koord.sh/test"])
    await here.api.post(maps, body)
    await here.api.delete(f"{maps}/owner", propagationPolicy="Foreground")
    await here.api.wait_until(f"{maps}/owned", lambda one: "deletionTimestamp" in one["metadata"])
    if not blocking:
        await here.api.wait_until(f"{maps}/owner", is_gone)
    else:
        assert (await here.api.call("GET", f"{maps}/owner")).status == 200
    await here.api.patch(f"{maps}/owned", {"metadata": {"finalizers": None}}, kind=raw.MERGE_PATCH)
    for name in ("owned", "owner"):
        await here.api.wait_until(f"{maps}/{name}", is_gone)
