"""What could not be written is remembered until it is written or no longer asked for."""

import pytest

from agent.apply import unwritten
from agent.model import edits

ROLE = edits.Role.MEMORY_MIN
FAILED = unwritten.Failure("EBUSY", release=False)
KEPT = unwritten.Failure("EBUSY", release=True)


def key(group):
    return ROLE, group


def asked(*groups):
    return [edits.Edit(ROLE, group, "1", "") for group in groups]


@pytest.mark.parametrize(
    ("before", "tried", "failed", "owed", "after"),
    [
        ({}, ["a"], {}, (), {}),
        ({}, ["a"], {"a": FAILED}, (), {"a": FAILED}),
        ({"a": FAILED}, [], {}, (), {"a": FAILED}),
        ({"a": FAILED}, ["b"], {"b": FAILED}, (), {"a": FAILED, "b": FAILED}),
        ({"a": FAILED}, ["a"], {}, (), {}),
        ({"a": FAILED}, ["a"], {"a": FAILED}, (), {"a": FAILED}),
        ({"a": KEPT}, [], {}, ("a",), {"a": KEPT}),
        ({"a": KEPT}, [], {}, (), {}),
    ],
    ids=[
        "all well", "new", "not tried again", "another one", "written", "fails again",
        "still to be put back", "put back",
    ],
)  # fmt: skip
def test_what_is_not_written(before, tried, failed, owed, after):
    found = unwritten.after(
        {key(one): why for one, why in before.items()},
        asked(*tried),
        {key(one): why for one, why in failed.items()},
        lambda one: one[1] in owed,
    )
    assert found == {key(one): why for one, why in after.items()}
