"""Gates open the moment quota frees, in fair order, and never for more than fits."""

import asyncio

import pytest

from api import names, resources
from kube.client import errors
from process.configuration import switches
from tests.manager.quota import enforced

BOUNDS = {"cpu": "4", "memory": "100Gi", "pods": "50"}


@pytest.fixture
async def plane(world):
    made = enforced.Plane(world)
    await world.node("n1", cpu="100")
    await made.quota("team", BOUNDS, {"cpu": "4"})
    return made


async def test_as_many_as_fit_go_and_the_next_when_one_ends(plane) -> None:
    for number in range(3):
        await plane.pod(f"p{number}", "team", "2", later=1)
    async with plane.manager():
        await plane.run(0.2)
        assert plane.open() == ["p0", "p1"]
        await plane.schedule()
        await plane.run(1)
        assert plane.gated() == ["p2"]
        await plane.delete("p0")
        await plane.run(0.1)
        assert plane.open() == ["p2"]


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda p: p.status("used", {"phase": "Succeeded"}), id="succeeded"),
        pytest.param(
            lambda p: p.status("used", {"phase": "Failed", "reason": "Evicted"}), id="evicted"
        ),
        pytest.param(lambda p: p.world.admin.delete(resources.NODES, "n2"), id="node-gone"),
        pytest.param(lambda p: p.set_quota("team", max={"cpu": "8"}), id="maximum-raised"),
        pytest.param(
            lambda p: p.world.admin.patch(
                resources.PODS,
                "used",
                {"metadata": {"labels": {names.LABEL_QUOTA_NAME: "other"}}},
                namespace="default",
            ),
            id="moved-to-another-quota",
        ),
    ],
)
async def test_what_frees_quota_frees_it_at_once(plane, happens) -> None:
    await plane.world.node("n2", cpu="100")
    await plane.quota("other", BOUNDS)
    await plane.pod("used", "team", "3", gated=False)
    await plane.bind("used", "n2")
    await plane.pod("waits", "team", "3")
    async with plane.manager():
        await plane.run(1)
        assert plane.gated() == ["waits"]
        await happens(plane)
        await plane.run(0.2)
        assert plane.open() == ["waits"]


async def test_a_borrower_waits_until_nodes_come(plane) -> None:
    await plane.world.admin.delete(resources.NODES, "n1")
    await plane.world.node("small", cpu="2")
    await plane.pod("large", "team", "3")
    async with plane.manager():
        await plane.run(1)
        assert plane.gated() == ["large"]
        await plane.world.node("more", cpu="2")
        await plane.run(0.2)
        assert plane.open() == ["large"]


async def test_who_was_let_in_counts_until_the_scheduler_finds_no_node(plane) -> None:
    await plane.pod("first", "team", "3")
    async with plane.manager():
        await plane.run(0.2)
        await plane.pod("second", "team", "2", created=plane.clock.now())
        await plane.run(5)
        assert plane.open() == ["first"]
        await plane.unschedulable("first")
        await plane.run(0.2)
        assert plane.open() == ["first", "second"]


async def test_a_pod_that_no_scheduler_tries_withholds_nothing_for_ever(plane) -> None:
    await plane.pod("nobodys", "team", "4", later=1, scheduler="nobody")
    await plane.pod("waits", "team", "3", later=1)
    async with plane.manager():
        await plane.run(290)
        assert plane.open() == ["nobodys"]
        await plane.run(15)
        assert plane.open() == ["nobodys", "waits"]


async def test_pods_that_are_being_deleted_count_until_they_are_gone_and_are_not_let_in(
    plane,
) -> None:
    await plane.pod("running", "team", "4", gated=False)
    await plane.bind("running")
    await plane.pod("deleted", "team", "2", later=1, finalizers=["example.com/slow"])
    await plane.pod("waits", "team", "2", later=1)
    await plane.world.admin.delete(resources.PODS, "deleted", "default")
    await plane.world.admin.delete(resources.PODS, "running", "default")
    async with plane.manager():
        await plane.run(2)
        assert plane.leaving() == ["deleted", "running"]
        assert plane.open() == []
        await plane.delete("running")
        await plane.run(0.2)
        assert plane.open() == ["waits"]


async def test_runtime_follows_what_other_quotas_ask_for(plane) -> None:
    """A borrower is let in as long as the lender asks for nothing, and not any more then."""
    await plane.world.admin.delete(resources.NODES, "n1")
    await plane.world.node("n2", cpu="4")
    await plane.quota("lender", BOUNDS, {"cpu": "3"})
    await plane.set_quota("team", min={"cpu": "1"})
    await plane.pod("b0", "team", "2")
    async with plane.manager():
        await plane.run(0.2)
        assert plane.open() == ["b0"]
        await plane.pod("l0", "lender", "3")
        await plane.pod("b1", "team", "1")
        await plane.run(0.2)
        assert plane.open() == ["b0", "l0"]
        await plane.delete("l0")
        await plane.run(0.2)
        assert plane.open() == ["b0", "b1"]


async def test_other_gates_are_left_alone_and_withhold_nothing(plane) -> None:
    await plane.pod("blocked", "team", "4", gates=("example.com/wait",))
    await plane.pod("free", "team", "4", created=5.0)
    async with plane.manager():
        await plane.run(0.2)
        assert plane.open() == ["free"]
        gates = plane.found("blocked")["spec"]["schedulingGates"]
        assert [one["name"] for one in gates] == [names.GATE_QUOTA, "example.com/wait"]


