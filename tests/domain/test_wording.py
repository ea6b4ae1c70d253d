"""Amounts as people read them."""

import pytest

from api import names
from domain import wording


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 2500, "2.5"),
        (names.BATCH_CPU, 14400, "14.4"),
        ("cpu", 3000, "3"),
        ("memory", 0, "0"),
        ("memory", 3 << 29, "1.5 GiB"),
        ("memory", 200 << 20, "200.0 MiB"),
        ("nvidia.com/gpu", 2, "2"),
    ],
)
def test_amounts(resource, value, text):
    assert wording.amount(resource, value) == text


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 8400, "8.4 cores"),
        (names.BATCH_CPU, 14400, "14.4 batch cores"),
        ("memory", 1 << 30, "1.0 GiB of memory"),
        (names.MID_MEMORY, 1 << 20, "1.0 MiB of mid-tier memory"),
        ("nvidia.com/gpu", 2, "2 nvidia.com/gpu"),
    ],
)
def test_amounts_with_what_they_are_of(resource, value, text):
    assert wording.named(resource, value) == text
