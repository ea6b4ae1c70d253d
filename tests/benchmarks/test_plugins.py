"""Sets of plug-ins: everything, each alone, nothing."""

import pytest

from benchmarks.scheduling.calls import plugins


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [
        (("A", "B"), {"all": ("A", "B"), "A": ("A",), "B": ("B",), "none": ()}),
        (("A",), {"all": ("A",), "none": ()}),
    ],
)
def test_sets_of_plugins(enabled, expected):
    assert plugins.sets(enabled) == expected
