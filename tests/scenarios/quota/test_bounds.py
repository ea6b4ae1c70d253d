"""Pods fill a quota in every resource, whichever of max, hard and the weights name it."""

import pytest

from api import names, resources

SHORT = "quota.koordinator.sh"
GROUPS = [resource.group for resource in resources.QUOTA_RESOURCES]
POD = {"requests": {"memory": "1Gi"}}
pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {
                "hard": {"cpu": 10, "memory": "10Gi", "pods": 3},
                "min": {"cpu": 1, "memory": "1Gi"},
                "max": {"cpu": 20, "memory": "15Gi"},
            },
            id="hard bounds more than max does",
        ),
        pytest.param(
            {"hard": {"pods": 3}, "max": {"cpu": 20, "memory": "15Gi"}}, id="hard and max apart"
        ),
    ],
)
async def test_a_resource_that_only_hard_names_is_usable_up_to_hard(teams, spec):
    await teams.here.node("a", cpu="100", memory="500Gi")
    team = await teams.quota("team", group=SHORT, **spec)
    await teams.pods(team, "p", 5, **POD)
    await teams.settled(**{team: 3})
    await teams.waits(await teams.waiting(team), "exceedDimensions: [pods]")


@pytest.mark.parametrize("group", GROUPS)
async def test_a_resource_that_max_gains_is_usable_at_once(teams, group):
    await teams.here.node("a", cpu="100", memory="500Gi")
    team = await teams.quota("team", group=group, min={"cpu": 1}, max={"cpu": 20})
    await teams.pods(team, "before", 1, **POD)
    await teams.settled(**{team: 1})
    await teams.api.patch(teams.path(team, group), {"spec": {"max": {"memory": "4Gi"}}})
    await teams.pods(team, "after", 5, **POD)
    await teams.settled(**{team: 4})
    await teams.waits(await teams.waiting(team), "exceedDimensions: [memory]")


@pytest.mark.parametrize("group", GROUPS)
async def test_weights_of_some_resources_leave_the_others_by_their_maximum(teams, group):
    await teams.here.node("a", cpu="100", memory="12Gi")
    amounts = {"max": {"cpu": 20, "memory": "8Gi"}}
    one, two = [await teams.quota(name, group=group, **amounts) for name in ("one", "two")]
    stated = {"metadata": {"annotations": {names.ANNOTATION_QUOTA_WEIGHT: '{"cpu":"1"}'}}}
    await teams.api.patch(teams.path(one, group), stated)
    await teams.pods(one, "one", 9, **POD)
    await teams.settled(**{one: 8})
    # Both have the same weight in memory, so two's half of it is not lent any more.
    await teams.pods(two, "two", 9, **POD)
    await teams.settled(**{one: 6, two: 6})
