"""Resource lists under present names, whatever names they were written in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator import resource_names

ANY = st.sampled_from(
    (*names.DEPRECATED_RESOURCES, *names.DEPRECATED_RESOURCES.values(), names.CPU, "example.org/x")
)


@pytest.mark.parametrize(("old", "new"), names.DEPRECATED_RESOURCES.items())
def test_the_present_name_stands_for_the_retired_one_and_wins(old, new):
    assert resource_names.current({old: "1", "cpu": "2"}) == {new: "1", "cpu": "2"}
    assert resource_names.current({old: "1", new: "3"}) == {new: "3"}
    assert resource_names.current({new: "3", old: "1"}) == {new: "3"}


@given(st.dictionaries(ANY, st.integers()))
def test_what_has_no_retired_name_is_the_same_object(written):
    read = resource_names.current(written)
    assert names.DEPRECATED_RESOURCES.keys().isdisjoint(read)
    assert resource_names.current(read) is read
    assert (read is written) == names.DEPRECATED_RESOURCES.keys().isdisjoint(written)
