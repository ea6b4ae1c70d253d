"""A DeschedulerConfiguration: the file as the reference reads it, or everything wrong with it.

A document counts as a whole or not at all. Fields that the reference does not have are few, and
each says so: limits by workload and by hour, and the cool-down.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from api.plugin_args.arguments import Arguments
from descheduler.configuration import head, job_profiles, points, profile
from descheduler.configuration.arguments import models
from domain.cluster_settings.value_limits import Fault, shown
from domain.scheduler_settings import bounded_yaml, plugin_arguments
from domain.scheduler_settings.notes import Notes

KIND: Final = "DeschedulerConfiguration"
_FILE: Final = "configuration"
_PROFILES: Final = "profiles"
_TYPE: Final = frozenset({"apiVersion", "kind"})
_MOST_TOLD: Final = 20


@dataclasses.dataclass(frozen=True, slots=True)
class Configuration:
    """What a file says, with every default filled in."""

    head: head.Head
    profiles: tuple[profile.Profile, ...]
    """At least one; names differ."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """A document as far as it was understood."""

    configuration: Configuration | None
    """None where there are faults."""
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


def read(text: str) -> Reading:
    """Read a configuration file; an empty one configures the defaults."""
    notes = Notes()
    found = _read(text, notes)
    faults = tuple(notes.faults[:_MOST_TOLD])
    warnings = tuple(map(str, notes.warnings[:_MOST_TOLD]))
    return Reading(None if faults else found, faults, warnings)


def _read(text: str, notes: Notes) -> Configuration | None:
    try:
        document = bounded_yaml.parse(text)
    except bounded_yaml.YamlError as error:
        notes.fault(_FILE, f"{error}; write a {KIND}")
        return None
    if document is not None and not isinstance(document, dict):
        notes.fault(_FILE, f"is {shown(document)}; write a {KIND}")
        return None
    body: dict[str, Any] = document or {}
    notes.type(_FILE, body, profile.API_VERSION, KIND)
    said = {key: value for key, value in body.items() if key not in _TYPE and key != _PROFILES}
    above = plugin_arguments.validated(head.Head, said, _FILE, notes)
    path = f"{_FILE}.{_PROFILES}"
    written = notes.sequence(path, body.get(_PROFILES)) or [{}]
    profiles = [profile.read(one, f"{path}[{index}]", notes) for index, one in enumerate(written)]
    named = _named([one for one in profiles if one is not None], written, path, notes)
    if above is None:
        return None
    return Configuration(above, job_profiles.agreed(named, path, notes))


def _named(
    profiles: Sequence[profile.Profile], written: Sequence[Any], path: str, notes: Notes
) -> tuple[profile.Profile, ...]:
    """Return the profiles with names; a single one may have none."""
    if len(written) == 1 and profiles and not profiles[0].name:
        return (dataclasses.replace(profiles[0], name=head.COMPONENT),)
    places: dict[str, str] = {}
    for index, one in enumerate(written):
        name = one.get("name") if isinstance(one, dict) else None
        where = f"{path}[{index}].name"
        if isinstance(one, dict) and not name:
            notes.fault(where, "is missing beside other profiles; name each of them")
        elif isinstance(name, str) and name in places:
            notes.fault(where, f"is {shown(name)} like {places[name]}; rename one")
        elif isinstance(name, str):
            places[name] = where
    return tuple(profiles)


def effective(configuration: Configuration) -> dict[str, Any]:
    """Return a configuration as a document with nothing left out, which reads to the same."""
    return {
        "apiVersion": profile.API_VERSION,
        "kind": KIND,
        **_wire(configuration.head),
        _PROFILES: [_profile(one) for one in configuration.profiles],
    }


def _profile(one: profile.Profile) -> dict[str, Any]:
    selector = {} if one.node_selector is None else {"nodeSelector": one.node_selector.wire()}
    return {
        "name": one.name,
        **selector,
        "plugins": {
            point: {
                "enabled": [{"name": name} for name in one.enabled[point]],
                "disabled": [{"name": "*"}],
            }
            for point in points.POINTS
        },
        "pluginConfig": [
            {
                "name": name,
                "args": {
                    "apiVersion": profile.API_VERSION,
                    "kind": f"{name}Args",
                    **_wire(arguments),
                },
            }
            for name, arguments in sorted(one.arguments.items())
            if name in models.MODELS
        ],
    }


def _wire(arguments: Arguments) -> dict[str, Any]:
    return arguments.model_dump(mode="json", by_alias=True, exclude_none=True)
