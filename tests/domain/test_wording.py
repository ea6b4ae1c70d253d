"""Amounts as people read them."""

import pytest

from domain import wording


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 2500, "2500m"),
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
    [("cpu", 14400, "14.4"), ("cpu", 8400, "8.4"), ("memory", 1 << 30, "1.0 GiB")],
)
def test_lent_capacity(resource, value, text):
    assert wording.lent(resource, value) == text
