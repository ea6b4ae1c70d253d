"""Flags of Koordinator's descheduler: read as our settings. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from api.wire import durations

KIND: Final = "DeschedulerConfiguration"
"""What a file says that is a configuration of profiles and plug-ins, not of our settings."""
_FLAGS: Final = {
    "--leader-elect": "leaderElection.enabled",
    "--leader-elect-resource-name": "leaderElection.name",
    "--leader-elect-resource-namespace": "leaderElection.namespace",
}
_TIMES: Final = {
    "--leader-elect-lease-duration": "leaderElection.leaseSeconds",
    "--leader-elect-renew-deadline": "leaderElection.renewSeconds",
    "--leader-elect-retry-period": "leaderElection.retrySeconds",
}
_LOCK: Final = "--leader-elect-resource-lock"
_GATES: Final = "--feature-gates"
_WRITE: Final = "--write-config-to"
_BARE: Final = "true"


def arguments(
    given: Sequence[str], is_theirs: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """Return the arguments with such flags replaced, and a note for each of them.

    `--config` names their file where `is_theirs` says so of its path, and a file of our settings
    where it does not.
    """
    found: list[str] = []
    notes: list[str] = []
    rest = list(given)
    while rest:
        word = rest.pop(0)
        flag, separator, value = word.partition("=")
        if not _is_known(flag):
            found.append(word)
            continue
        if not separator and flag != "--leader-elect" and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        if flag == "--config" and not is_theirs(value):
            found.append(f"--config={value}" if value else word)
            continue
        ours = list(_ours(flag, value))
        found += ours
        notes.append(f"{flag} is read as {' '.join(ours) or 'nothing: Leases are what is held'}")
    return found, notes


def target(given: Sequence[str]) -> tuple[str, list[str]]:
    """Return where `--write-config-to` wants the configuration written, and the other arguments."""
    found, rest, left = "", list(given), list[str]()
    while rest:
        word = rest.pop(0)
        flag, separator, value = word.partition("=")
        if flag != _WRITE:
            left.append(word)
            continue
        found = value if separator or not rest else rest.pop(0)
    return found, left


def _is_known(flag: str) -> bool:
    return flag in _FLAGS or flag in _TIMES or flag in {"--config", _LOCK, _GATES}


def _ours(flag: str, value: str) -> Iterator[str]:
    if flag == "--config":
        yield f"--configuration={value}"
    elif flag in _FLAGS:
        yield f"--{_FLAGS[flag]}={value or _BARE}"
    elif flag in _TIMES:
        yield f"--{_TIMES[flag]}={_seconds(value)}"
    elif flag == _GATES:
        for pair in value.split(","):
            name, _, chosen = pair.partition("=")
            yield f"--featureGates.{name.strip()}={chosen.strip() or _BARE}"


def _seconds(value: str) -> str:
    """Return a duration in seconds; what is none stays, and is refused as a setting by name."""
    try:
        return f"{durations.seconds(value):g}"
    except durations.DurationError:
        return value
