"""Quantities are exact, round like Kubernetes and are written like Kubernetes writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.wire import quantity

CANONICAL = [
    ("0", "0"),
    ("-0", "0"),
    ("0Ki", "0"),
    ("1000", "1k"),
    ("1", "1"),
    ("+1", "1"),
    ("007", "7"),
    ("999", "999"),
    ("1001", "1001"),
    ("1500", "1500"),
    ("15000", "15k"),
    ("1000000", "1M"),
    ("1.5", "1500m"),
    ("0.5", "500m"),
    (".5", "500m"),
    ("5.", "5"),
    ("100m", "100m"),
    ("1000m", "1"),
    ("1500m", "1500m"),
    ("-1500m", "-1500m"),
    ("100000u", "100m"),
    ("0.1m", "100u"),
    ("1n", "1n"),
    ("0.1n", "1n"),
    ("-0.1n", "-1n"),
    ("1.0000000001", "1000000001n"),
    ("1Ki", "1Ki"),
    ("1024", "1024"),
    ("1023Ki", "1023Ki"),
    ("1024Ki", "1Mi"),
    ("0.5Ki", "512"),
    ("0.5Gi", "512Mi"),
    ("1.5Gi", "1536Mi"),
    ("1.1Gi", "1181116006400m"),
    ("-2048Mi", "-2Gi"),
    ("0.0001Ki", "102400u"),
    ("1000Ki", "1000Ki"),
    ("1Ei", "1Ei"),
    ("1e3", "1e3"),
    ("1E3", "1e3"),
    ("1e+3", "1e3"),
    ("1500e-3", "1500e-3"),
    ("1.5e3", "1500"),
    ("12e4", "120e3"),
    ("1E", "1E"),
    ("10E", "9223372036854775807"),
    ("99999999999999999999", "9223372036854775807"),
    ("-99999999999999999999", "-9223372036854775807"),
    ("8Ei", "9223372036854775807"),
    ("1e1000", "9223372036854775807"),
    (1000, "1k"),
    (0.5, "500m"),
    (1e-7, "100e-9"),
]


@pytest.mark.parametrize(("written", "expected"), CANONICAL)
def test_canonical_form_is_the_api_servers(written, expected):
    assert quantity.canonical(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        *("", " ", "1 ", " 1", ".", "-", "k", "1K", "1ki", "1KI", "1e", "0x10", "1_000", "1,5"),
        *("½", "1.2.3", "--1", "1Kib", "Inf", "NaN", "1e1.5", "\n1", "1\n", "9" * 200),
        "\N{ARABIC-INDIC DIGIT ONE}",
    ],
)
def test_anything_else_is_refused_with_an_example(written):
    with pytest.raises(quantity.QuantityError, match="is no quantity; write a number"):
        quantity.canonical(written)


@pytest.mark.parametrize("written", [None, True, [], {}, float("inf"), float("nan")])
def test_other_types_are_refused(written):
    with pytest.raises(quantity.QuantityError):
        quantity.parse(written)


@pytest.mark.parametrize(
    ("written", "milli", "whole"),
    [
        ("1", 1000, 1),
        (2, 2000, 2),
        (0.25, 250, 1),
        ("100m", 100, 1),
        ("1001m", 1001, 2),
        ("1u", 1, 1),
        ("1n", 1, 1),
        ("-1500u", -2, -1),
        ("-1500m", -1500, -2),
        ("1.1Gi", 1181116006400, 1181116007),
        ("64Gi", 68719476736000, 68719476736),
        ("1e3", 1000000, 1000),
        ("0", 0, 0),
        ("-0.5", -500, -1),
    ],
)
def test_rounding_goes_away_from_zero(written, milli, whole):
    assert (quantity.milli(written), quantity.whole(written)) == (milli, whole)


@pytest.mark.parametrize(
    ("resource", "written", "amount", "text"),
    [
        ("cpu", "1.5", 1500, "1500m"),
        ("cpu", 4, 4000, "4"),
        ("cpu", "2000", 2000000, "2k"),
        ("memory", "1Gi", 1 << 30, "1Gi"),
        ("memory", "1G", 10**9, "1000000000"),
        ("ephemeral-storage", "10Gi", 10 << 30, "10Gi"),
        ("hugepages-2Mi", "4Mi", 4 << 20, "4Mi"),
        ("kubernetes.io/batch-cpu", "1000", 1000, "1k"),
        ("kubernetes.io/batch-memory", "2Gi", 2 << 30, "2Gi"),
        ("koordinator.sh/gpu-memory-ratio", 50, 50, "50"),
        ("pods", "110", 110, "110"),
    ],
)
def test_amounts_are_integers_and_go_back_to_text(resource, written, amount, text):
    assert quantity.amount(resource, written) == amount
    assert quantity.text(resource, amount) == text


def test_resource_lists_are_read_and_written_sorted():
    amounts = quantity.amounts({"memory": "1Gi", "cpu": "500m"})
    assert amounts == {"memory": 1 << 30, "cpu": 500}
    assert list(quantity.texts(amounts).items()) == [("cpu", "500m"), ("memory", "1Gi")]


SUFFIXES = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "e3", "E-2", "e+1", "e-9"]
)
NUMBERS = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(-1000, 1000, places=5).map(lambda value: format(value, "f")),
)
WRITTEN = st.tuples(NUMBERS, SUFFIXES).map("".join)
BINARY = {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4}
DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}


def exact(written):
    """The same value by fractions, the slow and obvious way."""
    for suffix, factor in BINARY.items():
        if written.endswith(suffix):
            return Fraction(written.removesuffix(suffix)) * factor
    head, mark, exponent = written.lower().partition("e")
    if mark:
        return Fraction(head) * Fraction(10) ** int(exponent)
    suffix = written[-1]
    if suffix in DECIMAL:
        return Fraction(written[:-1]) * Fraction(10) ** DECIMAL[suffix]
    return Fraction(written)


def away_from_zero(value):
    floor = abs(value).numerator // abs(value).denominator
    size = floor + (abs(value) != floor)
    return -size if value < 0 else size


@given(WRITTEN)
def test_reading_agrees_with_fractions(written):
    capped = max(min(exact(written), Fraction(2**63 - 1)), -Fraction(2**63 - 1))
    nanos = away_from_zero(capped * 10**9)
    assert quantity.parse(written).nanos == nanos
    assert quantity.milli(written) == away_from_zero(Fraction(nanos, 10**6))
    assert quantity.whole(written) == away_from_zero(Fraction(nanos, 10**9))


@given(WRITTEN)
def test_the_canonical_form_means_the_same_and_is_stable(written):
    canonical = quantity.canonical(written)
    assert quantity.equal(canonical, written)
    assert quantity.canonical(canonical) == canonical


@given(st.integers(-(2**62), 2**62))
def test_integers_survive_every_notation(value):
    assert quantity.whole(quantity.format_decimal(value)) == value
    assert quantity.whole(quantity.format_binary(value)) == value
    assert quantity.milli(quantity.format_milli(value)) == value


@given(st.text(max_size=12))
def test_no_text_breaks_the_reader(text):
    try:
        parsed = quantity.parse(text)
    except quantity.QuantityError:
        return
    assert quantity.parse(quantity.canonical(text)).nanos == parsed.nanos
