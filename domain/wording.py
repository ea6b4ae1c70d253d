"""Amounts of resources as people read them: cores, GiB, or pieces of something named."""

from api import names
from api.wire import quantity

_GIBI, _MEBI = 1 << 30, 1 << 20
_CORES = {
    names.CPU: "cores",
    names.BATCH_CPU: "batch cores",
    names.MID_CPU: "mid-tier cores",
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
    words = _CORES | _MEMORY
    return f"{amount(resource, value)} {words.get(resource, resource)}"
