"""Applies profiles to pods that were there before them and wait for a node."""

import dataclasses
import logging
import zlib
from collections.abc import Callable
from typing import Any, Final, Protocol

from api import resources
from api.koordinator import colocation
from domain.pods import profile_effects, profiles
from kube.client import errors
from kube.controllers import controller
from kube.informers import store
from manager.profiles import plan as plans
from manager.reconcile import actions, apply
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

logger = logging.getLogger(__name__)

REFUSED: Final = "PodNotChanged"


class Reader(Protocol):
    """Where pods are read as they stand."""

    async def get(self, resource: resources.Resource, name: str, namespace: str) -> dict[str, Any]:
        """Return one object."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often is looked, and how fast is written."""

    by_default: bool = False
    """Whether profiles are followed that do not ask for it."""
    interval_seconds: float = 30.0
    again_seconds: float = 300.0
    """How long a pod is left alone after it was dealt with."""
    per_second: float = 10.0
    burst: int = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Stores:
    """What decides which pods are meant."""

    profiles: Callable[[str], colocation.ClusterColocationProfile | None]
    namespaces: store.Store[dict[str, str]]
    pods: store.Store[plans.Waiting]


class ColocationProfiles:
    """Goes through the waiting pods of each profile, again and again."""

    def __init__(
        self,
        seen: Stores,
        reader: Reader,
        writer: apply.Writer,
        pace: Pace,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._seen = seen
        self._reader = reader
        self._writer = writer
        self._pace = pace
        self._clock = clock
        self._bucket = token_bucket.ClockedBucket(clock, pace.per_second, pace.burst)
        self._until: dict[tuple[str, str], float] = {}
        self._pods = registry.counter(
            "koord_manager_profile_pods_total",
            "Waiting pods that a profile selected, by what became of them.",
            ("result",),
        )

    async def reconcile(self, name: str) -> controller.Outcome:
        """Apply one profile to the pods that it selects."""
        profile = self._seen.profiles(name)
        if profile is None or not plans.is_managed(profile, by_default=self._pace.by_default):
            return controller.Outcome(
                "does not ask to be applied to pods that exist", changed=False
            )
        self._forget()
        results = dict.fromkeys(("changed", "unchanged", "refused"), 0)
        namespaces = dict(self._seen.namespaces.items())
        for pod in list(plans.candidates(profile, self._seen.pods, namespaces)):
            # Its version changes with its status as well, which concerns no pod.
            mark = (f"{name}/{profile.metadata.uid}/{profile.metadata.generation}", pod.uid)
            if mark in self._until or not _is_chosen(profile, mark):
                continue
            if not self._bucket.take():
                break
            result = await self._settle(profile, pod)
            if result is not None:
                self._until[mark] = self._clock.monotonic() + self._pace.again_seconds
                results[result] += 1
                self._pods.labels(result).inc()
        said = ", ".join(f"{count} {what}" for what, count in results.items() if count)
        return controller.Outcome(
            f"pods: {said or 'nothing to do'}",
            requeue_after=self._pace.interval_seconds,
            changed=bool(results["changed"]),
        )

    def _forget(self) -> None:
        now = self._clock.monotonic()
        for mark in [mark for mark, until in self._until.items() if until <= now]:
            del self._until[mark]

    async def _settle(
        self, profile: colocation.ClusterColocationProfile, pod: plans.Waiting
    ) -> str | None:
        """Change one pod and return what became of it; None where it is worth another try."""
        try:
            present = await self._reader.get(resources.PODS, pod.name, pod.namespace)
            body = plans.change(present, profile)
            if body is None:
                return "unchanged"
            step = actions.Merge(resources.PODS, pod.name, body, pod.namespace)
            await self._writer.carry_out(actions.Plan("", (step,)))
        except (errors.Conflict, errors.NotFound, *errors.OUTAGE) as passing:
            logger.debug("pod left for later pod=%s reason=%s", pod.key, passing)
            return None
        except (errors.ApiError, profile_effects.EffectError) as wrong:
            await self._tell(profile, f"pod {pod.key} could not be changed: {wrong}")
            return "refused"
        return "changed"

    async def _tell(self, profile: colocation.ClusterColocationProfile, note: str) -> None:
        told = actions.Tell(
            resources.COLOCATION_PROFILES,
            profile.name,
            profile.metadata.uid,
            REFUSED,
            note,
            warning=True,
        )
        await self._writer.carry_out(actions.Plan(note, (told,)))


def _is_chosen(profile: colocation.ClusterColocationProfile, mark: tuple[str, str]) -> bool:
    """Tell whether a pod is among those that the probability of a profile means.

    Its lot stays the same for as long as the profile does: drawn anew with every look, each pod
    that waits for long would be chosen in the end.
    """
    lot = zlib.crc32("/".join(mark).encode()) % 100
    return profiles.is_certain(profile) or profiles.chosen(profile.percentage, lot)
