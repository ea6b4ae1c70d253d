"""Plug-in name to class: one visible dict."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from api import names
from api.plugin_args import job, models, node
from api.plugin_args.arguments import Arguments
from domain.gangs import declaration
from domain.quota import model
from domain.scheduler_settings import known_names
from domain.scheduler_settings import load_aware as load_arguments
from extender import plugin_selection
from extender.framework import assembly, pipeline, protocols
from extender.plugins.batch_fit import batch_fit
from extender.plugins.coscheduling import coscheduling
from extender.plugins.device_share import device_share
from extender.plugins.elastic_quota import elastic_quota
from extender.plugins.load_aware import load_aware
from extender.plugins.node_numa_resource import node_numa_resource
from extender.plugins.node_resources_fit_plus import node_resources_fit_plus
from extender.plugins.reservation import reservation
from extender.plugins.scarce_resource_avoidance import scarce_resource_avoidance
from extender.settings import PluginSettings
from extender.state import records, requirement_reader


def _load_aware(arguments: Arguments | None) -> protocols.Plugin:
    assert isinstance(arguments, node.LoadAwareSchedulingArgs)
    return load_aware.LoadAware(load_arguments.arguments(arguments))


def _elastic_quota(
    arguments: Arguments | None, namespace: str = names.NAMESPACE
) -> protocols.Plugin:
    assert isinstance(arguments, job.ElasticQuotaArgs)
    return elastic_quota.ElasticQuota(
        model.rules(arguments),
        preempts_default=not arguments.disable_default_quota_preemption,
        namespace=namespace,
    )


def _coscheduling(arguments: Arguments | None) -> protocols.Plugin:
    assert isinstance(arguments, job.CoschedulingArgs)
    policy = declaration.MatchPolicy(arguments.default_match_policy)
    defaults = declaration.Defaults(arguments.default_timeout, policy)
    return coscheduling.Coscheduling(
        defaults, network=arguments.places_by_network, preempts=arguments.enable_preemption
    )


def _device_share(arguments: Arguments | None) -> protocols.Plugin:
    assert isinstance(arguments, node.DeviceShareArgs)
    return device_share.DeviceShare(device_share.arguments(arguments))


def _node_numa_resource(arguments: Arguments | None) -> protocols.Plugin:
    assert isinstance(arguments, node.NodeNUMAResourceArgs)
    return node_numa_resource.NodeNUMAResource(node_numa_resource.read_arguments(arguments))


def _node_resources_fit_plus(arguments: Arguments | None) -> protocols.Plugin:
    assert isinstance(arguments, node.NodeResourcesFitPlusArgs)
    chosen = {name: (one.type, one.weight) for name, one in arguments.resources.items()}
    return node_resources_fit_plus.NodeResourcesFitPlus(chosen)


def _reservation(arguments: Arguments | None) -> protocols.Plugin:
    assert isinstance(arguments, job.ReservationArgs)
    return reservation.Reservation(
        reservation.read_arguments(arguments), owners_leave=arguments.enable_preemption
    )


def _scarce_resource_avoidance(arguments: Arguments | None) -> protocols.Plugin:
    assert isinstance(arguments, node.ScarceResourceAvoidanceArgs)
    return scarce_resource_avoidance.ScarceResourceAvoidance(arguments.resources)


_MEASURED: Final = (names.CPU, names.MEMORY)
Plugins = Mapping[str, Callable[[Arguments | None], protocols.Plugin]]

PLUGINS: Plugins = {
    known_names.BATCH_FIT: lambda _: batch_fit.BatchFit(),
    models.LOAD_AWARE: _load_aware,
    models.ELASTIC_QUOTA: _elastic_quota,
    models.COSCHEDULING: _coscheduling,
    models.DEVICE_SHARE: _device_share,
    models.NODE_NUMA_RESOURCE: _node_numa_resource,
    models.RESERVATION: _reservation,
    models.NODE_RESOURCES_FIT_PLUS: _node_resources_fit_plus,
    models.SCARCE_RESOURCE_AVOIDANCE: _scarce_resource_avoidance,
}
"""By the name in scheduler configurations; arguments are None where a plug-in takes none."""


def at_home(known: Plugins, namespace: str) -> Plugins:
    """Return the plug-ins of an extender that runs in a namespace."""
    if known.get(models.ELASTIC_QUOTA) is not _elastic_quota:
        return known
    found = functools.partial(_elastic_quota, namespace=namespace)
    return {**known, models.ELASTIC_QUOTA: found}


@dataclasses.dataclass(frozen=True, slots=True)
class Built:
    """Plug-ins, and what they were built from."""

    known: Plugins
    selection: plugin_selection.Selection
    plugins: Mapping[str, protocols.Plugin]
    """By the name in scheduler configurations; those that are there."""


def check(settings: PluginSettings, known: Plugins = PLUGINS) -> None:
    """Raise a ValueError that names a plug-in of the settings that does not exist."""
    for name in (*settings.enabled, *settings.weights):
        if known_names.full(name) not in known:
            raise ValueError(
                f"plugins.enabled: {name} does not exist; known are {', '.join(sorted(known))}"
            )


def build(
    selection: plugin_selection.Selection, before: Built | None = None, known: Plugins = PLUGINS
) -> Built:
    """Build the plug-ins that are enabled anywhere; one whose arguments are the same stays."""
    known = known if before is None else before.known
    plugins: dict[str, protocols.Plugin] = {}
    for name in selection.names():
        if name not in known:
            # Of a configuration for plug-ins that are still to come.
            continue
        arguments = selection.arguments.get(name)
        present = before.plugins.get(name) if before is not None else None
        if before is None or present is None or before.selection.arguments.get(name) != arguments:
            present = known[name](arguments)
        plugins[name] = present
    return Built(known, selection, plugins)


def every(built: Built) -> list[protocols.Plugin]:
    """Return all plug-ins there are, enabled or not: what pods were granted counts with both.

    Those that are enabled are the very ones, which know what they have written themselves.
    """
    return [
        built.plugins[name] if name in built.plugins else make(built.selection.arguments.get(name))
        for name, make in built.known.items()
    ]


def assemble(built: Built) -> pipeline.Pipeline:
    """Sort plug-ins by what they implement and where they are enabled."""

    def enabled(point: str) -> list[protocols.Plugin]:
        found = (built.plugins.get(name) for name in built.selection.at(point))
        return [plugin for plugin in found if plugin is not None]

    weights = {plugin.name: built.selection.weight(name) for name, plugin in built.plugins.items()}
    return assembly.assemble(enabled, weights)


def codecs(plugins: Iterable[protocols.Plugin]) -> tuple[protocols.AllocationCodec, ...]:
    """Return the plug-ins that record what they allocate on pods."""
    return tuple(p for p in plugins if isinstance(p, protocols.AllocationCodec))


def inputs(plugins: Iterable[protocols.Plugin]) -> requirement_reader.Inputs:
    """Return the labels and annotations of pods that plug-ins look at."""
    readers = [p for p in plugins if isinstance(p, protocols.PodReader)]
    return requirement_reader.Inputs(
        frozenset((*records.LABELS, *(name for one in readers for name in one.pod_labels))),
        frozenset(name for reader in readers for name in reader.pod_annotations),
    )


def kinds(plugins: Iterable[protocols.Plugin], whole: Mapping[str, object]) -> frozenset[str]:
    """Return the kinds of objects that plug-ins need, by their values of the whole cluster."""
    needing = [one for one in _object_readers(tuple(plugins)) if one.needs(whole.get(one.name))]
    return frozenset(kind for reader in needing for kind in reader.kinds)


@functools.lru_cache(maxsize=4)
def _object_readers(plugins: tuple[protocols.Plugin, ...]) -> tuple[protocols.ObjectReader, ...]:
    """Return the plug-ins that keep objects; asked for all the time, and slow to find out."""
    return tuple(p for p in plugins if isinstance(p, protocols.ObjectReader))


def state_trackers(plugins: Iterable[protocols.Plugin]) -> tuple[protocols.StateTracker, ...]:
    """Return the plug-ins that keep figures of every node."""
    return tuple(p for p in plugins if isinstance(p, protocols.StateTracker))


def universe(plugins: Iterable[protocols.Plugin]) -> tuple[str, ...]:
    """Return the resources that load reports are read for.

    There are always some: a plug-in that is enabled later finds them in the reports so far.
    """
    return next((p.universe for p in plugins if isinstance(p, load_aware.LoadAware)), _MEASURED)
