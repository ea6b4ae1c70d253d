"""The one list of checks, and what their findings amount to."""

from collections.abc import Iterable, Sequence
from typing import Final

from cli.doctor.checkup import (
    admission,
    colocation,
    devices,
    facts,
    findings,
    installation,
    neighbours,
    nodes,
    permissions,
    quotas,
    shapes,
)
from cli.doctor.checkup.scheduler import arguments, configuration, decisions
from domain import wording

CHECKS: Final = (
    *installation.CHECKS,
    *admission.CHECKS,
    configuration.CHECK,
    arguments.CHECK,
    decisions.CHECK,
    permissions.CHECK,
    *nodes.CHECKS,
    neighbours.CHECK,
    colocation.CHECK,
    quotas.CHECK,
    devices.CHECK,
    shapes.CHECK,
)
"""Every check, in the order in which people read the answers."""

FINE, WARNED, FAILED = 0, 3, 4
"""Exit codes; 1 and 2 say that nothing could be examined."""
LEVELS: Final = ("error", "warning", "unknown", "never")


def examine(known: facts.Facts) -> tuple[findings.Finding, ...]:
    """Return the findings of every check."""
    return tuple(finding for check in CHECKS for finding in check.examine(known))


def worst(found: Iterable[findings.Finding]) -> findings.Severity:
    """Return how bad the worst finding is."""
    return max(
        (finding.severity for finding in found),
        key=lambda severity: severity.rank,
        default=findings.Severity.OK,
    )


def exit_code(found: Sequence[findings.Finding], fail_on: str) -> int:
    """Return 0 below the level to fail on, else 4 for errors and 3 for what is less."""
    severity = worst(found)
    if fail_on == "never" or severity.rank < findings.Severity(fail_on).rank:
        return FINE
    return FAILED if severity is findings.Severity.ERROR else WARNED


def summary(found: Sequence[findings.Finding]) -> str:
    """Count the findings by severity, in words."""
    severities = [finding.severity for finding in found]
    parts = [
        wording.count(severities.count(severity), *words)
        for severity, *words in (
            (findings.Severity.ERROR, "error", "errors"),
            (findings.Severity.WARNING, "warning", "warnings"),
            (findings.Severity.UNKNOWN, "not checked", "not checked"),
            (findings.Severity.INFO, "note", "notes"),
            (findings.Severity.OK, "fine", "fine"),
        )
    ]
    return ", ".join(parts)
