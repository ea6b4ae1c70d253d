"""When the status of quotas is written: how often, after failures, and while admission is ahead."""

import itertools

import msgspec
import pytest

from api import names
from kube.client import errors
from kube.informers import store
from manager.quota import objects
from manager.quota.status import status_controller
from process.runtime import supervise
from tests.manager.quota.conftest import Cluster, a_quota
from tests.manager.quota.status.running_status import QUOTAS, Running


@pytest.fixture
def running(cluster: Cluster):
    async def run(body, pace=None):
        world = Running(cluster, pace or status_controller.Pace())
        async with supervise.Supervisor("test") as tasks:
            tasks.start("statuses", world.statuses.run)
            await body(world)

    return run


async def test_no_quota_is_written_more_than_once_a_second(cluster: Cluster, running) -> None:
    cluster.node("n1")
    cluster.quota(a_quota("q", most={"cpu": "99"}))

    async def churn(world: Running) -> None:
        for number in range(100):
            cluster.pod(f"p{number}", quota="q", node="n1")
            await world.clock.advance(0.05)
        await world.clock.advance(3)
        assert cluster.book.quotas["scheduling.sigs.k8s.io/default/q"].status["used"] == {
            "cpu": "100"
        }
        gaps = [after - before for before, after in itertools.pairwise(world.writer.at)]
        assert min(gaps) >= 1.0
        assert 4 <= len(world.writer.at) <= 8

    await running(churn)


async def test_status_yields_to_gates_that_open(cluster: Cluster, running) -> None:
    cluster.node("n1", cpu="10000")
    for number in range(20):
        cluster.quota(a_quota(f"q{number}", most={"cpu": "9999"}))

    async def churn(world: Running) -> None:
        await world.clock.advance(5)
        before = len(world.writer.at)
        for number in range(400):
            name, team = f"p{number}", f"q{number % 20}"
            cluster.pod(name, quota=team, gates=(names.GATE_QUOTA,))
            cluster.pod(name, quota=team)
            cluster.pod(name, quota=team, node="n1")
            await world.clock.advance(0.025)
        assert len(world.writer.at) - before <= 20 + 0.2 * 10 * 10 + 2
        await world.clock.advance(15)
        for number in range(20):
            found = cluster.book.quotas[f"scheduling.sigs.k8s.io/default/q{number}"]
            assert found.status["used"] == {"cpu": "20"}

    await running(churn, status_controller.Pace(per_second=10.0, burst=20))


async def test_thousands_of_quotas_are_written_within_the_rate(cluster: Cluster, running) -> None:
    count, pace = 2_000, status_controller.Pace(per_second=200.0, burst=20)
    read = objects.quota(a_quota("q", most={"cpu": "9"}))
    seen = cluster.stores.quotas[QUOTAS]
    for number in range(count):
        name = f"q{number}"
        parent = names.ROOT_QUOTA if number < 100 else f"q{number % 100}"
        quota = msgspec.structs.replace(
            read, quota=msgspec.structs.replace(read.quota, name=name, uid=name, parent=parent)
        )
        seen.accept(store.Meta(f"default/{name}", name, number + 1), quota)
    cluster.version = count

    async def write(world: Running) -> None:
        for second in range(12):
            await world.clock.advance(1.0)
            assert len(world.writer.at) <= 20 + 200 * (second + 2)
        assert sorted(set(world.writer.names)) == sorted(f"q{n}" for n in range(count))
        written = len(world.writer.at)
        await world.clock.advance(5.0)
        assert len(world.writer.at) == written

    await running(write, pace)


async def test_a_lost_event_is_made_good(cluster: Cluster, running) -> None:
    cluster.quota(a_quota("q", most={"cpu": "99"}))

    async def lose(world: Running) -> None:
        await world.clock.advance(2)
        listener = cluster.book._listeners.pop()
        cluster.pod("p", quota="q", cpu="3")
        await world.clock.advance(5)
        written = len(world.writer.at)
        await world.clock.advance(62)
        cluster.book._listeners.append(listener)
        assert len(world.writer.at) == written + 1
        notes = cluster.book.stores.quotas[QUOTAS].get("default/q").annotations
        assert notes[names.ANNOTATION_QUOTA_CHILD_REQUEST] == '{"cpu":"3"}'

    await running(lose)


async def test_a_refused_write_concerns_that_quota_alone(cluster: Cluster, running) -> None:
    for name in ("a", "b"):
        cluster.quota(a_quota(name, most={"cpu": "99"}))

    async def refuse(world: Running) -> None:
        world.writer.fails = [errors.Forbidden(403, "Forbidden", "no")]
        await world.clock.advance(30)
        assert sorted(world.writer.names) == ["a", "b"]

    await running(refuse)


async def test_what_admission_has_added_is_not_taken_back_at_once(
    cluster: Cluster, running
) -> None:
    """A pod that admission let in is known to informers a little later."""
    cluster.quota(a_quota("q", most={"cpu": "99"}))

    def says() -> str:
        found = cluster.book.quotas["scheduling.sigs.k8s.io/default/q"]
        return found.annotations[names.ANNOTATION_QUOTA_CHILD_REQUEST]

    async def admit(world: Running) -> None:
        await world.clock.advance(3)
        cluster.quota(
            a_quota("q", most={"cpu": "99"}, annotations={"child-request": '{"cpu":"5"}'})
        )
        await world.clock.advance(8)
        assert says() == '{"cpu":"5"}'
        await world.clock.advance(5)
        assert says() == '{"cpu":"0"}'
        cluster.pod("p", quota="q", cpu="7")
        await world.clock.advance(2)
        cluster.drop_pod("p")
        await world.clock.advance(2)
        assert says() == '{"cpu":"0"}', "what we have written ourselves is corrected at once"

    await running(admit)


async def test_all_else_is_told_while_admission_is_ahead(cluster: Cluster, running) -> None:
    """As after a change of leader, which does not know whose account stands in the object."""
    written = a_quota("q", most={"cpu": "99"}, annotations={"child-request": '{"cpu":"5"}'})
    cluster.quota(written)

    def found():
        return cluster.book.quotas["scheduling.sigs.k8s.io/default/q"]

    async def follow(world: Running) -> None:
        for cpu in (1, 2, 3):
            cluster.pod("p", quota="q", cpu=str(cpu), node="n")
            await world.clock.advance(2)
            assert found().status["used"] == {"cpu": str(cpu)}
            assert found().annotations[names.ANNOTATION_QUOTA_CHILD_REQUEST] == '{"cpu":"5"}'
        await world.clock.advance(6)
        assert found().annotations[names.ANNOTATION_QUOTA_CHILD_REQUEST] == '{"cpu":"3"}'

    await running(follow)


async def test_a_field_that_the_api_server_drops_is_not_written_for_ever(
    cluster: Cluster, running
) -> None:
    cluster.quota(a_quota("q", most={"cpu": "99"}))

    async def drop(world: Running) -> None:
        store_all = world.writer._store

        def without_conditions(step):
            step.body.get("status", {}).pop("conditions", None)
            store_all(step)

        world.writer._store = without_conditions
        await world.clock.advance(200)
        assert len(world.writer.at) <= 3
        cluster.pod("p", quota="q", cpu="1")
        await world.clock.advance(100)
        notes = cluster.book.quotas["scheduling.sigs.k8s.io/default/q"].annotations
        assert notes[names.ANNOTATION_QUOTA_CHILD_REQUEST] == '{"cpu":"1"}'
        assert len(world.writer.at) <= 6

    await running(drop)
