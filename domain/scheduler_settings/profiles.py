"""One profile of a scheduler configuration: arguments of our plug-ins, and which are enabled."""

from collections.abc import Mapping
from typing import Any, Final

from api.kubernetes import scheduler_config
from api.plugin_args import models
from api.plugin_args.arguments import Arguments
from domain.cluster_settings.value_limits import shown
from domain.scheduler_settings import known_names, plugin_arguments, plugin_sets
from domain.scheduler_settings.notes import Notes
from domain.scheduler_settings.plugin_sets import Enabled, PluginSet

_ENTRY: Final = frozenset({"name", "args"})
_SET: Final = frozenset({"enabled", "disabled"})
_PLUGIN: Final = frozenset({"name", "weight"})
_HEAVIEST: Final = 1_000_000


def concerns_us(body: Mapping[str, Any]) -> bool:
    """Tell whether a profile says anything about plug-ins of ours."""
    ignored = Notes()
    return bool(
        arguments(body.get("pluginConfig"), "", ignored) or sets(body.get("plugins"), "", ignored)
    )


def arguments(written: Any, path: str, notes: Notes) -> dict[str, Arguments]:
    """Read the pluginConfig of a profile."""
    found: dict[str, Arguments] = {}
    places: dict[str, str] = {}
    for index, entry in enumerate(notes.sequence(path, written)):
        where = f"{path}[{index}]"
        name = _name(where, entry, _ENTRY, notes)
        if name in places:
            notes.fault(where, f"is for {name} like {places[name]}; remove one")
        elif name is not None:
            places[name] = where
            if name in models.MODELS:
                read = plugin_arguments.read(
                    models.MODELS[name],
                    entry.get("args"),
                    f"{where}.args",
                    plugin_arguments.Type(scheduler_config.API_VERSION, f"{name}Args"),
                    notes,
                )
                found |= {} if read is None else {name: read}
            elif name in known_names.IN_TREE:
                note = f"is for {name}, which kube-scheduler reads from its own configuration"
                notes.warn(where, f"{note}; here it has no effect")
            elif name == known_names.BATCH_FIT:
                notes.warn(where, f"{name} takes no arguments; remove it")
    return found


def _name(where: str, entry: Any, fields: frozenset[str], notes: Notes) -> str | None:
    """Return the plug-in that an entry of a list is about; None, with a note, where it is none."""
    if not isinstance(entry, dict):
        notes.fault(where, f"is {shown(entry)}; write an object with a name")
        return None
    notes.fields(where, entry, fields)
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        notes.fault(f"{where}.name", "is missing; name the plug-in")
        return None
    if name in known_names.OURS or name in known_names.IN_TREE:
        return name
    close = known_names.meant(name, known_names.OURS)
    if close is not None and name not in known_names.NOT_OFFERED:
        notes.fault(f"{where}.name", f"is {shown(name)}; did you mean {close}?")
        return None
    notes.warn(f"{where}.name", f"is {shown(name)}, which the extender does not have; ignored")
    return None


def sets(written: Any, path: str, notes: Notes) -> dict[str, PluginSet]:
    """Read the plugins of a profile, as far as they are ours."""
    body = notes.mapping(path, written) or {}
    notes.fields(path, body, plugin_sets.POINTS)
    found: dict[str, PluginSet] = {}
    for point in (point for point in plugin_sets.POINTS if point in body):
        read = _set(body[point], f"{path}.{point}", notes)
        if read == PluginSet():
            continue
        if point in plugin_sets.DECIDING:
            found[point] = read
        elif ours := sorted(read.disabled & set(known_names.OURS)):
            note = f"disables {', '.join(ours)} without effect; name filter, score or reserve"
            notes.warn(f"{path}.{point}", note)
    _doubt(found, path, notes)
    return found


def _set(written: Any, path: str, notes: Notes) -> PluginSet:
    body = notes.mapping(path, written) or {}
    notes.fields(path, body, _SET)
    enabled: dict[str, Enabled] = {}
    for index, entry in enumerate(notes.sequence(f"{path}.enabled", body.get("enabled"))):
        where = f"{path}.enabled[{index}]"
        name = _name(where, entry, _PLUGIN, notes)
        if name is None:
            continue
        weight = _weight(where, entry.get("weight"), notes)
        if name in enabled:
            notes.fault(where, f"enables {name} a second time; remove one")
        if name in known_names.OURS:
            enabled[name] = Enabled(name, weight)
    return PluginSet(tuple(enabled.values()), _disabled(body.get("disabled"), path, notes))


def _disabled(written: Any, path: str, notes: Notes) -> frozenset[str]:
    found: set[str] = set()
    for index, entry in enumerate(notes.sequence(f"{path}.disabled", written)):
        if isinstance(entry, dict) and entry.get("name") == plugin_sets.EVERY:
            found.add(plugin_sets.EVERY)
            continue
        name = _name(f"{path}.disabled[{index}]", entry, _PLUGIN, notes)
        found |= {name} & set(known_names.OURS) if name else set()
    return frozenset(found)


def _weight(where: str, written: Any, notes: Notes) -> int:
    """Return the weight of a score; none and 0 mean 1, as for kube-scheduler."""
    if written is None:
        return 1
    if isinstance(written, bool) or not isinstance(written, int) or not 0 <= written <= _HEAVIEST:
        notes.fault(f"{where}.weight", f"is {shown(written)}, must be in 0..{_HEAVIEST}")
        return 1
    return written or 1


def _doubt(found: Mapping[str, PluginSet], path: str, notes: Notes) -> None:
    """Warn where batch and mid resources would not be looked at while a node is chosen."""
    standard = (Enabled(known_names.BATCH_FIT),)
    at = {
        point: bool(plugin_sets.resolved(point, standard, _only(found, known_names.BATCH_FIT)))
        for point in (plugin_sets.FILTER, plugin_sets.RESERVE)
    }
    if not at[plugin_sets.FILTER]:
        note = f"disables {known_names.BATCH_FIT}, which keeps batch pods to what nodes may lend"
        notes.warn(f"{path}.filter", note)
        if at[plugin_sets.RESERVE]:
            note = f"leaves {known_names.BATCH_FIT} enabled, so that binds fail; disable it too"
            notes.warn(f"{path}.reserve", note)


def _only(found: Mapping[str, PluginSet], name: str) -> dict[str, PluginSet]:
    return {
        point: PluginSet(tuple(one for one in own.enabled if one.name == name), own.disabled)
        for point, own in found.items()
    }
