"""The condition of a waiting pod says what it waits for; writes are bounded."""

import pytest

from api import names, resources
from domain.quota.waiting import line
from manager.quota import objects
from manager.quota.waiting import gates_conditions
from tests.manager.quota import enforced

BOUNDS = {"cpu": "4", "memory": "100Gi", "pods": "50"}


@pytest.fixture
async def plane(world):
    made = enforced.Plane(world)
    await world.node("n1", cpu="100")
    await made.quota("team", BOUNDS, {"cpu": "4"})
    await made.pod("used", "team", "3", gated=False)
    await made.bind("used")
    return made


async def test_a_pod_is_told_the_sum_and_its_place_and_that_its_gate_has_opened(plane) -> None:
    for number in range(3):
        await plane.pod(f"p{number}", "team", "2", later=1)
    async with plane.manager():
        await plane.run(3)
        told = plane.condition("p1")
        assert (told["status"], told["reason"]) == ("False", line.INSUFFICIENT_QUOTA)
        assert told["message"] == (
            "Insufficient quotas, quotaName: team, runtime: cpu:4,memory:4Gi,pods:4, "
            "used: cpu:3,memory:1Gi,pods:1, pod's request: cpu:2,memory:1Gi,pods:1, "
            "exceedDimensions: [cpu]; place 2 in line"
        )
        since = told["lastTransitionTime"]
        await plane.delete("used")
        await plane.run(12)
        assert plane.open() == ["p0", "p1"]
        assert plane.condition("p0")["status"] == "True"
        assert plane.condition("p0")["reason"] == gates_conditions.OPENED
        assert plane.condition("p0")["lastTransitionTime"] > since
        moved = plane.condition("p2")
        assert moved["message"].endswith("place 1 in line")
        assert (moved["reason"], moved["lastTransitionTime"]) == (line.WAITING_IN_LINE, since)


async def test_a_pod_that_found_no_node_is_told_when_others_have_taken_its_room(plane) -> None:
    await plane.pod("p0", "team", "2")
    await plane.pod("p1", "team", "2", later=1)
    async with plane.manager() as life:
        await plane.run(3)
        await plane.delete("used")
        await plane.run(1)
        assert plane.open() == ["p0", "p1"]
        for name in ("p0", "p1"):
            await plane.unschedulable(name)
        await plane.run(6)
        # No room on nodes is no shortage of the quota.
        assert [plane.condition(name)["status"] for name in ("p0", "p1")] == ["True", "True"]
        await plane.pod("other", "team", "3", gated=False)
        await plane.bind("other")
        await plane.run(6)
        told = plane.condition("p1")
        assert (told["status"], told["reason"]) == ("False", line.INSUFFICIENT_QUOTA)
        assert told["message"] == (
            "Insufficient quotas, quotaName: team, runtime: cpu:4,memory:3Gi,pods:3, "
            "used: cpu:3,memory:1Gi,pods:1, pod's request: cpu:2,memory:1Gi,pods:1, "
            "exceedDimensions: [cpu]; its gate was opened before, and no node had room for it"
        )
        written = life.registry.value("koord_quota_conditions_total", {"result": "written"})
        await plane.run(30)
        assert plane.condition("p1") == told
        assert life.registry.value("koord_quota_conditions_total", {"result": "written"}) == written
        await plane.delete("other")
        await plane.run(6)
        assert plane.condition("p1")["status"] == "True"
        assert plane.condition("p1")["lastTransitionTime"] > told["lastTransitionTime"]
        await plane.bind("p1")
        await plane.run(12)
        assert plane.condition("p1")["status"] == "True"


async def test_a_pod_with_an_open_gate_does_not_wait_for_quota_where_gates_hold_none(plane) -> None:
    await plane.pod("p0", "team", "2", gated=False)
    await plane.unschedulable("p0")
    await plane.switch(quota_gates="off")
    async with plane.manager():
        await plane.run(12)
        assert plane.condition("p0") is None
        await plane.switch(quota_gates="enforce")
        await plane.run(12)
        assert plane.condition("p0")["status"] == "False"
        await plane.switch(quota_gates="off")
        await plane.run(12)
        assert plane.condition("p0")["status"] == "True"


