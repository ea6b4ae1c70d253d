"""Conditions of members are written at a bounded rate, however large their gang is."""

import types

import pytest

from domain.gangs import sentences
from extender.gangs.telling import conditions
from process.runtime import clock, supervise

MEMBERS = 60


class Written:
    """Counts conditions instead of sending them."""

    def __init__(self):
        self.count = 0

    async def tell(self, pod, said, *, ready):
        del pod, said, ready
        self.count += 1
        return ""


def lacking(seconds):
    return sentences.no_room(
        "Insufficient cpu", member="ns/a-0", placed=1, wanted=MEMBERS, waiting_seconds=seconds
    )


async def test_new_figures_of_a_large_gang_cost_one_write_per_second_at_most():
    time, written = clock.ManualClock(), Written()
    pods = {f"ns/a-{n}": types.SimpleNamespace(uid=f"u{n}", node="") for n in range(MEMBERS)}
    members = [(pod.uid, key) for key, pod in pods.items()]
    told = conditions.Telling(written, pods, time, per_second=50.0, burst=1000)
    async with supervise.Supervisor("telling") as tasks:
        tasks.spawn("telling", told.run())
        told.say(members, lacking(0.0))
        await time.advance(1.0)
        assert written.count == MEMBERS
        for seconds in (20.0, 58.0, 61.0):
            told.say(members, lacking(seconds))
            await time.advance(19.0)
        assert written.count == MEMBERS, "figures alone"
        await time.advance(3.0)
        assert written.count == 2 * MEMBERS


async def test_that_a_gang_is_ready_is_written_once_its_members_are_bound():
    """Before that it would compete with opening gates, and change pods that are being bound."""
    time, written = clock.ManualClock(), Written()
    pods = {f"ns/a-{n}": types.SimpleNamespace(uid=f"u{n}", node="") for n in range(3)}
    members = [(pod.uid, key) for key, pod in pods.items()]
    told = conditions.Telling(written, pods, time, per_second=50.0, burst=1000)
    async with supervise.Supervisor("telling") as tasks:
        tasks.spawn("telling", told.run())
        told.say(members, lacking(0.0))
        await time.advance(1.0)
        assert written.count == 3
        told.say(members, sentences.planned(0, 3), ready=True)
        await time.advance(6.0)
        assert written.count == 3
        for pod in pods.values():
            pod.node = "n1"
        told.placed("u0")
        await time.advance(2.0)
        assert written.count == 6
        assert not len(told), "nothing is kept of pods that are bound"


async def test_that_a_gang_is_ready_is_written_after_a_while_where_nothing_is_bound():
    time, written = clock.ManualClock(), Written()
    pods = {"ns/a-0": types.SimpleNamespace(uid="u0", node="")}
    told = conditions.Telling(written, pods, time, per_second=50.0, burst=1000)
    async with supervise.Supervisor("telling") as tasks:
        tasks.spawn("telling", told.run())
        told.say([("u0", "ns/a-0")], lacking(0.0))
        await time.advance(1.0)
        told.say([("u0", "ns/a-0")], sentences.planned(0, 1), ready=True)
        await time.advance(12.0)
        assert written.count == 2


@pytest.mark.parametrize(
    ("changes", "silent"), [(3, 6.5), (20, 9.5)], ids=["grows for a while", "grows for long"]
)
async def test_a_member_says_nothing_while_what_it_would_say_keeps_changing(changes, silent):
    """As while a large gang is created: that would be two writes for each of its members."""
    time, written = clock.ManualClock(), Written()
    pods = {"ns/a-0": types.SimpleNamespace(uid="u0", node="")}
    told = conditions.Telling(written, pods, time, per_second=50.0, burst=1000)
    began, spoke = time.monotonic(), 0.0
    async with supervise.Supervisor("telling") as tasks:
        tasks.spawn("telling", told.run())
        for number in range(120):
            if number % 6 == 0 and number < 6 * changes:
                told.say([("u0", "ns/a-0")], lacking(float(number)), patience=2.0)
            await time.advance(0.25)
            if written.count and not spoke:
                spoke = time.monotonic() - began
    assert silent - 2.0 <= spoke <= silent + 1.5
