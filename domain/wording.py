"""Amounts of resources as people read them, and words that agree with numbers."""

from api import names
from api.wire import quantity

_GIBI, _MEBI = 1 << 30, 1 << 20
_CORES = {
    names.CPU: ("core", "cores"),
    names.BATCH_CPU: ("batch core", "batch cores"),
    names.MID_CPU: ("mid-tier core", "mid-tier cores"),
}
_MEMORY = {
    names.MEMORY: "of memory",
    names.BATCH_MEMORY: "of batch memory",
    names.MID_MEMORY: "of mid-tier memory",
}


def amount(resource: str, value: int) -> str:
    """Write cpu in cores, bytes in GiB or MiB with one digit, everything else as it is counted."""
    if resource in _CORES:
        return f"{value / 1000:g}"
    if not quantity.is_bytes(resource):
        return quantity.text(resource, value)
    if abs(value) >= _GIBI:
        return f"{value / _GIBI:.1f} GiB"
    return f"{value / _MEBI:.1f} MiB" if value else "0"


def named(resource: str, value: int) -> str:
    """Write an amount together with what it is of."""
    number = amount(resource, value)
    if resource in _CORES:
        return count(number, *_CORES[resource])
    return f"{number} {_MEMORY.get(resource, resource)}"


def count(number: int | str, one: str, several: str) -> str:
    """Write a number and the words after it, such as `1 pod waits` and `3 pods wait`.

    A number that is formatted already is given as text: `1.0` goes with the plural.
    """
    return f"{number} {form(number, one, several)}"


def form(number: int | str, one: str, several: str) -> str:
    """Return which of two words agrees with a number that stands elsewhere in the sentence."""
    return one if str(number) == "1" else several
