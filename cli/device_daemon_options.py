"""Flags and variables of Koordinator's device daemon: read as our settings. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

PREFIX: Final = "KOORD_DEVICE_DAEMON_"
CONFIG: Final = ("KDD_CONFIG_FILE", "CONFIG_FILE")
VARIABLES: Final = {
    "ONESHOT": ("KDD_ONESHOT",),
    "NO_TIMESTAMP": ("KDD_NO_TIMESTAMP",),
    "SLEEP_INTERVAL": ("KDD_SLEEP_INTERVAL",),
    "PRINTS_OUTPUT_FILE": ("KDD_PRINTS_OUTPUT_FILE", "PRINTS_OUTPUT_FILE"),
}
"""Settings by the rest of our variable's name, and theirs; the first that is set counts."""


def arguments(given: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the arguments with `--config-file` and `--v` as ours, and the file of a variable.

    The file of the command line counts more than that of a variable.
    """
    found: list[str] = []
    rest = list(given)
    while rest:
        word = rest.pop(0)
        flag, separator, value = word.partition("=")
        if flag not in ("--config-file", "--v", "-v"):
            found.append(word)
            continue
        if not separator and rest and not rest[0].startswith("--"):
            separator, value = "=", rest.pop(0)
        found.append(_config(separator, value) if flag == "--config-file" else _level(value))
    named = next((environ[name] for name in CONFIG if environ.get(name)), "")
    if named and not any(word.partition("=")[0] == "--config" for word in found):
        found.insert(0, f"--config={named}")
    return found


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with their variables under our names; ours count more."""
    found = dict(environ)
    for ours, theirs in VARIABLES.items():
        for name in theirs:
            if name in environ:
                found.setdefault(PREFIX + ours, environ[name])
    return found


def _config(separator: str, value: str) -> str:
    return f"--config{separator}{value}"


def _level(value: str) -> str:
    """Return our level for one of theirs, of which 4 and more is for debugging."""
    return f"--log.level={'debug' if value.isdigit() and int(value) >= 4 else 'info'}"
