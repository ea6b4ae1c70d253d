"""Counters of what was borrowed: kept by the leader in the status, and gone on from."""

import dataclasses

import pytest

from api.wire import durations
from domain.quota import model
from domain.quota.model import Rules
from domain.quota.shares import decay
from manager.quota import objects
from manager.quota.status import borrowing, status_controller
from process.runtime import supervise
from tests.manager.quota.conftest import Cluster, a_quota
from tests.manager.quota.status.running_status import Running

HALF = 24 * 3600.0
PERIOD = decay.period(HALF)
START = 1_700_000_000.0
FIELDS = [field.name for field in dataclasses.fields(model.Figures)]
NONE = model.Figures(**dict.fromkeys(FIELDS, model.EMPTY))


def using(cpu: int) -> model.Figures:
    """The figures of a quota with a minimum of one core that uses so many milli-cores."""
    return dataclasses.replace(NONE, used={"cpu": cpu}, scaled_minimum={"cpu": 1000})


def quota(amounts=None, at=0.0):
    status = {}
    if at:
        status = {"borrowed": {"time": durations.moment(at), "amountSeconds": amounts or {}}}
    return objects.quota(a_quota("q", least={"cpu": "1"}, most={"cpu": "9"}, status=status)).quota


def test_what_is_borrowed_for_a_part_of_the_time_counts_for_that_part() -> None:
    counters, found = borrowing.Borrowing(), quota()
    counters.resume(found, using(1000), START, HALF)
    counters.follow(found.identity, using(5000), START + 600, HALF)
    counters.follow(found.identity, using(500), START + 1200, HALF)
    counter = counters.due(found, START + PERIOD, HALF)
    assert counter is not None
    expected = decay.advanced(decay.Counter({}, START + 600), {"cpu": 4000}, START + 1200, HALF)
    expected = decay.advanced(expected, {}, START + PERIOD, HALF)
    assert counter.borrowed["cpu"] == pytest.approx(expected.borrowed["cpu"])


def test_a_counter_is_due_once_a_period_and_never_for_those_who_borrow_nothing() -> None:
    counters, idle = borrowing.Borrowing(), quota()
    counters.resume(idle, using(0), START, HALF)
    assert counters.due(idle, START + 9 * PERIOD, HALF) is None
    counters, found = borrowing.Borrowing(), quota({"cpu": "7"}, START)
    counters.resume(found, using(5000), START, HALF)
    assert counters.due(found, START + PERIOD - 1, HALF) is None
    assert counters.due(found, START + PERIOD, HALF) is not None
    counters.forget(found.identity)
    assert counters.due(found, START + PERIOD, HALF) is None


@pytest.mark.parametrize(
    ("away", "counts"),
    [
        pytest.param(PERIOD, True, id="restart"),
        pytest.param(50 * PERIOD, False, id="nobody-counted-for-days"),
    ],
)
def test_a_new_leader_goes_on_from_the_status(away: float, counts: bool) -> None:
    counters, found = borrowing.Borrowing(), quota({"cpu": "3600"}, START)
    counters.resume(found, using(2000), START + away, HALF)
    counter = counters.due(found, START + away, HALF)
    left = decay.Counter({"cpu": 3_600_000}, START)
    borrows = {"cpu": 1000} if counts else {}
    assert counter == decay.advanced(left, borrows, START + away, HALF)


def test_a_moment_that_is_yet_to_come_is_not_waited_for() -> None:
    counters, found = borrowing.Borrowing(), quota({"cpu": "1"}, START + 10 * HALF)
    counters.resume(found, using(2000), START, HALF)
    assert counters.due(found, START + PERIOD, HALF) is not None


@pytest.mark.parametrize("amounts", [{"cpu": "1"}, {}], ids=["much", "nothing"])
def test_a_moment_that_is_yet_to_come_is_corrected_at_once(amounts) -> None:
    counters, found = borrowing.Borrowing(), quota(amounts, START + 10 * HALF)
    counters.resume(found, using(1000), START, HALF)
    counter = counters.due(found, START, HALF)
    assert counter is not None
    assert counter.at == START
    # The clock is set back.
    counter = counters.due(quota({"cpu": "1"}, START), START - HALF, HALF)
    assert counter is not None
    assert counter.at == START - HALF


def test_resources_that_are_forgotten_leave_the_status() -> None:
    patch = borrowing.change({"amountSeconds": {"gpu": "3"}}, decay.Counter({"cpu": 2000.0}, START))
    assert patch == {"time": durations.moment(START), "amountSeconds": {"gpu": None, "cpu": "2"}}


@pytest.mark.parametrize(
    "status", [7, {"borrowed": 7}, {"borrowed": {"time": "soon"}}, {"borrowed": {"time": -1e30}}]
)
def test_whatever_status_somebody_wrote_the_quota_is_read(status) -> None:
    raw = a_quota("q", most={"cpu": "9"})
    raw["status"] = status
    assert objects.quota(raw).quota.borrowed == {}


@pytest.mark.parametrize("half_life", [0.0, 240.0], ids=["off", "on"])
async def test_the_leader_keeps_the_counter_in_the_status(half_life: float) -> None:
    cluster = Cluster(Rules(half_life=half_life))
    cluster.node("n1")
    cluster.quota(a_quota("q", least={"cpu": "1"}, most={"cpu": "9"}))
    cluster.pod("p", quota="q", cpu="5", node="n1")
    world = Running(cluster, status_controller.Pace())
    async with supervise.Supervisor("test") as tasks:
        tasks.start("statuses", world.statuses.run)
        await world.clock.advance(65)
        status = cluster.book.quotas["scheduling.sigs.k8s.io/default/q"].status
        if not half_life:
            assert "borrowed" not in status
            return
        # Four cores for a minute, of which little is forgotten yet, written each ten seconds.
        counted = objects.amounts_of(status["borrowed"]["amountSeconds"])["cpu"] / 1000
        assert 4 * 40 < counted < 4 * 65
        assert 6 <= len(world.writer.at) <= 9
        cluster.drop_pod("p")
        await world.clock.advance(60)
        status = cluster.book.quotas["scheduling.sigs.k8s.io/default/q"].status
        later = objects.amounts_of(status["borrowed"]["amountSeconds"])["cpu"] / 1000
        assert later < counted
