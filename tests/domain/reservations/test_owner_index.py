"""Owners of Reservations by what pods say, however many and however long they are."""

import tracemalloc

from domain.reservations import owner_index, owners
from domain.scoring import terms
from tests import processor_time


def selecting(*values):
    requirement = terms.Requirement("app", "In", values)
    return (owners.Owner(selector=terms.Selector((requirement,))),)


def test_owners_with_many_values_come_and_go_as_fast_as_with_few():
    values = [f"v{number}" for number in range(256_000)]
    before = owner_index.OwnerIndex().changed(selecting("v1"), "n1", 1)
    many = selecting(*values)
    owner_index.name_of(many)
    with processor_time.below(1.5):
        after = before.changed(many, "n1", 1)
    pod = owners.Pod("default", "p", "u", {"app": "v255999"})
    assert after.of(pod) == (owner_index.name_of(many),)
    with processor_time.below(1.5):
        again = after.changed(many, "n1", -1)
    assert again == before


def test_names_of_long_owners_take_no_more_memory_than_those_of_short_ones():
    tracemalloc.start()
    try:
        for number in range(64):
            owner_index.name_of(selecting(f"{number}-" + "v" * (1 << 20)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 32 << 20
