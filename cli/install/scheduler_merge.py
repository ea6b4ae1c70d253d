"""Put the extender into a scheduler configuration that is already in use; pure.

Everything the owner wrote stays. Changed are the weights of all scorers, which grow alike, the
longest back-off, and the list of extenders.
"""

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from api import names
from api.kubernetes import scheduler_config
from domain.scheduler_settings import known_names

Document = dict[str, Any]

_GROUP = "kubescheduler.config.k8s.io/"
_STOCK_BACKOFF = 10
_MOST_WEIGHT = 2**31 - 1
_NOT_IN_TREE = frozenset(known_names.OURS) | known_names.NOT_OFFERED
_LEANED_ON = {
    ("NodeResourcesFit", "filter"): "it is what keeps batch-cpu, cpu and memory from being"
    " given away twice",
    ("SchedulingGates", "preEnqueue"): "pods wait for their quota and for their gang behind"
    " scheduling gates",
}


class MergeError(ValueError):
    """A configuration that cannot work with the extender; every reason is in `problems`."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(self.problems))


@dataclasses.dataclass(frozen=True, slots=True)
class Merged:
    """A configuration that also calls the extender, and what its owner should know."""

    document: Document
    notes: tuple[str, ...]
    others: int
    """How many extenders come before ours."""


def merge(existing: Any, options: scheduler_config.Options, *, beside: bool) -> Merged:
    """Return the owner's configuration with the extender in it."""
    _check_kind(existing)
    document: Document = copy.deepcopy(existing)
    profiles = document.setdefault("profiles", [{}])
    if not profiles:
        profiles.append({})
    document.setdefault("extenders", [])
    shapes = list(_misshapen(document))
    if shapes:
        raise MergeError(*shapes)
    taken_out = [
        note
        for number, profile in enumerate(profiles)
        for note in _without_ours(profile, f"profiles[{number}]")
    ]
    problems = [*_foreign(document["extenders"], options), *_unusable(profiles, beside)]
    if problems:
        raise MergeError(*problems)
    notes = [*taken_out, *_connected(document, options, beside), *_hasty(document, options)]
    for number, profile in enumerate(profiles):
        notes += _remarks(profile, f"profiles[{number}]")
        profile["plugins"] = _scaled(profile.get("plugins") or {}, f"profiles[{number}].plugins")
    others = len(document["extenders"])
    for number, other in enumerate(document["extenders"]):
        if other.get("weight"):
            other["weight"] = _times(other["weight"], f"extenders[{number}].weight")
    document["extenders"] += scheduler_config.extenders(options)
    share = options.percentage_of_nodes_to_score
    if share:
        document["percentageOfNodesToScore"] = share
    return Merged(document, tuple(notes), others)


def _check_kind(existing: Any) -> None:
    if not isinstance(existing, Mapping) or existing.get("kind") != scheduler_config.KIND:
        raise MergeError(f"this is no {scheduler_config.KIND}; give the file behind --config")
    version = str(existing.get("apiVersion", ""))
    if version == scheduler_config.API_VERSION:
        return
    if version.startswith(f"{_GROUP}v1beta"):
        raise MergeError(
            f"apiVersion {version}: Kubernetes 1.29 has dropped it; write"
            f" {scheduler_config.API_VERSION}, which every release since 1.25 reads and which"
            " has the same fields, and try the file with your kube-scheduler first"
        )
    raise MergeError(f"apiVersion {version or '(none)'}: give {scheduler_config.API_VERSION}")


def _misshapen(document: Document) -> Iterator[str]:
    """Tell which parts are not of the shape that the rest of this module takes for granted."""
    for part in ("profiles", "extenders"):
        if not _is_list_of_mappings(document[part]):
            yield f"{part}: expected a list of mappings"
            return
    for part in ("leaderElection", "clientConnection"):
        if not isinstance(document.get(part, {}), Mapping):
            yield f"{part}: expected a mapping"
    for part in ("podInitialBackoffSeconds", "podMaxBackoffSeconds"):
        if not isinstance(document.get(part, 1), int):
            yield f"{part}: expected whole seconds"
    for number, profile in enumerate(document["profiles"]):
        yield from _misshapen_profile(profile, f"profiles[{number}]")


