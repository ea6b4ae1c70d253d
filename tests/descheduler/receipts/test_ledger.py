"""Moves are followed from the decision to their outcome, and profiles are halted by them."""

import dataclasses

import msgspec
import pytest

from api import names
from descheduler.framework.planning import history, profiles, round_plan
from descheduler.receipts import breaker, ledger, memory, receipt
from tests.descheduler.receipts import moves

V = receipt.Verdict
NEW = moves.pod("web-2", "b", ready=True)


@pytest.fixture
def books():
    return ledger.Ledger(breaker.Options(least=2), moves.SETTLE, moves.loads)


def jobs(count=1, text=None, **fields):
    notes = {names.ANNOTATION_MIGRATION_RECEIPT: text or receipt.text(moves.expected())}
    one = moves.job(**fields)
    return [
        msgspec.structs.replace(one, name=f"j{n}", uid=f"uid-j{n}", annotations=notes)
        for n in range(count)
    ]


def seen(found, loads=None, *, now=moves.LATER, pods=(NEW,)):
    return moves.world(loads or {"a": 8, "b": 4}, pods, now=now, jobs=found)


def test_a_round_gives_each_move_its_receipt_and_is_remembered(books):
    before = moves.world({"a": 9, "b": 3}, [moves.pod()])
    past = {"uid-web-1": history.Moved(moves.NOW, "default", "a", target="b")}
    dry = dataclasses.replace(moves.move(moves.pod("web-9")), dry_run=True)
    plan = round_plan.RoundPlan(
        moves=(moves.move(), dry), memory=round_plan.RoundMemory(moves=past)
    )
    assert books.decided(plan, before) == {"uid-web-1": moves.expected()}
    assert books.changes() == memory.Memory({}, past)
    assert books.changes() is None
    books.keep_changed()
    assert books.changes() == memory.Memory({}, past)
    assert books.decided(round_plan.RoundPlan(memory=plan.memory), before) == {}
    assert books.changes() is None


def test_a_job_is_settled_once(books):
    found = jobs()
    assert list(books.look(seen(found, now=moves.ENDED))) == []
    told = list(books.look(seen(found)))
    assert [one.receipt.outcome.verdict for one in told] == [V.PAID]
    assert told[0].receipt.sentence.startswith("paid: a cpu 90 % → 80 %")
    assert list(books.look(seen(found))) == []


def test_a_job_that_is_deleted_meanwhile_is_settled_all_the_same(books):
    assert list(books.look(seen(jobs(), now=moves.ENDED))) == []
    assert len(list(books.look(seen([])))) == 1


@pytest.mark.parametrize("text", ["{", '{"sentence": "s"}'])
def test_receipts_that_cannot_be_read_are_left_alone(books, text):
    assert list(books.look(seen(jobs(text=text)))) == []


def test_a_receipt_with_an_outcome_is_settled_already(books):
    told = next(books.look(seen(jobs()))).receipt
    again = ledger.Ledger(breaker.Options(), moves.SETTLE, moves.loads)
    assert list(again.look(seen(jobs(text=receipt.text(told))))) == []


def test_a_profile_is_halted_with_a_sentence_and_moves_on_paper_only(books):
    profile = profiles.Profile("default", "MigrationController")
    other = profiles.Profile("other", "MigrationController")
    told = list(books.look(seen(jobs(2), {"a": 3, "b": 9})))
    assert [one.halted != "" for one in told] == [False, True]
    assert told[1].halted.endswith(
        "0 of its last 2 moves paid, fewer than 50%; they gained -10.0 points on average, 10.0 "
        "were expected"
    )
    assert books.halted(moves.LATER) == {"default": told[1].halted}
    permitted = books.permitted([profile, other], moves.LATER)
    assert [one.dry_run for one in permitted] == [True, False]
    assert books.permitted([profile], moves.LATER + 1800) == (profile,)
    assert books.changes().breakers["default"].halts == 1


def test_a_later_leader_goes_on_from_what_was_remembered(books):
    list(books.look(seen(jobs(2), {"a": 3, "b": 9})))
    kept = memory.read({memory.KEY: memory.text(books.changes())})
    later = ledger.Ledger(breaker.Options(), moves.SETTLE, moves.loads)
    later.restore(kept)
    assert later.halted(moves.LATER) == books.halted(moves.LATER)
    assert later.moves == books.moves
    assert later.changes() is None


@pytest.fixture
def other():
    """The books of another replica."""
    return ledger.Ledger(breaker.Options(least=2), moves.SETTLE, moves.loads)


def test_what_another_leader_has_remembered_meanwhile_counts(books, other):
    list(books.look(seen(jobs())))
    other.restore(books.changes())
    list(other.look(seen(jobs(3)[1:], {"a": 3, "b": 9})))
    assert other.halted(moves.LATER)
    books.restore(other.changes())
    assert books.halted(moves.LATER) == other.halted(moves.LATER)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_another_leader_has_settled_is_not_settled_again(books, other, is_deleted):
    assert list(books.look(seen(jobs(), now=moves.ENDED))) == []
    told = next(other.look(seen(jobs()))).receipt
    books.restore(other.changes())
    left = [] if is_deleted else jobs(text=receipt.text(told))
    assert list(books.look(seen(left))) == []


def test_jobs_that_are_remembered_are_bounded(books, monkeypatch):
    monkeypatch.setattr(ledger, "_MOST", 3)
    list(books.look(seen(jobs(6))))
    assert len(books._settled) == 3


def test_receipts_of_other_names_take_no_place_of_a_configured_profile():
    books = ledger.Ledger(
        breaker.Options(least=2), moves.SETTLE, moves.loads, frozenset({"default"})
    )
    forged = [
        msgspec.structs.replace(
            one,
            uid=f"forged-{number}",
            annotations={
                names.ANNOTATION_MIGRATION_RECEIPT: receipt.text(
                    msgspec.structs.replace(moves.expected(), profile=f"a{number}")
                )
            },
        )
        for number, one in enumerate(jobs(memory.MOST_PROFILES))
    ]
    list(books.look(seen(forged, {"a": 3, "b": 9})))
    list(books.look(seen(jobs(2), {"a": 3, "b": 9})))
    assert "default" in books.halted(moves.LATER)
    kept = memory.read({memory.KEY: memory.text(books.changes())})
    assert len(kept.breakers) == memory.MOST_PROFILES
    later = ledger.Ledger(breaker.Options(), moves.SETTLE, moves.loads, frozenset({"default"}))
    more = {f"0{number}": breaker.NEW for number in range(memory.MOST_PROFILES)}
    later.restore(memory.Memory({**more, **kept.breakers}))
    assert "default" in later.halted(moves.LATER)
    assert len(later._breakers) == memory.MOST_PROFILES
