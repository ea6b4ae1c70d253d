"""What `koord simulate quota` says is what happens: a few cases; `make preview` checks 1,000."""

import pytest

from tests.preview import check

SEEDS = (16, 18)


@pytest.mark.timeout(120)
def test_what_simulate_says_is_what_happens():
    summary = check.checked(SEEDS)
    assert not summary.differences, str(summary)
    assert summary.eventful


RACE = check.Difference(7, "text", "a race")
UNKNOWN = check.Difference(8, "text")


@pytest.mark.parametrize(
    ("count", "differences", "passes"),
    [
        pytest.param(100, (), True, id="no difference"),
        pytest.param(100, (RACE,), True, id="one explained"),
        pytest.param(100, (UNKNOWN,), False, id="one that is not explained"),
        pytest.param(99, (RACE,), False, id="explained, but too many"),
    ],
)
def test_every_difference_counts_and_has_to_be_explained(count, differences, passes):
    summary = check.Summary(count, 0, differences)
    assert summary.passes is passes
    assert all(str(one) in str(summary) for one in differences)
