"""The list of checks, and what their findings amount to."""

import dataclasses
import pathlib
import re

import pytest

from cli.doctor.checkup import checks, facts, findings

MANUAL = pathlib.Path(__file__).parents[4] / "docs" / "doctor.md"
SEVERITY = findings.Severity


def test_a_healthy_cluster_is_fine_and_every_check_says_so(healthy):
    found = checks.examine(healthy)
    assert [f.severity for f in found] == [SEVERITY.OK] * len(checks.CHECKS)
    assert [f.check for f in found] == [check.name for check in checks.CHECKS]
    assert checks.exit_code(found, "warning") == 0


def test_when_nothing_can_be_read_every_check_says_so(healthy):
    unread = facts.Unknown("it", "501 Not Implemented")
    kept = {"namespace": healthy.namespace, "now": healthy.now}
    known = facts.Facts(
        **{field.name: kept.get(field.name, unread) for field in dataclasses.fields(healthy)}
    )
    found = checks.examine(known)
    assert {f.severity for f in found} == {SEVERITY.UNKNOWN}
    assert {f.check for f in found} == {check.name for check in checks.CHECKS}
    assert all("could not be checked: it: 501" in f.sentence for f in found)


def test_traps_have_names_of_their_own_and_a_remedy():
    traps = [trap for check in checks.CHECKS for trap in check.traps]
    names = [trap.name for trap in traps]
    assert len(set(names)) == len(names)
    for trap in traps:
        assert re.fullmatch(r"[a-z]+\.[a-z0-9-]+", trap.name)
        assert trap.severity in (SEVERITY.INFO, SEVERITY.WARNING, SEVERITY.ERROR)
        assert trap.title
        assert trap.remedy


def of(*severities):
    return [findings.Finding("c", severity, "s") for severity in severities]


@pytest.mark.parametrize(
    ("severities", "fail_on", "code"),
    [
        ([], "warning", 0),
        ([SEVERITY.INFO], "unknown", 0),
        ([SEVERITY.UNKNOWN], "error", 0),
        ([SEVERITY.UNKNOWN], "unknown", 3),
        ([SEVERITY.WARNING, SEVERITY.OK], "error", 0),
        ([SEVERITY.WARNING, SEVERITY.OK], "warning", 3),
        ([SEVERITY.ERROR, SEVERITY.WARNING], "error", 4),
        ([SEVERITY.ERROR], "warning", 4),
        ([SEVERITY.ERROR], "never", 0),
    ],
)
def test_exit_codes(severities, fail_on, code):
    assert checks.exit_code(of(*severities), fail_on) == code


def test_the_summary_counts():
    found = of(SEVERITY.ERROR, SEVERITY.OK, SEVERITY.OK, SEVERITY.UNKNOWN)
    assert checks.summary(found) == "1 error, 0 warnings, 1 not checked, 0 notes, 2 fine"


def findings_table():
    """The table of everything that can be found, as Markdown."""
    rows = ["| finding | severity | what it means | remedy |", "|---|---|---|---|"]
    rows += [
        f"| `{trap.name}` | {trap.severity} | {trap.title} | {trap.remedy} |"
        for check in checks.CHECKS
        for trap in check.traps
    ]
    return "\n".join(rows)


def test_the_manual_lists_everything_that_can_be_found():
    text = MANUAL.read_text(encoding="utf-8")
    _, _, rest = text.partition("<!-- findings -->\n")
    table, _, _ = rest.partition("\n<!-- end of findings -->")
    assert table.strip() == findings_table()


def test_few_of_many_names_are_told():
    assert findings.some(["a", "b"]) == "a, b"
    assert findings.some(list("abcdefg"), 2) == "a, b and 5 more"