def _misshapen_profile(profile: Document, where: str) -> Iterator[str]:
    if not _is_list_of_mappings(profile.get("pluginConfig") or []):
        yield f"{where}.pluginConfig: expected a list of mappings"
    plugins = profile.get("plugins") or {}
    if not isinstance(plugins, Mapping):
        yield f"{where}.plugins: expected a mapping"
        return
    for point, found in plugins.items():
        for part in ("enabled", "disabled"):
            entries = (found or {}).get(part) or [] if isinstance(found or {}, Mapping) else None
            if not _is_list_of_mappings(entries) or not all("name" in one for one in entries or ()):
                yield f"{where}.plugins.{point}.{part}: expected a list of entries with a name"


def _is_list_of_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _without_ours(profile: Document, where: str) -> Iterator[str]:
    """Take out what only Koordinator's scheduler knows; an unmodified one would not start."""
    found: set[str] = set()
    configured = profile.get("pluginConfig") or []
    if configured:
        found |= {str(one.get("name")) for one in configured} & _NOT_IN_TREE
        profile["pluginConfig"] = [one for one in configured if one.get("name") not in _NOT_IN_TREE]
    for point, chosen in (profile.get("plugins") or {}).items():
        for part in ("enabled", "disabled"):
            entries = _entries(profile["plugins"], point, part)
            kept = [one for one in entries if one["name"] not in _NOT_IN_TREE]
            if len(kept) < len(entries):
                found |= {one["name"] for one in entries} & _NOT_IN_TREE
                chosen[part] = kept
    if found:
        yield (
            f"{where}: {', '.join(sorted(found))} are no plug-ins of kube-scheduler and are taken"
            f" out; name them for the extender in ConfigMap {names.CONFIG_MAP_SCHEDULER}"
        )


def _foreign(entries: Sequence[Document], options: scheduler_config.Options) -> Iterator[str]:
    ours = options.extender_url.rstrip("/")
    for number, found in enumerate(entries):
        where = f"extenders[{number}]"
        if str(found.get("urlPrefix", "")).rstrip("/") == ours:
            yield (
                f"{where}.urlPrefix {ours}: this configuration calls the extender already, so its"
                " weights have grown already; start from the one you had before"
            )
        elif found.get("bindVerb"):
            skipped = (
                " (being ignorable, it could moreover be skipped and the pod bound without its"
                " allocation)"
                if found.get("ignorable")
                else ""
            )
            yield (
                f"{where}.bindVerb {found['bindVerb']}: kube-scheduler allows one extender that"
                " binds, and Koord's must be the one, because an allocation is written together"
                f" with the Binding{skipped}; remove bindVerb from that entry, or leave this"
                " scheduler as it is and run Koord beside it (--mode beside)"
            )


def _unusable(profiles: Sequence[Document], beside: bool) -> Iterator[str]:
    for number, profile in enumerate(profiles):
        where = f"profiles[{number}]"
        name = profile.get("schedulerName", scheduler_config.STOCK_PROFILE)
        if beside and name == scheduler_config.STOCK_PROFILE:
            yield (
                f"{where}.schedulerName {name}: beside the cluster's own scheduler both would"
                f" place the same pods; name it {scheduler_config.PROFILE}, or use --mode in-place"
            )
        plugins = profile.get("plugins") or {}
        for (plugin, point), why in _LEANED_ON.items():
            if not _runs(plugins, plugin, point):
                yield f"{where}.plugins: {plugin} is disabled; enable it again: {why}"


