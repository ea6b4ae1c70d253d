"""Exact Kubernetes quantities: read, round and write them as the API server does."""

import functools
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Written = str | int | float
Format = Literal["decimal", "exponent", "binary"]

PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_PATTERN: Final = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII
)
_NANO: Final = 10**9
_LARGEST: Final = (2**63 - 1) * _NANO
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_DECIMAL_NAMES: Final = {exponent: name for name, exponent in _DECIMAL.items()}
_BINARY_NAMES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY: Final = {name: 1024**power for power, name in enumerate(_BINARY_NAMES) if name}
# Beyond this the value is either capped or rounded up to one nano, whatever the digits say.
_FARTHEST_EXPONENT: Final = 64
_LONGEST: Final = 128


class QuantityError(ValueError):
    """A value that is no quantity; says what one looks like."""


class Parsed(NamedTuple):
    """A quantity in billionths and the notation in which it was written."""

    nanos: int
    format: Format


def parse(value: Written) -> Parsed:
    """Read a quantity exactly; anything finer than a billionth is rounded away from zero."""
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _error(value)
    return _parse(str(value))


@functools.lru_cache(maxsize=16384)
def _parse(text: str) -> Parsed:
    match = _PATTERN.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not (match[2] or match[3]):
        raise _error(text)
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4] or ""
    digits = int(whole + fraction)
    notation: Format = "decimal"
    if suffix in _BINARY:
        numerator, denominator, notation = digits * _BINARY[suffix], 10 ** len(fraction), "binary"
    else:
        exponent = _DECIMAL.get(suffix)
        if exponent is None:
            exponent, notation = _bounded(int(suffix[1:])), "exponent"
        exponent -= len(fraction)
        numerator, denominator = digits * 10 ** max(exponent, 0), 10 ** max(-exponent, 0)
    nanos = min(-(-numerator * _NANO // denominator), _LARGEST)
    if notation == "binary" and nanos < _NANO:
        notation = "decimal"
    return Parsed(-nanos if sign == "-" else nanos, notation)


def _bounded(exponent: int) -> int:
    return max(-_FARTHEST_EXPONENT - _LONGEST, min(exponent, _FARTHEST_EXPONENT + _LONGEST))


def _error(value: object) -> QuantityError:
    return QuantityError(
        f'"{value}" is no quantity; write a number with an optional suffix such as '
        '"2", "500m", "1.5Gi" or "1e3"'
    )


def _divided(nanos: int, size: int) -> int:
    """Divide and round away from zero: a small request never becomes none."""
    return -(-nanos // size) if nanos >= 0 else nanos // size


@functools.lru_cache(maxsize=16384)
def _milli(text: str) -> int:
    return _divided(_parse(text).nanos, 10**6)


@functools.lru_cache(maxsize=16384)
def _whole(text: str) -> int:
    return _divided(_parse(text).nanos, _NANO)


def milli(value: Written) -> int:
    """Return thousandths, rounded away from zero."""
    if type(value) is int:
        return value * 1000
    return _milli(value) if isinstance(value, str) else _divided(parse(value).nanos, 10**6)


def whole(value: Written) -> int:
    """Return whole units, rounded away from zero."""
    if type(value) is int:
        return value
    return _whole(value) if isinstance(value, str) else _divided(parse(value).nanos, _NANO)


def canonical(value: Written) -> str:
    """Return the text that the API server stores for this quantity."""
    return _written(*parse(value))


def equal(one: Written, other: Written) -> bool:
    """Tell whether two texts mean the same amount."""
    return parse(one).nanos == parse(other).nanos


def format_milli(value: int, like: Written = 0) -> str:
    """Write thousandths, for instance 1500 as ``1500m`` and 2000 as ``2``.

    The notation is that of another quantity, decimal unless one is given.
    """
    return _written(value * 10**6, parse(like).format)


def format_decimal(value: int) -> str:
    """Write whole units in decimal notation, for instance 1000 as ``1k``."""
    return _written(value * _NANO, "decimal")


def format_binary(value: int) -> str:
    """Write whole units in binary notation, for instance 2147483648 as ``2Gi``."""
    return _written(value * _NANO, "binary")


def _written(nanos: int, notation: Format) -> str:
    if not nanos:
        return "0"
    small = abs(nanos) < 1024 * _NANO
    if notation == "binary" and not small and nanos % _NANO == 0:
        return _written_binary(nanos // _NANO)
    mantissa, exponent = nanos, -9
    while mantissa % 1000 == 0 and exponent < 18:
        mantissa, exponent = mantissa // 1000, exponent + 3
    if notation == "exponent":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_NAMES[exponent]}"


def _written_binary(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < len(_BINARY_NAMES) - 1:
        value, power = value // 1024, power + 1
    return f"{value}{_BINARY_NAMES[power]}"


def is_milli(resource: str) -> bool:
    """Tell whether amounts of this resource are counted in thousandths (native cpu only)."""
    return resource == "cpu"


def is_bytes(resource: str) -> bool:
    """Tell whether a resource is counted in bytes and therefore written in binary notation."""
    return resource.endswith(("memory", "storage")) or resource.startswith("hugepages-")


def amount(resource: str, value: Written) -> int:
    """Return the integer in which we calculate: cpu in thousandths, all else in whole units."""
    return milli(value) if resource == "cpu" else whole(value)


def text(resource: str, value: int) -> str:
    """Write an integer from ``amount`` as the quantity that Kubernetes would write."""
    if is_milli(resource):
        return format_milli(value)
    return format_binary(value) if is_bytes(resource) else format_decimal(value)


_amount: Final = functools.lru_cache(maxsize=16384, typed=True)(amount)


def amounts(resources: Mapping[str, Written]) -> dict[str, int]:
    """Read a resource list into integers."""
    try:
        return {name: _amount(name, value) for name, value in resources.items()}
    except TypeError:
        # A list or an object in the place of a quantity, which the error names.
        return {name: amount(name, value) for name, value in resources.items()}


def texts(resources: Mapping[str, int]) -> dict[str, str]:
    """Write integers back as a resource list, sorted by name."""
    return {name: text(name, resources[name]) for name in sorted(resources)}
