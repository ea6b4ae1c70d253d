"""Halts a profile whose moves do not pay, for longer each time. Pure."""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from descheduler.receipts import receipt
from domain import wording

_LAST_MOMENT: Final = 253_402_300_799.0
"""The end of the year 9999, beyond which no moment can be written."""
_MOST_DOUBLINGS: Final = 32
_PAID: Final = frozenset({receipt.Verdict.PAID})
_COUNTED: Final = frozenset({receipt.Verdict.PAID, receipt.Verdict.NOT_PAID})


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """When a profile is halted, and for how long."""

    window: int = 10
    """Moves of a profile that are looked back at."""
    least: int = 5
    """Moves that have to be known before it is judged."""
    least_paid: float = 0.5
    """Share of them that has to have paid."""
    halt_seconds: float = 1800.0
    """How long it is halted; twice as long each further time in a row ..."""
    longest_halt_seconds: float = 28_800.0
    """... up to this."""


class Settled(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One move whose outcome is known."""

    at: float
    """When it was decided, in seconds since the epoch."""
    paid: bool
    expected: float = 0.0
    gained: float | None = None


class Breaker(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of the moves of one profile."""

    moves: tuple[Settled, ...] = ()
    """The last ones, since it was halted last."""
    halted_at: float = 0.0
    halted_until: Annotated[float, msgspec.Meta(le=_LAST_MOMENT)] = 0.0
    halts: int = 0
    """How often it was halted in a row."""
    why: str = ""
    """The figures for which it was halted."""

    @property
    def latest(self) -> float:
        """Return the moment of the last thing that is known."""
        return max(self.halted_at, *(move.at for move in self.moves), 0.0)

    def is_halted(self, now: float) -> bool:
        """Whether the profile moves nothing at present."""
        return now < self.halted_until

    def sentence(self, profile: str) -> str:
        """Return why and until when the profile is halted."""
        until = datetime.datetime.fromtimestamp(self.halted_until, datetime.UTC)
        return f"profile {profile} is halted until {until:%Y-%m-%d %H:%M} UTC: {self.why}"


NEW: Final = Breaker()


def entered(before: Breaker, one: receipt.Receipt, options: Options, now: float) -> Breaker:
    """Take in a move whose outcome is known; the profile may be halted by it.

    Moves that were decided before a halt do not count against what came after it.
    """
    found = one.outcome
    if found is None or found.verdict not in _COUNTED or one.at <= before.halted_at:
        return before
    entry = Settled(one.at, found.verdict in _PAID, one.gain, found.gain)
    moves = (*before.moves, entry)[-options.window :]
    after = msgspec.structs.replace(before, moves=moves)
    if len(moves) < options.least:
        return after
    share = sum(move.paid for move in moves) / len(moves)
    if share >= options.least_paid:
        # A whole window that pays ends the row of halts.
        is_whole = len(moves) >= options.window
        return msgspec.structs.replace(after, halts=0) if is_whole else after
    doubled = options.halt_seconds * 2.0 ** min(after.halts, _MOST_DOUBLINGS)
    seconds = min(doubled, options.longest_halt_seconds)
    return Breaker((), now, now + seconds, after.halts + 1, _why(moves, options))


def _why(moves: tuple[Settled, ...], options: Options) -> str:
    paid = sum(move.paid for move in moves)
    of = wording.count(len(moves), "move", "moves")
    text = f"{paid} of its last {of} paid, fewer than {options.least_paid:.0%}"
    gained = [move.gained for move in moves if move.gained is not None]
    if not gained:
        return text
    expected = [move.expected for move in moves if move.gained is not None]
    return (
        f"{text}; they gained {_mean(gained):.1f} points on average, "
        f"{_mean(expected):.1f} were expected"
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
