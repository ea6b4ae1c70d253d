"""Amounts of resources as people read them."""

from api import quantity

_GIBI, _MEBI = 1 << 30, 1 << 20


def amount(resource: str, value: int) -> str:
    """Write bytes as GiB or MiB with one digit, everything else as a quantity."""
    if not quantity.is_bytes(resource):
        return quantity.text(resource, value)
    if abs(value) >= _GIBI:
        return f"{value / _GIBI:.1f} GiB"
    return f"{value / _MEBI:.1f} MiB" if value else "0"


def lent(resource: str, value: int) -> str:
    """Write lent capacity: milli-cores as plain cores, bytes as above."""
    return amount(resource, value) if quantity.is_bytes(resource) else f"{value / 1000:g}"
