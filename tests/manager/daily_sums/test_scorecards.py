"""Scorecards of agents added up: nothing twice, nothing beyond what a node can do."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import catalogue
from api import names, resources
from api.koordinator.metrics import nodemetric
from api.wire import durations
from domain.daily_sums import effects, sums
from manager.daily_sums import scorecards, term
from tests import draws

ONLY = {"controllers": ("dailysums",)}
DATE = "2026-07-01"
MIDNIGHT = durations.timestamp(f"{DATE}T00:00:00Z")
NOON = MIDNIGHT + 12 * 3600
CORES = 16.0


def a_card(date=DATE, **figures):
    return effects.Card(date, effects.Effects(**{"watched": 3600.0, **figures}))


def taken(*cards, stored=effects.NOTHING, now=NOON):
    today = scorecards.Today(DATE, stored)
    for node, card in cards:
        today.take(node, card, CORES, now)
    return today


def test_nodes_are_added_up_and_later_reports_replace_earlier_ones():
    today = taken(("a", a_card(evicted=2.0)), ("b", a_card(would_evict=1.0)))
    today.take("a", a_card(watched=7200.0, evicted=3.0), CORES, NOON)
    found = today.whole()
    assert (found.watched, found.evicted, found.would_evict) == (10_800.0, 3.0, 1.0)


def test_a_report_that_begins_anew_adds_nothing_twice():
    today = taken(("a", a_card(evicted=5.0)))
    for evicted in (0.0, 4.0, 0.0, 5.0, 1.0):
        today.take("a", a_card(watched=60.0, evicted=evicted), CORES, NOON)
    assert (today.whole().evicted, today.whole().watched) == (5.0, 3600.0)


def test_a_successor_goes_on_with_nodes_that_have_left():
    # The stored sums hold a node that is gone; the one that is still there has gone on.
    stored = taken(("a", a_card(evicted=6.0)), ("gone", a_card(evicted=4.0))).whole()
    today = taken(("a", a_card(evicted=6.0)), stored=stored)
    assert today.whole() == stored
    today.take("a", a_card(evicted=7.0), CORES, NOON)
    assert today.whole().evicted == 11.0


@pytest.mark.parametrize(
    "card", [None, a_card("2026-06-30", evicted=9.0), a_card("2026-07-02"), a_card("x")]
)
def test_only_the_present_day_counts(card):
    assert taken(("a", card)).whole() == effects.NOTHING


def test_names_of_nodes_are_bounded(monkeypatch):
    monkeypatch.setattr(scorecards, "MOST_NODES", 3)
    found = taken(*((f"n{number}", a_card()) for number in range(9))).whole()
    assert found.watched == 3 * 3600


FIGURES = [name for name in effects.Effects.__struct_fields__ if name != "reasons"]
WILD = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(float), st.sampled_from([float("nan"), float("inf"), -0.0])
)


@settings(max_examples=draws.at_least(60))
@given(
    st.fixed_dictionaries(dict.fromkeys(FIGURES, WILD)),
    st.dictionaries(st.text(max_size=9), st.tuples(WILD, WILD), max_size=5),
    st.floats(1, 86_400),
)
def test_no_node_can_claim_more_than_one_node_can_do(figures, reasons, seconds):
    written = effects.Effects(
        **figures, reasons={name: effects.Reason(*both) for name, both in reasons.items()}
    )
    found = effects.bounded(written, CORES, seconds)
    assert all(getattr(found, name) >= 0 for name in FIGURES)
    assert max(found.enforced, found.known, found.at_limit, found.watched) <= seconds
    assert found.over <= found.known
    assert found.suppressed + found.would_suppress <= CORES * seconds * (1 + 1e-9)
    assert found.throttled <= found.measured <= 1000 * seconds
    assert found.evicted_online <= found.evicted <= effects.MOST_EVICTIONS
    assert found.would_evict_online <= found.would_evict <= effects.MOST_EVICTIONS
    assert all(
        0 <= figure <= effects.MOST_EVICTIONS
        for one in found.reasons.values()
        for figure in (one.evicted, one.would_evict)
    )
    # Without that, hostile figures leave those of honest nodes as they are.
    assert effects.bounded(found, CORES, seconds) == found


def test_strategies_that_nobody_knows_count_together():
    rows = [{"strategy": f"x{number}", "evicted": 1} for number in range(10)]
    rows.append({"strategy": "memory-evict", "wouldEvict": 2})
    written = {"status": {"scorecard": {"date": DATE, "evictions": rows}}}
    read = effects.card(nodemetric.read_node_metric(written).status.scorecard)
    assert read.effects.reasons == {
        effects.OTHERS: effects.Reason(10, 0), "memory-evict": effects.Reason(0, 2)
    }  # fmt: skip


def test_the_known_reasons_are_the_strategies_that_evict():
    assert effects.REASONS == catalogue.EVICTING


def test_a_file_of_an_earlier_release_is_read_and_one_of_ours_by_it():
    days = sums.added((), DATE, sums.Rates(sums.Cluster(1.0), {}), 60)
    did = effects.Effects(watched=60.4, reasons={"cpu-evict": effects.Reason(1.0, 0.0)})
    text = sums.text(sums.with_effects(days, DATE, did))
    (day,) = sums.read({sums.KEY: text})
    assert day.agents == msgspec.structs.replace(did, watched=60.0)
    plain = msgspec.json.decode(text)
    del plain[0]["agents"]
    (old,) = sums.read({sums.KEY: msgspec.json.encode(plain).decode()})
    assert old.agents == effects.NOTHING


def kept(world):
    found = world.stored(resources.CONFIG_MAPS, names.CONFIG_MAP_REPORT)
    days = sums.read(found["data"]) if found else ()
    return days[-1].agents if days else effects.NOTHING


async def tell(world, node, **figures):
    date = durations.moment(world.clock.now())[:10]
    status = {"scorecard": {"date": date, "seconds": 60, **figures}}
    await world.admin.patch(resources.NODE_METRICS, node, {"status": status}, subresource="status")


async def until(world, condition):
    for _ in range(20):
        await world.clock.advance(term.PERIOD_SECONDS)
        await world.quiet()
        if condition():
            return
    raise AssertionError(kept(world))


async def test_the_manager_adds_up_what_agents_report(world) -> None:
    for name in ("a", "b"):
        await world.node(name, cpu="8")
    async with world.manager(controllers=("nodemetric", "dailysums")):
        await world.until(lambda: world.stored(resources.NODE_METRICS, "b"))
        rows = [{"strategy": "memory-evict", "evicted": 2, "wouldEvict": 0}]
        await tell(world, "a", evictedPods=2, evictions=rows, suppressedCoreSeconds=2**40)
        await tell(world, "b", wouldEvictPods=3)
        await until(world, lambda: kept(world).would_evict == 3)
    found = kept(world)
    assert (found.watched, found.evicted, found.suppressed) == (120, 2, 0)
    assert found.reasons == {"memory-evict": effects.Reason(2, 0)}
    async with world.manager(controllers=("nodemetric", "dailysums")):
        await tell(world, "a", evictedPods=4)
        await until(world, lambda: kept(world).evicted == 4)
    assert kept(world).would_evict == 3
