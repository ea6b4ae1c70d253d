"""Water filling: the examples of the documents, and what holds for any numbers."""

import pytest

from domain.quota.shares import runtime


def column(*children):
    """Return children as (request, minimum, weight) or (…, lends) or (…, lends, priority)."""
    full = [(*child, *(True, 0)[len(child) - 3 :]) for child in children]
    requests, first, weights, lends, priorities = zip(*full, strict=True)
    slots = runtime.Slots(first, weights, lends, priorities, scales=False)
    return runtime.Column(slots, list(requests), first)


@pytest.mark.parametrize(
    ("children", "given"),
    [
        pytest.param(
            [(5, 10, 40), (20, 15, 60), (40, 20, 50), (70, 15, 80)], [5, 20, 35, 40], id="weights"
        ),
        pytest.param(
            [(5, 10, 40), (20, 15, 60), (40, 20, 50), (70, 15, 0)],
            [5, 20, 40, 15],
            id="weight 0 borrows nothing, though 20 stay idle",
        ),
        pytest.param(
            [(5, 10, 40), (20, 15, 60), (40, 20, 50), (70, 45, 0)],
            [5, 20, 30, 45],
            id="guaranteed 45",
        ),
        pytest.param([(120, 60, 1), (0, 40, 1, False)], [60, 40], id="not lent"),
        pytest.param([(120, 60, 1), (0, 40, 1)], [100, 0], id="lent"),
        pytest.param([(90, 10, 1, True, 1), (90, 10, 9)], [90, 10], id="priority before weight"),
        pytest.param(
            [(60, 10, 1, True, 1), (90, 10, 9)], [60, 40], id="the rest goes further down"
        ),
        pytest.param([(60, 50, 0, True, 9), (90, 10, 9)], [50, 50], id="weight 0 at the top"),
        pytest.param([(200, 60, 1), (200, 60, 1)], [60, 60], id="more minimum than there is"),
        pytest.param([(3, 0, 1), (3, 0, 1), (95, 0, 1)], [3, 3, 94], id="several rounds"),
        pytest.param(
            [(99, 0, 1), (99, 0, 1), (99, 0, 1)], [34, 33, 33], id="the first gets the odd one"
        ),
    ],
)
def test_a_total_of_100_is_shared_out(children, given):
    assert column(*children).shares(100) == given


def test_minimums_are_scaled_to_the_total():
    assert runtime.scaled(200_000, [100_000] * 3) == [66_666] * 3
    assert column(*[(300_000, 66_666, 1)] * 3).shares(200_000) == [66_667, 66_667, 66_666]
    assert runtime.scaled(-5, [1, 2]) == [0, 0]