class TestNobodyIsStuck:
    """Gates without a reason open."""

    async def test_of_a_quota_that_was_deleted(self, plane) -> None:
        await plane.pod("waits", "team", "9")
        async with plane.manager():
            await plane.run(1)
            await plane.world.admin.delete(resources.ELASTIC_QUOTAS, "team", "default")
            await plane.run(9)
            assert plane.gated() == ["waits"], "it may be on its way to be replaced"
            await plane.run(2)
            assert plane.open() == ["waits"]

    @pytest.mark.parametrize(
        "given",
        [
            pytest.param({"namespace": "kube-system"}, id="kube-system"),
            pytest.param({"namespace": names.NAMESPACE}, id="own-namespace"),
            pytest.param(
                {"spec": {"priorityClassName": "system-cluster-critical"}}, id="system-critical"
            ),
            pytest.param({"quota": ""}, id="no-quota"),
        ],
    )
    async def test_of_pods_that_are_exempt(self, plane, given) -> None:
        await plane.pod("exempt", given.pop("quota", "team"), "9", **given)
        async with plane.manager():
            await plane.run(0.5)
            assert plane.gated() == []

    @pytest.mark.parametrize("mode", [switches.Mode.OFF, switches.Mode.OBSERVE])
    async def test_when_it_is_switched_off_live(self, plane, mode) -> None:
        for number in range(3):
            await plane.pod(f"p{number}", "team", "3", later=1)
        async with plane.manager() as life:
            await plane.run(1)
            assert plane.gated() == ["p1", "p2"]
            await plane.switch(quota_gates=mode.value)
            await plane.run(0.5)
            assert plane.gated() == []
            await plane.pod("p4", "team", "3")
            await plane.run(0.5)
            assert plane.gated() == []
            assert life.registry.value("koord_quota_gates_total", {"result": "opened"}) == 4

    async def test_after_a_manager_was_away_everything_drains(self, plane) -> None:
        for number in range(8):
            await plane.pod(f"p{number}", "team", "1")
        async with plane.manager():
            await plane.run(0.2)
        await plane.schedule()
        await plane.run(60)
        for number in range(4):
            await plane.delete(f"p{number}")
        async with plane.manager():
            await plane.run(0.5)
            assert plane.gated() == []


async def test_twenty_creators_at_once_never_exceed_the_maximum(plane) -> None:
    """Creators, a scheduler and a manager that restarts, all at the same time."""

    async def create(who) -> None:
        for number in range(3):
            await plane.pod(f"c{who:02}-{number}", "team", "1")

    life = plane.manager()
    await life.__aenter__()
    await asyncio.gather(*(create(who) for who in range(20)))
    done = 0
    for step in range(100):
        await plane.run(0.1)
        assert plane.admitted("team") <= 4000
        if step == 7:
            await life.__aexit__(None, None, None)
            life = plane.manager()
            await life.__aenter__()
        await plane.schedule()
        bound = [pod["metadata"]["name"] for pod in plane.pods() if pod["spec"].get("nodeName")]
        for name in bound[:2]:
            await plane.delete(name)
            done += 1
        if not plane.pods():
            break
    await life.__aexit__(None, None, None)
    assert done == 60


class Fence:
    """What ends the writes of a leader."""

    def __init__(self):
        self.ended = False

    def check(self):
        if self.ended:
            raise errors.Deposed("the lease has ended")

    def remaining(self):
        return 10.0


async def test_two_managers_let_in_no_more_than_one(plane) -> None:
    """The leader changes while gates are open and pods are being bound."""
    for number in range(12):
        await plane.pod(f"p{number:02}", "team", "1")
    fence = Fence()
    first = plane.manager(guard=fence)
    await first.__aenter__()
    fence.ended = True
    second = plane.manager(enforced.duties(settle_seconds=1.0))
    await second.__aenter__()
    for _ in range(8):
        await plane.run(0.5)
        assert plane.admitted("team") <= 4000
        await plane.schedule()
        bound = [pod["metadata"]["name"] for pod in plane.pods() if pod["spec"].get("nodeName")]
        for name in bound[:2]:
            await plane.delete(name)
    await second.__aexit__(None, None, None)
    await first.__aexit__(None, None, None)
    assert len(plane.pods()) < 12


class Unlucky:
    """A writer of which nobody knows whether the first patch of p2 arrived."""

    def __init__(self, writer):
        self.writer = writer
        self.met = False

    async def carry_out(self, wanted):
        if not self.met and getattr(wanted.steps[0], "name", "") == "p2":
            self.met = True
            raise errors.ServerFailure(500)
        return await self.writer.carry_out(wanted)


async def test_a_write_that_may_have_arrived_counts_until_the_watch_would_show_it(plane) -> None:
    await plane.pod("p0", "team", "3", later=1)
    await plane.pod("p1", "team", "3", later=1)
    async with plane.manager(wrap=Unlucky) as life:
        await plane.run(0.5)
        assert plane.open() == ["p0"]
        await plane.pod("p2", "team", "1", later=1)
        await plane.pod("p3", "team", "1", later=1)
        await plane.run(5)
        assert plane.gated() == ["p1", "p2", "p3"], "p2 may be open"
        await plane.run(10)
        assert plane.gated() == ["p1", "p3"]
        assert life.registry.value("koord_quota_gates_total", {"result": "failed"}) == 1
