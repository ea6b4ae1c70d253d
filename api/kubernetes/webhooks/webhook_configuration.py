"""What stands on a webhook configuration besides the webhooks: how they answer, who withdrew them.

The webhook writes its entries and how it answers. The manager withdraws them by taking the rules
out of the entries, so that the API server calls no webhook, and leaves a note in the same write
that keeps the rules and says until when it holds. The note is renewed while it is needed; when it
has run out its writer is gone, and the webhook may put its rules back by itself.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api import names
from api.wire import durations

Rules = list[dict[str, Any]]

OURS: Final = ".koordinator.sh"
"""How the names of our webhooks end."""
MUTATES_PODS: Final = f"mpod{OURS}"
VALIDATES_PODS: Final = f"vpod{OURS}"
OF_PODS: Final = frozenset({MUTATES_PODS, VALIDATES_PODS})
"""The webhooks that are asked about pods themselves."""


class Answering(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the registered webhook answers."""

    mode: str = "enforce"
    gates: tuple[str, ...] = ()
    """The feature gates that are on."""


class Withdrawal(msgspec.Struct, frozen=True):
    """The note of a withdrawal."""

    since: str
    until: str
    reason: str
    rules: dict[str, Rules] = {}
    """The rules that were taken out, by the name of their webhook."""
    by_hand: bool = False
    """Whether a person wrote it: it holds until that person takes it away."""

    def holds(self, now: float) -> bool:
        """Tell whether the note is still to be respected."""
        return self.by_hand or now < moment(self.until)


def withdrawal(annotations: Mapping[str, str]) -> Withdrawal | None:
    """Read the note; whatever is not written by a program counts as a person's."""
    written = annotations.get(names.ANNOTATION_WITHDRAWN)
    if written is None:
        return None
    try:
        return msgspec.json.decode(written, type=Withdrawal)
    except (msgspec.DecodeError, UnicodeError):
        return Withdrawal("", "", written, by_hand=True)


def answering(annotations: Mapping[str, str]) -> Answering:
    """Read how the webhook answers; it enforces where nothing is said."""
    try:
        return msgspec.json.decode(
            annotations.get(names.ANNOTATION_ADMISSION, "{}"), type=Answering
        )
    except (msgspec.DecodeError, UnicodeError):
        return Answering()


def text(value: Withdrawal | Answering) -> str:
    """Write either as an annotation."""
    return msgspec.json.encode(value, order="sorted").decode()


def moment(written: str) -> float:
    """Read a moment of a note; an unreadable one is long past."""
    try:
        return durations.timestamp(written)
    except durations.TimestampError:
        return 0.0
