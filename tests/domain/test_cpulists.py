"""Linux cpu lists."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import cpulists

REFERENCE = Path(__file__).parents[1] / "reference" / "cpuset_parse.jsonl.gz"


def test_lists_are_read_as_in_the_reference():
    with gzip.open(REFERENCE, "rt") as lines:
        for number, line in enumerate(lines):
            vector = json.loads(line)
            written, expected = vector["in"]["string"], vector["out"]
            if "error" in expected:
                with pytest.raises(cpulists.CpuListError):
                    cpulists.parse(written)
                continue
            found = cpulists.parse(written)
            assert sorted(found) == (expected["cpus"] or []), number
            assert cpulists.text(found) == expected["string"], number


@given(st.frozensets(st.integers(0, 4096)))
def test_what_is_written_reads_back(cpus):
    assert cpulists.parse(cpulists.text(cpus)) == cpus
