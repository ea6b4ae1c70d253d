"""One column or many, changed step by step or made anew: the shares are the same."""

from hypothesis import given
from hypothesis import strategies as st

from domain.quota.shares import runtime, water

small, large = st.integers(0, 60), st.integers(0, 1 << 75)
amounts = st.one_of(small, small, st.integers(0, 1 << 52), large)
totals = st.one_of(st.integers(-9, 400), st.integers(0, 1 << 60), large)


@st.composite
def columns(draw, figures=amounts):
    """Return a column of a few children."""
    children = draw(
        st.lists(
            st.tuples(figures, figures, figures, st.booleans(), st.sampled_from((0, 0, 7))),
            min_size=1,
            max_size=9,
        )
    )
    requests, minimums, weights, lends, priorities = zip(*children, strict=True)
    slots = runtime.Slots(minimums, weights, lends, priorities, scales=draw(st.booleans()))
    guaranteed = [max(pair) for pair in zip(minimums, draw(st.permutations(requests)), strict=True)]
    first = draw(st.sampled_from((minimums, minimums, guaranteed)))
    return runtime.Column(slots, list(requests), first)


def plain(column, total):
    return runtime.share(total, column, column.least(total))


@given(st.lists(st.tuples(columns(), totals), min_size=1, max_size=9))
def test_many_columns_at_once(given_columns):
    found = [column for column, _ in given_columns]
    slots = [column.slots for column in found]
    block = water.Block(
        [one.minimums for one in slots],
        [one.weights for one in slots],
        [one.lends for one in slots],
        [one.priorities for one in slots],
    )
    sums = [total for _, total in given_columns]
    first = [column.least(total) for column, total in given_columns]
    shares = block.share(sums, [one.requests for one in found], first, scales=False)
    for (column, total), share in zip(given_columns, shares, strict=True):
        exact = plain(column, total)
        assert share is None or share == exact
        figures = (*column.requests, *column.slots.minimums, *column.slots.weights, abs(total))
        assert share is not None or max(figures) > 1 << 40


@given(st.lists(st.tuples(columns(small), totals), min_size=1, max_size=6), st.booleans())
def test_minimums_are_scaled_in_many_columns(given_columns, scales):
    slots = [
        runtime.Slots(one.minimums, one.weights, one.lends, one.priorities, scales=scales)
        for one in (column.slots for column, _ in given_columns)
    ]
    block = water.Block(
        [one.minimums for one in slots],
        [one.weights for one in slots],
        [one.lends for one in slots],
        [one.priorities for one in slots],
    )
    fresh = [
        runtime.Column(one, column.requests, one.minimums)
        for one, (column, _) in zip(slots, given_columns, strict=True)
    ]
    sums = [total for _, total in given_columns]
    shares = block.share(sums, [one.requests for one in fresh], None, scales=scales)
    for column, total, share in zip(fresh, sums, shares, strict=True):
        assert share is None or share == plain(column, total)


@given(st.data(), columns(), st.one_of(small, totals))
def test_a_column_that_changes_is_one_made_anew(data, column, total):
    """What is remembered of earlier shares is never wrong, whichever requests change."""
    for _ in range(data.draw(st.integers(1, 6))):
        child = data.draw(st.integers(0, len(column.requests) - 1))
        if data.draw(st.booleans()):
            column.shares(total)
        near = max(0, plain(column, total)[child] + data.draw(st.integers(-2, 2)))
        request = data.draw(st.one_of(st.just(near), amounts))
        least = None
        if column.first is not column.slots.minimums:
            least = data.draw(st.one_of(st.none(), amounts))
        column = column.changed(child, request, least)
        fresh = runtime.Column(column.slots, list(column.requests), column.first)
        for each in range(len(column.requests)):
            assert column.share(each, total) == plain(fresh, total)[each]


def test_a_column_of_many_children():
    """The shares of many, which are computed with arrays, are those of plain loops."""
    count = 500
    slots = runtime.Slots(
        [number % 7 for number in range(count)],
        [number * number % 11 for number in range(count)],
        [number % 3 > 0 for number in range(count)],
        [number % 2 for number in range(count)],
    )
    column = runtime.Column(slots, [number * 13 % 40 for number in range(count)], slots.minimums)
    for total in (-5, 100, 900, 4000, 9000, 1 << 61):
        assert list(column.shares(total)) == plain(column, total)
