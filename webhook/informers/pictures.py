"""The picture that admission decides on, rebuilt when a watch brings a change."""

import itertools
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from api import names, resources
from api.koordinator import colocation, quota
from api.kubernetes import core
from api.plugin_args import models
from api.wire import base
from domain.pods import namespace_limits, required_labels
from domain.quota import configuration
from domain.quota.tree import quota_trees
from domain.scheduler_settings import documents, plugin_sets
from kube.informers import informer_set, reflector
from kube.informers import store as stores
from webhook import gates, review

logger = logging.getLogger(__name__)

T = TypeVar("T")

Limits = Mapping[str, list[tuple[str, namespace_limits.Limits]]]


class Opened(NamedTuple):
    """Which gates a controller opens at present; no other ones are added."""

    quotas: bool = False
    gangs: bool = False
    backlog: bool = False
    """Whether kube-scheduler has so many members of gangs to try that new ones need no gate."""


class Pictures:
    """Watches everything that reviews depend on; hands out one frozen picture.

    Without profiles, namespaces and priority classes nothing is answered. All else is better
    known than not, and what needs it is left out until it is.
    """

    def __init__(
        self,
        watched: informer_set.InformerSet,
        fixed: review.Picture,
        *,
        helpful: informer_set.InformerSet | None = None,
        opened: Callable[[], Opened] = Opened,
    ) -> None:
        """`fixed` holds what does not change while the process runs."""
        self._opened = opened
        self._helpful, on = helpful, fixed.gates
        self._parts: dict[str, Callable[[], Any]] = {}
        self._built: dict[str, Any] = {}
        self._picture: review.Picture | None = None
        self._profiles = watched.add(
            reflector.Projection(resources.COLOCATION_PROFILES, dict, _profile)
        )
        self._namespaces = watched.add(
            reflector.Projection(
                resources.NAMESPACES, core.Namespace, lambda found: found.metadata.labels
            )
        )
        self._classes = watched.add(
            reflector.Projection(resources.PRIORITY_CLASSES, core.PriorityClass, _class)
        )
        self._vital = (self._profiles, self._namespaces, self._classes)
        self._base = fixed
        self._part("profiles", lambda: tuple(self._profiles.values()), self._profiles)
        self._part("namespaces", lambda: dict(self._namespaces.items()), self._namespaces)
        self._part("priority_classes", lambda: dict(self._classes.items()), self._classes)
        if helpful is not None:
            self._gates(on)
            self._quotas()
            self._limits()
            self._settings(on)
            self._nodes(on)

    def present(self) -> review.Picture | None:
        """Return the present picture, None until every list that is needed is complete."""
        if not all(store.synced for store in self._vital):
            return None
        opened, known = self._opened(), self._picture
        if known is None or (known.opens_gates, known.plans_gangs, known.gang_backlog) != opened:
            for name, build in self._parts.items():
                # What is not known yet is asked for again, since an empty list changes nothing.
                if self._built.get(name) is None:
                    self._built[name] = build()
            known = self._base.but(
                **self._built,
                opens_gates=opened.quotas,
                plans_gangs=opened.gangs,
                gang_backlog=opened.backlog,
            )
            self._picture = None if None in self._built.values() else known
        return known

    def _part(self, name: str, build: Callable[[], Any], *sources: stores.Store[Any]) -> None:
        """Keep one part of the picture, built anew when one of its sources has changed."""

        def changed(_change: stores.Change[Any]) -> None:
            self._built.pop(name, None)
            self._picture = None

        self._parts[name] = build
        for source in sources:
            source.listen(changed)

    def _add(self, projection: reflector.Projection[T]) -> stores.Store[T]:
        assert self._helpful is not None
        return self._helpful.add(projection)

    def _gates(self, on: frozenset[str]) -> None:
        """Follow what extender and manager read too: gates of quota, and who places gangs."""
        store = self._add(reflector.config_map(names.CONFIG_MAP_SCHEDULER, self._base.namespace))

        def build() -> frozenset[str]:
            found = configuration.read(next(iter(store), core.ConfigMap()).data)
            if found.arguments is not None:
                self._gates_written = found.arguments.feature_gates.written()
            return gates.merged(on, self._gates_written)

        self._part("gates", build, store)

        def schedulers() -> frozenset[str]:
            written = next(iter(store), None)
            self._schedulers = _gang_schedulers(written, self._schedulers)
            return self._schedulers

        self._part("gang_schedulers", schedulers, store)

    _gates_written: Mapping[str, bool] = MappingProxyType({})
    _schedulers: frozenset[str] = frozenset()

    def _quotas(self) -> None:
        members = [
            self._add(reflector.Projection(resource, dict, _member))
            for resource in resources.QUOTA_RESOURCES
        ]
        pools = self._add(reflector.Projection(resources.ELASTIC_QUOTA_PROFILES, dict, _pool))
        self._part(
            "trees",
            lambda: quota_trees.trees(itertools.chain.from_iterable(members), pools),
            *members,
            pools,
        )

    def _limits(self) -> None:
        ranges = self._add(
            reflector.Projection(resources.LIMIT_RANGES, dict, namespace_limits.of_limit_range)
        )
        read = namespace_limits.of_resource_quota
        quotas = self._add(reflector.Projection(resources.RESOURCE_QUOTAS, dict, read))

        def build() -> Limits | None:
            if not (ranges.synced and quotas.synced):
                return None
            found: dict[str, list[tuple[str, namespace_limits.Limits]]] = {}
            for key, limits in (*ranges.items(), *quotas.items()):
                namespace, _, name = key.partition("/")
                found.setdefault(namespace, []).append((name, limits))
            return found

        self._part("limits", build, ranges, quotas)

    def _settings(self, on: frozenset[str]) -> None:
        if gates.NODES in on:
            self._config_map("settings", names.CONFIG_MAP_SLO, lambda found: found.data)
        if gates.REQUIRED_LABELS in on:
            self._config_map("demanded", required_labels.CONFIG_MAP, self._demanded)

    def _config_map(self, part: str, name: str, read: Callable[[core.ConfigMap], Any]) -> None:
        store = self._add(reflector.config_map(name, self._base.namespace))
        self._part(part, lambda: read(next(iter(store), core.ConfigMap())), store)

    def _demanded(self, found: core.ConfigMap) -> tuple[required_labels.Rule, ...]:
        """Read the demanded labels; what cannot be read leaves those that were read last."""
        try:
            self._last_demanded = required_labels.read(found.data)
        except base.ReadError as wrong:
            logger.error("rules left as they were reason=%s", wrong)
        return self._last_demanded

    _last_demanded: tuple[required_labels.Rule, ...] = ()

    def _nodes(self, on: frozenset[str]) -> None:
        if gates.CONFIG_MAPS not in on:
            return
        store = self._add(
            reflector.Projection(resources.NODES, core.Node, lambda found: found.metadata.labels)
        )
        self._part("nodes", lambda: dict(store.items()), store)


