"""The configuration file, read once at the start: profiles with their plug-ins, and options."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from descheduler import registry
from descheduler.configuration import document, head, job_profiles
from descheduler.framework.planning import profiles
from process.configuration import settings

_LARGEST: Final = 1 << 20
"""Bytes of the file; a ConfigMap holds no more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Configured:
    """What the file says, made ready for rounds."""

    head: head.Head
    profiles: tuple[profiles.Profile, ...]
    migration: job_profiles.Arguments
    """How the jobs of each profile are carried out."""
    effective: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The document with every default filled in."""
    warnings: tuple[str, ...] = ()

    @property
    def looks(self) -> bool:
        """Whether any plug-in looks for pods to move."""
        return any(one.deschedule or one.balance for one in self.profiles)


def load(file: Path | None) -> Configured:
    """Read the file; a SettingsError lists what is wrong with it, and the remedies."""
    if file is None:
        return read("")
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise settings.SettingsError(
            [f"configuration: {file} cannot be read: {error.strerror}; name a readable file"]
        ) from error
    if len(data) > _LARGEST:
        raise settings.SettingsError(
            [f"configuration: {file} is larger than {_LARGEST} bytes; shorten it"]
        )
    return read(data.decode("utf-8", "replace"))


def read(text: str) -> Configured:
    """Read a DeschedulerConfiguration; an empty text is one with every default."""
    found = document.read(text)
    if found.configuration is None:
        raise settings.SettingsError([str(fault) for fault in found.faults])
    known = found.configuration
    made = tuple(registry.made(one) for one in known.profiles)
    effective = document.effective(known)
    migration = job_profiles.arguments(known.profiles)
    return Configured(known.head, made, migration, effective, found.warnings)
