"""Linux cpu lists."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cpus import cpulists
from tests import processor_time
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


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0-4096," * 3600 + "x", id="many equal ranges"),
        pytest.param(",".join(f"0-{4096 - i}" for i in range(1900)), id="many nested ranges"),
        pytest.param("1," * 4096 + "1", id="many parts"),
        pytest.param("9" * 200_000, id="one long number"),
    ],
)
def test_a_list_of_a_tenant_costs_little_each_time(text):
    # Ten passes of the first took 4 s.
    with processor_time.below(0.5):
        for _ in range(10):
            with contextlib.suppress(cpulists.CpuListError):
                cpulists.parse(text)


def test_a_list_beyond_the_bounds_is_refused():
    for text in ("0," * 8192, "1," * 4096 + "1"):
        with pytest.raises(cpulists.CpuListError, match="more than"):
            cpulists.parse(text)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=30))
def test_overlapping_ranges_are_the_union_of_their_cpus(spans):
    text = ",".join(f"{low}-{high}" for low, high in spans)
    assert cpulists.parse(text) == {c for low, high in spans for c in range(low, high + 1)}


def test_the_same_set_is_written_once():
    """600 cgroups of a machine of 128 cpus get the same set in every tick."""
    every = frozenset(range(0, 128, 2))
    before = cpulists._written.cache_info().misses
    written = {cpulists.text(every) for _ in range(600)}
    assert written == {",".join(map(str, range(0, 128, 2)))}
    assert cpulists._written.cache_info().misses <= before + 1
