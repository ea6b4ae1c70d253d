"""Amounts as people read them, and words that agree with numbers."""

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
        ("cpu", 1000, "1 core"),
        (names.BATCH_CPU, 14400, "14.4 batch cores"),
        (names.BATCH_CPU, 1000, "1 batch core"),
        (names.MID_CPU, 1000, "1 mid-tier core"),
        ("cpu", 0, "0 cores"),
        ("memory", 1 << 30, "1.0 GiB of memory"),
        (names.MID_MEMORY, 1 << 20, "1.0 MiB of mid-tier memory"),
        ("nvidia.com/gpu", 2, "2 nvidia.com/gpu"),
    ],
)
def test_amounts_with_what_they_are_of(resource, value, text):
    assert wording.named(resource, value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 pods wait"),
        (1, "1 pod waits"),
        (2, "2 pods wait"),
        (11, "11 pods wait"),
        ("1", "1 pod waits"),
        ("1.0", "1.0 pods wait"),
        ("0.5", "0.5 pods wait"),
    ],
)
def test_numbers_and_words_agree(number, text):
    assert wording.count(number, "pod waits", "pods wait") == text
    assert f"{number} {wording.form(number, 'pod waits', 'pods wait')}" == text
