"""What the kernel says about memory, of a machine or of one of its NUMA nodes. Pure."""

from collections.abc import Mapping
from typing import Final

_HELD: Final = frozenset({b"inactive_anon", b"active_anon", b"unevictable"})
_HELD_BELOW: Final = frozenset({b"hierarchical_anon", b"hierarchical_unevictable"})
_RECLAIMABLE: Final = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")


def figures(text: bytes, prefix: str = "") -> dict[str, int]:
    """Return every figure in bytes; those of NUMA nodes begin each line with a prefix."""
    found = {}
    for line in text.decode("ascii", "replace").splitlines():
        name, _, rest = line.removeprefix(prefix).partition(":")
        words = rest.split()
        if words and words[0].isascii() and words[0].isdigit():
            found[name] = int(words[0]) * (1024 if words[-1] == "kB" else 1)
    return found


def of_node(number: int) -> str:
    """Return what the lines of a NUMA node begin with."""
    return f"Node {number} "


def used(found: Mapping[str, int]) -> int | None:
    """Return what is in use and could not be given back, None where the kernel does not say."""
    if "MemTotal" not in found or "MemFree" not in found:
        return None
    return max(0, found["MemTotal"] - sum(found.get(name, 0) for name in _RECLAIMABLE))


def held(text: bytes, version: int, page_bytes: int) -> dict[int, int]:
    """Return the bytes that a group holds on each NUMA node, page cache left out."""
    names, unit = (_HELD, 1) if version == 2 else (_HELD_BELOW, page_bytes)
    total: dict[int, int] = {}
    for line in text.splitlines():
        name, *parts = line.split()
        if name.partition(b"=")[0] not in names:
            continue
        for part in parts:
            node, _, amount = part.removeprefix(b"N").partition(b"=")
            if node.isdigit() and amount.isdigit():
                total[int(node)] = total.get(int(node), 0) + int(amount) * unit
    return total
