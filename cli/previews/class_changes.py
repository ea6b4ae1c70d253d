"""Which pods would get another class, were they created anew under a changed profile."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from api import names
from api.koordinator import colocation
from api.koordinator.metadata import qos
from api.kubernetes import core
from cli import reading
from domain import wording
from domain.pods import profile_effects, profiles

Raw = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Classes:
    """What profiles decide of a pod."""

    qos: str
    band: str
    scheduler: str


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One pod that would differ."""

    pod: str
    before: Classes
    after: Classes


@dataclasses.dataclass(frozen=True, slots=True)
class Changes:
    """What one profile would change."""

    profile: str
    percent: int
    """Share of the matching pods that it changes."""
    matched: int
    changes: tuple[Change, ...]
    problems: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """What profiles are compared with."""

    pods: Sequence[Raw]
    namespaces: Mapping[str, Mapping[str, str]]
    classes: Mapping[str, profile_effects.PriorityClass]


def compared(cluster: Cluster, profile: colocation.ClusterColocationProfile) -> Changes:
    """Apply a profile to every pod as if it were created now."""
    found: list[Change] = []
    problems: list[str] = []
    matched = 0
    for pod in cluster.pods:
        try:
            change = _change(cluster, profile, pod)
        except profile_effects.EffectError as error:
            problems = [f"{profile.metadata.name}: {error}"]
            break
        except reading.UNREADABLE as error:
            problems.append(reading.why(error))
            continue
        if change is not None:
            matched += 1
            found += [change] if change.before != change.after else []
    return Changes(
        profile.metadata.name, profile.percentage, matched, tuple(found), tuple(problems[:20])
    )


def _change(
    cluster: Cluster, profile: colocation.ClusterColocationProfile, pod: Raw
) -> Change | None:
    """Return what becomes of a pod, None where the profile does not concern it."""
    present = msgspec.convert(pod, core.Pod)
    home = cluster.namespaces.get(present.metadata.namespace)
    if present.finished or not profiles.matches(profile, home, present.metadata.labels):
        return None
    first = _without(pod, profile.metadata.name)
    applied = profile_effects.on_pod(first, profile, cluster.classes)
    after = msgspec.convert(applied.object, core.Pod)
    return Change(present.metadata.key, _classes(present), _classes(after))


def _without(pod: Raw, profile: str) -> Raw:
    """Return a pod without what an earlier version of the profile wrote on it."""
    metadata = pod.get("metadata") or {}
    written = (metadata.get("annotations") or {}).get(names.ANNOTATION_CHANGES) or "{}"
    record: Any = reading.either({}, msgspec.json.decode, written)
    kept = record.get("profiles") if isinstance(record, Mapping) else None
    own = {profile: kept[profile]} if isinstance(kept, Mapping) and profile in kept else {}
    effects = [one for one in profile_effects.effects_in(own) if one.part != "spec"]
    return {**pod, "metadata": profile_effects.restored(metadata, effects)}


def _classes(pod: core.Pod) -> Classes:
    return Classes(str(qos.of_pod(pod)), str(qos.band_of_pod(pod)), pod.spec.scheduler_name)


def priority_classes(items: Iterable[Raw]) -> dict[str, profile_effects.PriorityClass]:
    """Return what profiles copy from PriorityClasses."""
    found = {}
    for raw in items:
        one = reading.either(None, _priority_class, raw)
        if one is not None:
            found[one.name] = one
    return found


def _priority_class(raw: Raw) -> profile_effects.PriorityClass:
    return profile_effects.PriorityClass(
        str(raw["metadata"]["name"]), int(raw["value"]), str(raw.get("preemptionPolicy") or "")
    )


def lines(found: Changes) -> Iterator[str]:
    """Yield what differs for people."""
    share = "" if found.percent == 100 else f", of which it changes {found.percent} %"
    yield (
        f"profile {found.profile}: selects {wording.count(found.matched, 'pod', 'pods')}{share}; "
        f"{len(found.changes)} would get other classes"
    )
    for change in found.changes:
        parts = ", ".join(
            f"{name} {_shown(old)} -> {_shown(new)}"
            for name in ("qos", "band", "scheduler")
            if (old := getattr(change.before, name)) != (new := getattr(change.after, name))
        )
        yield f"  {change.pod}  {parts}"
    yield from (f"  problem: {problem}" for problem in found.problems)


def _shown(text: str) -> str:
    return text or "none"