def _gang_schedulers(written: core.ConfigMap | None, before: frozenset[str]) -> frozenset[str]:
    """Return the schedulers whose extender places gangs, none where its plug-in is disabled.

    A document with a fault changes nothing, as in the extender.
    """
    if written is None:
        return frozenset()
    reading = documents.read(written.data)
    if reading.settings is None:
        return before
    standard = (plugin_sets.Enabled(models.COSCHEDULING),)
    enabled = plugin_sets.resolved(plugin_sets.FILTER, standard, reading.settings.plugins)
    if all(one.name != models.COSCHEDULING for one in enabled):
        return frozenset()
    listed = written.metadata.annotations.get(names.ANNOTATION_SCHEDULERS, "").split(",")
    return frozenset(filter(None, map(str.strip, listed)))


def _profile(raw: dict[str, Any]) -> colocation.ClusterColocationProfile | None:
    """Read a profile; one that cannot be read changes no pod and is logged."""
    try:
        read = colocation.review_profile(raw)
    except base.ReadError as wrong:
        logger.error("profile left out reason=%s", wrong)
        return None
    for warning in read.warnings:
        logger.warning("profile=%s warning=%s", read.value.name, warning)
    return read.value


def _class(found: core.PriorityClass) -> review.PriorityClass:
    return review.PriorityClass(found.metadata.name, found.value, found.preemption_policy)


def _member(raw: dict[str, Any]) -> quota_trees.Member | None:
    try:
        return quota_trees.member(raw)
    except (base.ReadError, ValueError) as wrong:
        logger.error("quota left out reason=%s", wrong)
        return None


def _pool(raw: dict[str, Any]) -> quota_trees.Pool | None:
    try:
        found = quota.read_elastic_quota_profile(raw)
    except base.ReadError as wrong:
        logger.error("quota profile left out reason=%s", wrong)
        return None
    tree = found.metadata.labels.get(names.LABEL_QUOTA_TREE, "")
    if not tree:
        return None
    return quota_trees.Pool(found.metadata.key, tree, found.spec.node_selector)
