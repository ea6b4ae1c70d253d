"""Whether every object that is looked at has the shape that its kind should have."""

from collections.abc import Iterator

from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain import wording

UNREADABLE = Trap(
    "objects.unreadable", Severity.WARNING,
    "Objects have an unexpected shape: no process reads them, and this report leaves them out",
    "look at them: `kubectl get KIND NAME -o yaml`; their author has to correct them",
)  # fmt: skip


def shapes(known: facts.Facts) -> Iterator[findings.Finding]:
    """Name what could not be read."""
    odd = list(facts.given(known.unreadable))
    if odd:
        objects = wording.count(len(odd), "object", "objects")
        yield UNREADABLE.found(f"{objects} cannot be read: {findings.some(odd)}", odd[0])


CHECK = findings.Check("objects", "every object can be read", (UNREADABLE,), shapes)