async def test_other_conditions_stay_and_what_stands_is_not_written_again(plane) -> None:
    await plane.pod("p0", "team", "2")
    async with plane.manager() as life:
        await plane.run(30)
        kinds = {one["type"] for one in plane.found("p0")["status"]["conditions"]}
        assert kinds >= {"PodScheduled", names.CONDITION_QUOTA}
        assert life.registry.value("koord_quota_conditions_total", {"result": "written"}) == 1
    async with plane.manager() as life:
        await plane.run(30)
        assert life.registry.value("koord_quota_conditions_total", {"result": "written"}) is None


async def test_figures_alone_are_no_reason_to_write(plane) -> None:
    await plane.pod("p0", "team", "4")
    async with plane.manager() as life:
        await plane.run(3)
        for number in range(4):
            await plane.set_quota("team", max={"cpu": f"{4 - 0.1 * number}"})
            await plane.run(11)
        assert life.registry.value("koord_quota_conditions_total", {"result": "written"}) == 1


async def test_pods_that_are_let_in_soon_are_told_nothing(plane) -> None:
    await plane.pod("p0", "team", "1")
    async with plane.manager() as life:
        await plane.run(5)
        assert plane.condition("p0") is None
        assert life.registry.value("koord_quota_conditions_total", {"result": "written"}) is None


async def test_a_flood_of_one_team_leaves_turns_to_the_others(plane) -> None:
    await plane.quota("small", {"cpu": "1"})
    for number in range(40):
        await plane.pod(f"f{number:02}", "team", "2")
    await plane.pod("quiet", "small", "2")
    pace = gates_conditions.Pace(per_second=2, burst=4, patience_seconds=0.0)
    duties = enforced.duties(conditions=pace)
    async with plane.manager(duties) as life:
        await plane.run(2)
        assert plane.condition("quiet") is not None
        await plane.run(8)
        written = life.registry.value("koord_quota_conditions_total", {"result": "written"})
        assert written <= 4 + 2 * 11


async def test_conditions_yield_to_gates_that_open(plane) -> None:
    await plane.quota("wide", {"cpu": "90"})
    for number in range(20):
        await plane.pod(f"f{number:02}", "team", "2")
    pace = gates_conditions.Pace(per_second=2, burst=4, patience_seconds=0.0)
    async with plane.manager(enforced.duties(conditions=pace)) as life:
        for number in range(30):
            await plane.pod(f"w{number:02}", "wide", "1")
            await plane.run(0.33)
        assert sum(name.startswith("w") for name in plane.open()) >= 28
        written = life.registry.value("koord_quota_conditions_total", {"result": "written"})
        assert written <= 4 + 0.2 * 10 + 1
        await plane.run(10)
        written = life.registry.value("koord_quota_conditions_total", {"result": "written"})
        assert written >= 15


async def test_a_pod_that_is_gone_harms_nobody(plane) -> None:
    for number in range(2):
        await plane.pod(f"p{number}", "team", "2", later=1)
    async with plane.manager():
        await plane.run(0.5)
        await plane.world.admin.delete(resources.PODS, "p0", "default", grace_seconds=0)
        await plane.run(3)
        assert plane.condition("p1")["message"].endswith("place 1 in line")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(1, "place 1 in line", id="first"),
        pytest.param(10, "place 10 in line", id="last-exact"),
        pytest.param(11, "about place 20 in line", id="tens"),
        pytest.param(100, "about place 100 in line", id="hundred"),
        pytest.param(101, "about place 200 in line", id="hundreds"),
        pytest.param(19_999, "about place 20000 in line", id="far"),
    ],
)
def test_places_are_coarse_far_back(number, expected) -> None:
    assert gates_conditions.place(number) == expected


def test_the_meaning_leaves_figures_out() -> None:
    text = "Insufficient quotas, used: cpu:{}, exceedDimensions: [cpu]; place 1 in line"
    one, other = (objects.Told("r", text.format(n)) for n in (1, 2))
    assert gates_conditions.meaning(one) == gates_conditions.meaning(other)
    assert gates_conditions.meaning(one) != gates_conditions.meaning(objects.Told("r", "x"))
