"""Maps whose changed copies share what has not changed."""

from hypothesis import given
from hypothesis import strategies as st

from domain import persistent

KEYS = st.integers(0, 200)


@given(
    before=st.dictionaries(KEYS, st.integers(), max_size=100),
    changes=st.dictionaries(KEYS, st.none() | st.integers(), max_size=200),
)
def test_many_changes_at_once_are_the_same_as_one_after_the_other(before, changes):
    whole = persistent.Map(before.items())
    single = whole
    for key, value in changes.items():
        single = single.replaced(key, value)
    assert whole.updated(changes) == single
    assert len(whole.updated(changes)) == len(single)
    assert dict(whole) == before
