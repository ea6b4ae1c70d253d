"""Which of the files that are to be written or put back could not be, over many ticks.

A tick asks for what is new and for a part of the rest, so that the outcome of the latest one does
not say whether everything holds. Pure.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from agent.model import edits


class Failure(msgspec.Struct, frozen=True):
    """One file that could not be written."""

    reason: str
    release: bool
    """Whether it was to be put back."""


Failures = Mapping[edits.Key, Failure]


def after(
    before: Failures,
    asked: Iterable[edits.Edit],
    failed: Failures,
    owed: Callable[[edits.Key], bool],
) -> Failures:
    """Return what is not written after a tick that asked for some edits.

    A file that is put back later, unasked, is done once it is not owed any more.
    """
    if not before:
        return failed
    tried = {edit.key for edit in asked}
    stands = {
        key: one
        for key, one in before.items()
        if key not in tried and (not one.release or owed(key))
    }
    return {**stands, **failed}
