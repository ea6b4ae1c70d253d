"""Choose the node that kube-scheduler would choose, where its whole total can be computed here."""

import collections
import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from domain.scoring import columns as node_columns
from domain.scoring import eligibility, explanation, objects, profile, releases, totals
from domain.scoring import pod as scored_pod
from domain.scoring.indexes import workloads
from extender.framework import verdicts, views
from extender.scoring import attempts, decisions, state, traits

NO_PROFILE: Final = "the scheduler has no profile of the name that the pod gives"
UNKNOWN_CONTROLLER: Final = "the controller of the pod is not known yet"
POINTS: Final = "Extender"
"""What our own points are called beside the score plug-ins."""

_MOST_PODS: Final = 2048
_LONGEST_SHAPE: Final = 16 << 10
"""Bytes of what the scores of a pod depend on that are read once for all that are alike."""
_Key = tuple[int, bytes]
Points = Callable[[], verdicts.Column]
"""Computes our own points of the candidates; called only where they are needed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Caches:
    """What nothing but scores depends on."""

    workloads: workloads.WorkloadIndex
    bound_claims: Collection[str]
    device_resources: Collection[str]
    synced: Callable[[], bool]


class Asked(msgspec.Struct, frozen=True, gc=False):
    """One filter call, as far as a decision depends on it."""

    pod: objects.Pod
    placed: traits.PodTraits
    view: views.View
    rows: verdicts.Rows
    """Rows of the view that passed every filter."""

    @property
    def key(self) -> str:
        """Return namespace/name of the pod."""
        return self.pod.metadata.key


class Decider:
    """Decides one pod after the other; `count` gets every reason, empty where one is decided."""

    def __init__(
        self,
        profiles: Mapping[str, profile.ScoringProfile],
        known: state.ScoringState,
        caches: Caches,
        *,
        monotonic: Callable[[], float],
        draw: Callable[[], int],
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.decisions = decisions.Decisions()
        self.halted = ""
        """Why nothing is decided at present, empty while something may be."""
        self._profiles, self._known, self.caches = profiles, known, caches
        self._monotonic, self._draw, self._count = monotonic, draw, count
        self._facts = {
            synced: eligibility.ClusterFacts(
                synced=synced,
                terms=known.terms,
                images=known.indexes.images,
                bound_claims=caches.bound_claims,
                device_resources=caches.device_resources,
            )
            for synced in (False, True)
        }
        self._attempts = attempts.Attempts()
        self._pods: collections.OrderedDict[_Key, scored_pod.PodScoring] = collections.OrderedDict()

    @property
    def profiles(self) -> Mapping[str, profile.ScoringProfile]:
        """Return the profiles of the scheduler by name."""
        return self._profiles

    @property
    def synced(self) -> bool:
        """Whether every cache that a decision reads is to be trusted."""
        return self.caches.synced()

    def decide(self, asked: Asked, points: Points, now: float) -> int | None:
        """Return the place among the rows of the chosen node; None leaves the choice to others."""
        moment = self._monotonic()
        self._known.expire(moment)
        uid = asked.pod.metadata.uid
        # A pod that is asked about again is not on its way to where it was sent before.
        self._known.end_shadow(uid)
        reason = self.undecidable(asked.pod)
        self._count(reason)
        if reason:
            self.decisions.put(asked.key, decisions.Decision(uid, now, None, reason))
            return None
        settings = self._profiles[asked.pod.spec.scheduler_name]
        rows = self._known.translated(asked.view).take(asked.rows)
        scores = self._scores(settings, asked.pod, rows)
        if settings.extender_weight:
            scores = totals.with_points(scores, POINTS, points(), settings.extender_weight)
        failed = self._attempts.failed(uid, moment)
        avoided = frozenset((self._known.row(failed),)) if failed else frozenset()
        chosen = totals.choose(scores, self._draw(), avoided)
        found = explanation.explain(scores, self._known.names, chosen)
        self.decisions.put(asked.key, decisions.Decision(uid, now, found))
        return chosen

    def sent(self, asked: Asked, node: str) -> None:
        """Note that one node was answered: the scheduler takes it without scoring."""
        uid, now = asked.pod.metadata.uid, self._monotonic()
        self._attempts.sent(uid, node, now)
        placed = state.Placed(node, asked.pod.metadata.namespace, asked.placed)
        self._known.cast_shadow(uid, placed, now)

    def undecidable(self, pod: objects.Pod) -> str:
        """Return why the total of a pod cannot be computed here, empty where it can."""
        settings = self._profiles.get(pod.spec.scheduler_name)
        if settings is None:
            return NO_PROFILE
        facts = self._facts[self.caches.synced()]
        reason = self.halted or eligibility.undecidable(settings, pod, facts)
        if reason or self.caches.workloads.knows_controller(pod.metadata):
            return reason
        return UNKNOWN_CONTROLLER

    def _scores(
        self, settings: profile.ScoringProfile, pod: objects.Pod, rows: node_columns.Integers
    ) -> totals.Scores:
        scored = self._scored(pod, settings.release)
        compared = self._known.indexes.columns(scored, self._known.size)
        return totals.score(settings, scored, self._known.nodes(), compared, rows)

    def _scored(self, pod: objects.Pod, release: releases.Release) -> scored_pod.PodScoring:
        """Read what a pod asks of score plug-ins, once for pods that are alike."""
        spread = self.caches.workloads.selector(pod.metadata)
        text = traits.encoded(_shape(pod))
        if len(text) > _LONGEST_SHAPE:
            # What is kept outlives the pod, whose author may make it as long as he likes.
            return scored_pod.read(pod, release, spread)
        key = release.minor, traits.digest(text)
        found = self._pods.get(key)
        if found is None or found.spread is not spread:
            found = self._pods[key] = scored_pod.read(pod, release, spread)
            if len(self._pods) > _MOST_PODS:
                self._pods.popitem(last=False)
        else:
            self._pods.move_to_end(key)
        return found


def _shape(pod: objects.Pod) -> tuple[object, ...]:
    """Return everything that the scores of a pod depend on."""
    metadata, spec = pod.metadata, pod.spec
    return (
        metadata.namespace,
        metadata.labels,
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.resources,
        spec.node_selector,
        (spec.affinity or {}).get("nodeAffinity"),
        spec.tolerations,
        [one for one in spec.volumes if one.image is not None],
    )
