"""Figures are what claims are made of, so their arithmetic and their shape are tested."""

import json
import os

import pytest

from benchmarks import figures
from benchmarks.plane import rig


def test_a_ratio_is_the_median_of_ratios_of_pairs_and_not_the_ratio_of_medians():
    found = figures.paired("F1", "pods/s", "pods/s", [100, 30, 60], [200, 30, 80], "stock")
    assert (found.value, found.ratio, found.min, found.max, found.runs) == (60, 0.75, 0.5, 1, 3)


def test_pairs_of_different_length_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        figures.paired("F1", "pods/s", "pods/s", [100, 30], [200], "stock")


def test_a_figure_is_one_line_with_every_key():
    line = figures.plain("F10.rss", "memory", "MiB", [210.04, 200], "goal 400").line()
    assert line.startswith(figures.PREFIX)
    assert json.loads(line) == {
        "figure": "F10.rss",
        "what": "memory",
        "value": 205.0,
        "unit": "MiB",
        "ratio": None,
        "against": "goal 400",
        "min": 200.0,
        "max": 210.0,
        "runs": 2,
    }


@pytest.mark.parametrize(("share", "expected"), [(0.5, 6), (0.99, 10), (0.0, 1)])
def test_percentiles_are_values_that_were_seen(share, expected):
    assert figures.percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == expected


def test_a_process_is_looked_up_in_the_system():
    before = figures.cpu_seconds(os.getpid())
    assert figures.resident(os.getpid()) > 10
    assert figures.cpu_seconds(os.getpid()) >= before
    assert "cores" in figures.machine()


def test_the_identity_of_a_watched_object_ends_where_its_length_says():
    # What follows the version in protobuf begins with a byte that is a digit as well.
    uid = b"\x2a\x24" + b"07a56c64-2a06-4558-bd50-8c1dc7491dad"
    found = rig.identity_of(b"junk" + uid + b"\x32\x0413148\x01B")
    assert found == ("07a56c64-2a06-4558-bd50-8c1dc7491dad", "1314")
    assert rig.identity_of(b"no object") == ("", "")
