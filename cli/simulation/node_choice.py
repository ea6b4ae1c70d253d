"""Which node kube-scheduler would choose: its score plug-ins over the state of an extender.

The profile is the one that `koord render` writes. Default spreading of Services and ReplicaSets,
images and volumes are not in a snapshot and count for nothing.
"""

import functools
from collections.abc import Mapping
from typing import Final

import yaml

from api.kubernetes import core, scheduler_config
from cli.quota import cluster as clusters
from cli.snapshot import format as formats
from cli.snapshot import projection
from domain.scheduler_settings import bounded_yaml
from domain.scoring import eligibility, objects, profile, releases, totals
from domain.scoring import pod as scored_pod
from extender.framework import verdicts, views
from extender.scoring import decider, profiles, state, traits
from extender.state import cluster_state, deltas
from extender.verbs import prioritize

_URL: Final = "http://127.0.0.1"
_VERSION: Final = f"1.{releases.NEWEST}"
_CONTROLLERS: Final = frozenset({"ReplicationController", "ReplicaSet", "StatefulSet"})
SPREADING: Final = "its controller may spread its pods, and is not in a snapshot"


class NodeChoice:
    """Scores candidates as kube-scheduler does, with the points of the extender."""

    def __init__(self, snapshot: formats.Snapshot) -> None:
        self._profiles = _profiles(snapshot)
        self._known = state.ScoringState(self._profiles.resources)

    @property
    def projector(self) -> traits.Projector:
        """Return what reads pods and nodes for it."""
        settings = next(iter(self._profiles.by_name.values()))
        return traits.Projector(self._profiles.resources, settings.release)

    def follow(self, cluster: cluster_state.ClusterState) -> None:
        """Take in a state as it is, and follow it from here on."""
        for name in cluster.nodes():
            self._known.follow(deltas.NodeDelta(name, None, cluster.node(name)))
        for ident, claim in cluster.all_claims().items():
            self._known.follow(deltas.ClaimDelta(ident, None, claim))
        cluster.followers.append(self._known.follow)

    def order(
        self, pod: objects.Pod, view: views.View, rows: verdicts.Rows, points: verdicts.Column
    ) -> list[int]:
        """Return the places among the rows, the node that would be chosen first.

        Between nodes of the same total kube-scheduler draws lots; here the first name wins.
        """
        settings = self._settings(pod)
        scored = scored_pod.read(pod, settings.release)
        here = self._known.translated(view).take(rows)
        compared = self._known.indexes.columns(scored, self._known.size)
        scores = totals.score(settings, scored, self._known.nodes(), compared, here)
        least = prioritize.points(points)
        scores = totals.with_points(scores, decider.POINTS, least, settings.extender_weight)
        listed = [view.names[row] for row in rows.tolist()]
        return sorted(range(len(listed)), key=lambda at: (-int(scores.total[at]), listed[at]))

    def doubt(self, pod: objects.Pod) -> str:
        """Return why kube-scheduler may score the nodes of a pod otherwise; empty: it does not."""
        facts = eligibility.ClusterFacts(True, self._known.terms, self._known.indexes.images)
        found = eligibility.undecidable(self._settings(pod), pod, facts)
        owner = pod.metadata.controller
        if not found and owner is not None and owner.kind in _CONTROLLERS:
            return SPREADING
        return found

    def _settings(self, pod: core.Pod) -> profile.ScoringProfile:
        """Return the profile of the scheduler that the pod names, else the stock one."""
        by_name = self._profiles.by_name
        found = by_name.get(pod.spec.scheduler_name)
        return found if found is not None else by_name[scheduler_config.STOCK_PROFILE]


def _profiles(snapshot: formats.Snapshot) -> profiles.Profiles:
    found = _read(_version(snapshot))
    return found if found.by_name else _read(_VERSION)


@functools.lru_cache(maxsize=8)
def _read(version: str) -> profiles.Profiles:
    both = (scheduler_config.STOCK_PROFILE, scheduler_config.PROFILE)
    options = scheduler_config.Options(_URL, scheduler_names=both)
    text = yaml.safe_dump(scheduler_config.render(options))
    return profiles.read(profiles.Scheduler(text, version, (), _URL))


def _version(snapshot: formats.Snapshot) -> str:
    """Return the version of kube-scheduler that the extender was told, else the newest known."""
    written = clusters.settings(snapshot, projection.EXTENDER_SETTINGS).get("settings.yaml", "")
    try:
        found = bounded_yaml.parse(written) or {}
        scheduler = found.get("scheduler") if isinstance(found, Mapping) else None
        version = scheduler.get("version") if isinstance(scheduler, Mapping) else ""
    except ValueError:
        return _VERSION
    return str(version or _VERSION)
