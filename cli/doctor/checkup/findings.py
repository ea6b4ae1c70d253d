"""The words of a check: what can be wrong, how bad it is, and what to do about it."""

import dataclasses
import enum
from collections.abc import Callable, Iterator

from cli import reading
from cli.doctor.checkup import facts


class Severity(enum.StrEnum):
    """How bad a finding is, from harmless to harmful."""

    OK = "ok"
    INFO = "info"
    """Worth knowing; nothing has to be done."""
    UNKNOWN = "unknown"
    """Could not be checked."""
    WARNING = "warning"
    """Works, but not as well or not as safely as it should."""
    ERROR = "error"
    """Something does not work."""

    @property
    def rank(self) -> int:
        """Return the place in the order above."""
        return list(type(self)).index(self)


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, about one object."""

    check: str
    severity: Severity
    sentence: str
    remedy: str = ""
    object: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Trap:
    """Something that can be wrong."""

    name: str
    severity: Severity
    title: str
    """What is wrong, for the manual."""
    remedy: str

    def found(self, sentence: str, thing: str = "", *, remedy: str = "") -> Finding:
        """Say that this is the case here."""
        return Finding(self.name, self.severity, sentence, remedy or self.remedy, thing)


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One topic: its question, what it can find, and how."""

    name: str
    fine: str
    """What is said when nothing is wrong."""
    traps: tuple[Trap, ...]
    run: Callable[[facts.Facts], Iterator[Finding]]

    def examine(self, known: facts.Facts) -> tuple[Finding, ...]:
        """Return what was found; what could not be checked is said, and never nothing."""
        found: list[Finding] = []
        try:
            found.extend(self.run(known))
        except facts.UnknownError as missing:
            found.append(could_not(self.name, missing.unknown))
        except reading.UNREADABLE as error:
            # What others wrote must not keep the other checks from being made.
            found.append(could_not(self.name, facts.Unknown("what was read", reading.why(error))))
        return tuple(found) or (Finding(self.name, Severity.OK, self.fine),)


def could_not(check: str, unknown: facts.Unknown) -> Finding:
    """Say that something could not be checked."""
    return Finding(
        check,
        Severity.UNKNOWN,
        f"could not be checked: {unknown.what}: {unknown.reason}",
        unknown.remedy,
    )


def some(names: list[str], most: int = 5) -> str:
    """Name a few of many things."""
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"
