"""Flags of Koordinator's manager that stand in existing manifests: read as our settings. Pure."""

from collections.abc import Sequence
from typing import Final

_BARE: Final = "true"
_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - what an address without a host means


def translated(process: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments with such flags replaced, and a note for each of them."""
    if process != "manager":
        return list(arguments), []
    found: list[str] = []
    notes: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        flag, separator, value = word.partition("=")
        if flag == "--metrics-addr" and not separator and rest:
            value = rest.pop(0)
        ours = _ours(flag, value)
        if not ours:
            found.append(word)
            continue
        found += ours
        notes.append(f"{flag} is read as {' '.join(ours)}")
    return found, notes


def _ours(flag: str, value: str) -> list[str]:
    if flag == "--enable-leader-election":
        return [f"--leaderElection.enabled={value or _BARE}"]
    if flag == "--metrics-addr":
        host, _, port = value.rpartition(":")
        host = host.strip("[]") or _EVERYWHERE
        return [f"--health.host={host}", f"--health.port={port}"]
    return []
