"""Linux cpu lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import cpulists
from tests.reference import cases


def answer(case: cases.Case):
    try:
        cpus = cpulists.parse(case.given["string"])
    except cpulists.CpuListError:
        return "error"
    found = {"cpus": sorted(cpus), "size": len(cpus), "string": cpulists.text(cpus)}
    if "other" in case.given:
        other = cpulists.parse(case.given["other"])
        found |= {
            "union": cpulists.text(cpus | other),
            "intersection": cpulists.text(cpus & other),
            "difference": cpulists.text(cpus - other),
            "isSubsetOf": cpus <= other,
            "equalString": cpulists.text(cpus) == cpulists.text(other),
        }
    return found


def recorded(case: cases.Case):
    if "error" in case.expected:
        return "error"
    return {**case.expected, "cpus": case.expected["cpus"] or []}


@pytest.mark.vectors
def test_lists_are_read_and_written_as_recorded():
    cases.check("cpuset_parse", answer, recorded, {})


@given(st.frozensets(st.integers(0, 4096)))
def test_what_is_written_reads_back(cpus):
    assert cpulists.parse(cpulists.text(cpus)) == cpus
