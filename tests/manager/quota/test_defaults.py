"""The reserved quotas: made when absent, never overwritten."""

import pytest

from api import names, resources
from manager.quota.status import defaults
from tests.manager.quota.conftest import a_quota

QUOTAS = resources.ELASTIC_QUOTAS
ONLY = {"controllers": ("quotadefaults",)}


async def test_they_are_made_once_and_again_when_they_go(world) -> None:
    async with world.manager(**ONLY):
        await world.until(lambda: len(world.stored(QUOTAS)) == 3)
        made = {found["metadata"]["name"]: found for found in world.stored(QUOTAS)}
        assert set(made) == set(defaults.RESERVED)
        assert {found["metadata"]["namespace"] for found in made.values()} == {names.NAMESPACE}
        root = made[names.ROOT_QUOTA]["metadata"]["labels"]
        assert root[names.LABEL_QUOTA_IS_PARENT] == "true"
        assert root[names.LABEL_QUOTA_LENT] == "false"
        assert root[names.LABEL_QUOTA_PARENT] == ""
        most = made[names.DEFAULT_QUOTA]["spec"]["max"]
        assert set(most) == {"cpu", "memory"}
        await world.admin.delete(QUOTAS, names.DEFAULT_QUOTA, names.NAMESPACE)
        await world.until(lambda: world.stored(QUOTAS, names.DEFAULT_QUOTA))


@pytest.mark.parametrize("group", resources.QUOTA_RESOURCES, ids=lambda one: one.group)
async def test_what_is_there_stays_wherever_it_is(world, group) -> None:
    raw = a_quota(names.DEFAULT_QUOTA, "default", group=group, most={"cpu": "7"})
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        raw["metadata"].pop(key)
    await world.admin.create(group, raw, "default")
    async with world.manager(**ONLY):
        await world.until(lambda: world.stored(QUOTAS, names.ROOT_QUOTA))
        await world.pass_time(3)
        found = [each for one in resources.QUOTA_RESOURCES for each in world.stored(one)]
        ours = [each for each in found if each["metadata"]["name"] == names.DEFAULT_QUOTA]
        assert [each["spec"]["max"] for each in ours] == [{"cpu": "7"}]


async def test_they_can_be_left_out(world) -> None:
    async with world.manager(controllers=("*", "-quotadefaults")):
        await world.pass_time(3)
        assert world.stored(QUOTAS) == []


async def test_without_the_crd_nothing_is_made_until_it_is_there(world) -> None:
    definition = next(
        found
        for found in world.stored(resources.CRDS)
        if found["metadata"]["name"] == QUOTAS.review_name()
    )
    await world.admin.delete(resources.CRDS, QUOTAS.review_name())
    async with world.manager(**ONLY):
        await world.pass_time(5)
        await world.admin.create(
            resources.CRDS,
            {**definition, "metadata": {"name": QUOTAS.review_name()}, "status": {}},
        )
        await world.pass_time(130)
        assert len(world.stored(QUOTAS)) == 3
