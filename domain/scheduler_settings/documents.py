"""ConfigMap koord-scheduler-config: a KubeSchedulerConfiguration read for the extender's plug-ins.

One profile counts, that of our scheduler. A document counts as a whole or not at all, as it does
for kube-scheduler, which does not start with a bad one.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from api import names
from api.kubernetes import scheduler_config
from api.plugin_args.arguments import Arguments
from domain.cluster_settings.value_limits import Fault, shown
from domain.scheduler_settings import bounded_yaml, known_names, plugin_sets, profiles
from domain.scheduler_settings.notes import Notes

KEY: Final = names.CONFIG_MAP_SCHEDULER
"""Key of the document; any other does as well where it is the only one."""
_MOST_TOLD: Final = 20


@dataclasses.dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """What a document says about the extender's plug-ins; what it does not name, it leaves."""

    arguments: Mapping[str, Arguments] = dataclasses.field(default_factory=dict)
    """By plug-in, those only that the document configures."""
    plugins: plugin_sets.Sets = dataclasses.field(default_factory=dict)
    """Which are enabled and disabled, by extension point."""


NOTHING: Final = SchedulerSettings()
"""What holds where there is no document: the settings of the process decide."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """A document as far as it was understood."""

    settings: SchedulerSettings | None
    """None where there are faults: nothing of the document is used."""
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


def read(data: Mapping[str, str], profile: str = scheduler_config.PROFILE) -> Reading:
    """Read the data of the ConfigMap; `profile` is the scheduler whose profile counts."""
    notes = Notes()
    found = _read(data, profile, notes)
    faults = tuple(notes.faults[:_MOST_TOLD])
    warnings = tuple(map(str, notes.warnings[:_MOST_TOLD]))
    return Reading(None if faults else found, faults, warnings)


def _read(data: Mapping[str, str], profile: str, notes: Notes) -> SchedulerSettings:
    key = KEY if KEY in data else next(iter(data), KEY)
    if KEY not in data and len(data) > 1:
        notes.fault(KEY, "is missing beside other keys; write the configuration under this key")
        return NOTHING
    written = data.get(key, "")
    if not written.strip():
        return NOTHING
    try:
        document = bounded_yaml.parse(written)
    except bounded_yaml.YamlError as error:
        notes.fault(key, f"{error}; write a {scheduler_config.KIND}, or remove the key")
        return NOTHING
    if document is None:
        return NOTHING
    chosen = _profile(document, key, profile, notes)
    if chosen is None:
        return NOTHING
    path, body = chosen
    return SchedulerSettings(
        profiles.arguments(body.get("pluginConfig"), f"{path}.pluginConfig", notes),
        profiles.sets(body.get("plugins"), f"{path}.plugins", notes),
    )


def _profile(
    document: Any, key: str, wanted: str, notes: Notes
) -> tuple[str, Mapping[str, Any]] | None:
    """Return the profile that counts, and where it stands."""
    if not isinstance(document, dict):
        notes.fault(key, f"is {shown(document)}; write a {scheduler_config.KIND}")
        return None
    notes.type(key, document, scheduler_config.API_VERSION, scheduler_config.KIND)
    notes.fields(key, document, known_names.TOP)
    path = f"{key}.profiles"
    found = {
        f"{path}[{index}]": body
        for index, written in enumerate(notes.sequence(path, document.get("profiles")))
        if (body := notes.mapping(f"{path}[{index}]", written)) is not None
    }
    for where, body in found.items():
        notes.fields(where, body, known_names.PROFILE)
    named = [where for where, body in found.items() if _name(body) == wanted]
    if len(named) > 1:
        notes.fault(named[1], f"is for {wanted} like {named[0]}; remove one")
        return None
    if not named and len(found) > 1:
        notes.fault(path, f"none is for {wanted}, and there are several; name one so")
        return None
    counts = next(iter(named or found), None)
    for other in found.keys() - {counts}:
        if profiles.concerns_us(found[other]):
            notes.warn(other, f"is not read; plug-ins take what the profile {wanted} says")
    return None if counts is None else (counts, found[counts])


def _name(body: Mapping[str, Any]) -> object:
    return body.get("schedulerName") or scheduler_config.STOCK_PROFILE
