"""Profiles of a DeschedulerConfiguration: which plug-ins are enabled where, and their arguments."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from api.plugin_args.arguments import Arguments
from descheduler.configuration import points
from descheduler.configuration.arguments import models, parts
from domain.cluster_settings.value_limits import shown
from domain.scheduler_settings import known_names, plugin_arguments, plugin_sets
from domain.scheduler_settings.notes import Notes

API_VERSION: Final = "descheduler/v1alpha2"
_CONFIG: Final = "pluginConfig"


class PluginName(Arguments):
    """A plug-in."""

    name: parts.Name
    """Its name; `*` in `disabled` stands for all that are enabled by default."""


class PluginSet(Arguments):
    """What a profile enables and disables at one extension point."""

    enabled: Annotated[tuple[PluginName, ...], Field(max_length=256)] = ()
    """Plug-ins that are enabled in this order, after those that are by default."""
    disabled: Annotated[tuple[PluginName, ...], Field(max_length=256)] = ()
    """Plug-ins that are enabled by default and are not wanted."""


class Plugins(Arguments):
    """What a profile enables and disables."""

    deschedule: PluginSet = PluginSet()
    """Plug-ins that look for pods which break a rule."""
    balance: PluginSet = PluginSet()
    """Plug-ins that even nodes out; they run after those."""
    evict: PluginSet = PluginSet()
    """The one plug-in by which pods leave."""
    filter: PluginSet = PluginSet()
    """Plug-ins that say which pods must stay."""

    def at(self, point: points.Point) -> PluginSet:
        """Return what is said about an extension point."""
        found: PluginSet = getattr(self, point)
        return found


class ProfileHead(Arguments):
    """A profile without the arguments of its plug-ins."""

    name: str = ""
    """Name of the profile; needed where there are several."""
    node_selector: parts.LabelSelector | None = None
    """Nodes that its plug-ins are shown; all when missing."""
    plugins: Plugins = Plugins()
    """What is enabled and disabled."""


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """A profile with every default filled in."""

    name: str
    node_selector: parts.LabelSelector | None
    enabled: Mapping[points.Point, tuple[str, ...]]
    """Plug-ins by extension point, in their order."""
    arguments: Mapping[str, Arguments]
    """Of every plug-in that is enabled somewhere."""

    @property
    def evictor(self) -> str:
        """Return the plug-in by which pods leave."""
        return self.enabled[points.EVICT][0]


def read(written: Any, path: str, notes: Notes) -> Profile | None:
    """Return a profile; None, with the faults noted, where it cannot be used."""
    body = notes.mapping(path, written)
    if body is None:
        return None
    before = len(notes.faults)
    said = {key: value for key, value in body.items() if key != _CONFIG}
    head = plugin_arguments.validated(ProfileHead, said, path, notes)
    given = _given(body.get(_CONFIG), f"{path}.{_CONFIG}", notes)
    if head is None:
        return None
    enabled = {
        point: _enabled(point, head.plugins.at(point), f"{path}.plugins.{point}", notes)
        for point in points.POINTS
    }
    arguments = _completed(enabled, given, f"{path}.{_CONFIG}", notes)
    _note_opponents(enabled[points.BALANCE], f"{path}.plugins.{points.BALANCE}", notes)
    if len(notes.faults) > before:
        return None
    return Profile(head.name, head.node_selector, enabled, arguments)


def _given(written: Any, path: str, notes: Notes) -> dict[str, Arguments | None]:
    """Return the arguments that are written, by plug-in; None for those that cannot be read."""
    found: dict[str, Arguments | None] = {}
    places: dict[str, str] = {}
    for index, entry in enumerate(notes.sequence(path, written)):
        where = f"{path}[{index}]"
        body = notes.mapping(where, entry)
        if body is None:
            continue
        said = {key: value for key, value in body.items() if key != "args"}
        named = plugin_arguments.validated(PluginName, said, where, notes)
        if named is None:
            continue
        name = named.name
        if name in places:
            notes.fault(where, f"is for {shown(name)} like {places[name]}; remove one")
            continue
        places[name] = where
        if name not in models.MODELS:
            notes.warn(f"{where}.name", f"is {shown(name)}, {_unknown(name)}; ignored")
            continue
        of_type = plugin_arguments.Type(API_VERSION, f"{name}Args")
        model = models.MODELS[name]
        found[name] = plugin_arguments.read(
            model, body.get("args"), f"{where}.args", of_type, notes
        )
    return found


def _enabled(point: points.Point, said: PluginSet, path: str, notes: Notes) -> tuple[str, ...]:
    seen: set[str] = set()
    for index, one in enumerate(said.enabled):
        where = f"{path}.enabled[{index}]"
        if one.name not in points.EXTENDED:
            notes.fault(f"{where}.name", f"is {shown(one.name)}, {_unknown(one.name)}; correct it")
        elif point not in points.EXTENDED[one.name]:
            right = " or ".join(sorted(points.EXTENDED[one.name]))
            notes.fault(where, f"{one.name} does not extend {point}; enable it at {right}")
        if one.name in seen:
            notes.fault(where, f"enables {shown(one.name)} a second time; remove one")
        seen.add(one.name)
    for index, one in enumerate(said.disabled):
        if one.name != plugin_sets.EVERY and one.name not in points.EXTENDED:
            where = f"{path}.disabled[{index}].name"
            notes.warn(where, f"is {shown(one.name)}, {_unknown(one.name)}; ignored")
    found = _merged(points.STANDARD[point], said)
    if point == points.EVICT and len(found) != 1:
        listed = ", ".join(found) or "none"
        notes.fault(path, f"exactly one plug-in evicts, and {listed} would; enable one of them")
    return found


def _note_opponents(enabled: Sequence[str], path: str, notes: Notes) -> None:
    """Warn of plug-ins of which one fills the nodes that the other empties."""
    if models.HIGH_NODE_UTILIZATION not in enabled:
        return
    for name in (models.LOW_NODE_UTILIZATION, models.LOW_NODE_LOAD):
        if name in enabled:
            said = f"{models.HIGH_NODE_UTILIZATION} empties nodes that {name} fills"
            notes.warn(path, f"{said}; give them profiles with different nodes")


def _merged(standard: Sequence[str], said: PluginSet) -> tuple[str, ...]:
    enabled = tuple(plugin_sets.Enabled(one.name) for one in said.enabled)
    own = plugin_sets.PluginSet(enabled, frozenset(one.name for one in said.disabled))
    found = plugin_sets.merged([plugin_sets.Enabled(name) for name in standard], own)
    return tuple(one.name for one in found)


def _completed(
    enabled: Mapping[points.Point, tuple[str, ...]],
    given: Mapping[str, Arguments | None],
    path: str,
    notes: Notes,
) -> dict[str, Arguments]:
    """Return the arguments of all plug-ins that are enabled, with every default filled in."""
    found: dict[str, Arguments] = {}
    for name in dict.fromkeys(name for chosen in enabled.values() for name in chosen):
        if name not in models.MODELS:
            continue
        if name not in given:
            where = f"{path}, which has no entry for {name}"
            one = plugin_arguments.validated(models.MODELS[name], {}, where, notes)
        else:
            one = given[name]
        if one is not None:
            found[name] = one.complete()
    return found


def _unknown(name: str) -> str:
    close = known_names.meant(name, models.MODELS)
    return f"which is no plug-in; did you mean {close}?" if close else "which is no plug-in"