def _remarks(profile: Document, where: str) -> Iterator[str]:
    """Tell what works, but not as well as it might."""
    if not _runs(profile.get("plugins") or {}, "DefaultPreemption", "postFilter"):
        yield f"{where}: DefaultPreemption is disabled, so batch pods do not make room for others"


def _connected(
    document: Document, options: scheduler_config.Options, beside: bool
) -> Iterator[str]:
    connection = document.setdefault("clientConnection", {})
    connection.setdefault("qps", options.queries_per_second)
    connection.setdefault("burst", options.burst or 2 * connection["qps"])
    if not beside:
        if not connection.get("kubeconfig"):
            connection["kubeconfig"] = options.kubeconfig
        return
    if connection.get("kubeconfig", options.kubeconfig) != options.kubeconfig:
        yield (
            f"clientConnection.kubeconfig was {connection['kubeconfig']}; in a pod of its own this"
            " scheduler uses its ServiceAccount"
        )
    connection["kubeconfig"] = options.kubeconfig
    elected = scheduler_config.leadership(True, options.lease)
    document["leaderElection"] = {**document.get("leaderElection", {}), **elected}


def _hasty(document: Document, options: scheduler_config.Options) -> Iterator[str]:
    most = min(document.get("podMaxBackoffSeconds", _STOCK_BACKOFF), options.max_backoff_seconds)
    document["podMaxBackoffSeconds"] = most
    first = document.get("podInitialBackoffSeconds", 1)
    if first > most:
        document["podInitialBackoffSeconds"] = most
        yield f"podInitialBackoffSeconds was {first}; it cannot be longer than the longest, {most}"


def _runs(plugins: Mapping[str, Any], plugin: str, point: str) -> bool:
    """Tell whether a plug-in that is on by default still runs at an extension point."""
    if plugin in _listed(plugins, point, "enabled"):
        return True
    off = {plugin, "*"}
    if off & set(_listed(plugins, point, "disabled")):
        return False
    if plugin in _listed(plugins, "multiPoint", "enabled"):
        return True
    return not off & set(_listed(plugins, "multiPoint", "disabled"))


def _scaled(plugins: Document, where: str) -> Document:
    """Return the plug-ins with every scorer's weight grown, those on by default included."""
    scaled = dict(plugins)
    for point in ("score", "multiPoint"):
        enabled = [
            one
            if one["name"] in scheduler_config.NOT_SCORING
            else {**one, "weight": _times(one.get("weight") or 1, f"{where}.{point}.{one['name']}")}
            for one in _entries(plugins, point, "enabled")
        ]
        if enabled:
            scaled[point] = {**plugins[point], "enabled": enabled}
    off = {*_listed(plugins, "multiPoint", "disabled"), *_listed(plugins, "score", "disabled")}
    said = {*_listed(plugins, "multiPoint", "enabled"), *_listed(plugins, "score", "enabled")}
    defaults = [
        {"name": name, "weight": weight * scheduler_config.SCALE}
        for name, weight in scheduler_config.STOCK_WEIGHTS.items()
        if name not in said and name not in off and "*" not in off
    ]
    if defaults:
        everywhere = dict(scaled.get("multiPoint") or {})
        everywhere["enabled"] = [*(everywhere.get("enabled") or ()), *defaults]
        scaled["multiPoint"] = everywhere
    return scaled


def _times(weight: Any, where: str) -> int:
    if not isinstance(weight, int) or weight * scheduler_config.SCALE > _MOST_WEIGHT:
        raise MergeError(
            f"{where}: weight {weight} cannot be taken {scheduler_config.SCALE} times; divide"
            " all weights by the same number"
        )
    return weight * scheduler_config.SCALE


def _entries(plugins: Mapping[str, Any], point: str, part: str) -> list[Document]:
    return (plugins.get(point) or {}).get(part) or []


def _listed(plugins: Mapping[str, Any], point: str, part: str) -> list[str]:
    return [one["name"] for one in _entries(plugins, point, part)]
