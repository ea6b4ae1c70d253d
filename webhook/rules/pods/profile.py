"""Apply ClusterColocationProfiles to a pod at creation."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from api import names
from api.koordinator import colocation
from domain.pods import profile_effects, profiles
from webhook import review

GROUP = "profile"


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """A pod after its profiles, and what later steps need to know of them."""

    pod: review.Pod
    applied: tuple[str, ...]
    """Names of the profiles that changed the pod, in the order in which they did."""
    rewrite: bool
    """Whether resources shall be rewritten: a profile was applied, and none asked to leave them."""
    effects: tuple[profile_effects.Effect, ...] = ()
    drawn: bool = False
    """Whether a lot kept a profile from being applied."""
    record: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Effects by profile, those of an earlier pass included."""


class _Earlier(NamedTuple):
    """What an earlier pass wrote on the pod."""

    applied: frozenset[str]
    record: Any
    effects: tuple[profile_effects.Effect, ...]


def apply(asked: review.Review, picture: review.Picture) -> Outcome | review.Refusal:
    """Apply every matching profile in name order; a refusal names what is missing or wrong.

    A pod that comes again, because another webhook changed it or because a user copied it, is
    taken back to what it was first, so that nothing is appended or drawn twice.
    """
    if not picture.profiles:
        return Outcome(asked.object, (), rewrite=False)
    earlier = _earlier(review.section(asked.object, "metadata"))
    if earlier is None or not earlier.effects:
        return _applied(asked.object, asked.namespace, picture, earlier)
    metadata = asked.object["metadata"]
    first = {**asked.object, "metadata": profile_effects.restored(metadata, earlier.effects)}
    again = _applied(first, asked.namespace, picture, earlier)
    if isinstance(again, Outcome) and _reproduces(again, metadata, earlier):
        record = profile_effects.joined(earlier.record, again.record, again.applied)
        return dataclasses.replace(again, record=record)
    # What is written there is not, or no longer, our doing: it is not believed.
    return _applied(asked.object, asked.namespace, picture, earlier)


def _applied(
    pod: review.Pod, namespace: str, picture: review.Picture, earlier: _Earlier | None
) -> Outcome | review.Refusal:
    labels = (pod.get("metadata") or {}).get("labels") or {}
    home = picture.namespaces.get(namespace)
    # What cannot be evaluated counts as a match, as upstream does.
    matched = [p for p in picture.profiles if profiles.matches(p, home, labels) is not False]
    if not matched:
        return Outcome(pod, (), rewrite=False)
    applied: list[str] = []
    effects: list[profile_effects.Effect] = []
    rewrite, drawn = True, False
    for profile in sorted(matched, key=lambda p: p.metadata.name):
        if names.ANNOTATION_SKIP_UPDATE_RESOURCES in profile.metadata.annotations:
            rewrite = False
        if not _chosen(profile, picture.draw, earlier):
            drawn = True
            continue
        try:
            pod, told = profile_effects.on_pod(pod, profile, picture.priority_classes)
        except profile_effects.EffectError as wrong:
            return _refusal(profile, str(wrong))
        applied.append(profile.metadata.name)
        effects += told
    kept = profile_effects.record(effects)
    # A pod that no lot has chosen stays as its author wrote it, resources included.
    return Outcome(pod, tuple(applied), rewrite and bool(applied), tuple(effects), drawn, kept)


def _refusal(profile: colocation.ClusterColocationProfile, reason: str) -> review.Refusal:
    text = f"ClusterColocationProfile {profile.metadata.name}: {reason}"
    return review.Refusal(GROUP, (text,), code=review.FAILED)


def _chosen(
    profile: colocation.ClusterColocationProfile,
    draw: Callable[[str], int],
    earlier: _Earlier | None,
) -> bool:
    percent = profile.percentage
    if percent <= 0 or profiles.is_certain(profile):
        # No lot is drawn where it would decide nothing.
        return percent > 0
    if earlier is not None:
        return profile.metadata.name in earlier.applied
    return profiles.chosen(percent, draw(profile.metadata.name))


def _earlier(metadata: review.Pod) -> _Earlier | None:
    annotations = metadata.get("annotations") or {}
    signed = annotations.get(names.ANNOTATION_PROFILES)
    if signed is None:
        return None
    try:
        kept = msgspec.json.decode(annotations.get(names.ANNOTATION_CHANGES, "{}"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        kept = None
    record = kept.get("profiles") if isinstance(kept, Mapping) else None
    return _Earlier(frozenset(signed.split(",")), record, tuple(profile_effects.effects_in(record)))


def _reproduces(again: Outcome, present: review.Pod, earlier: _Earlier) -> bool:
    """Tell whether the profiles give exactly what the record says that they gave."""
    given = {(effect.part, effect.field) for effect in again.effects}
    metadata = again.pod["metadata"]
    return all(
        (effect.part, effect.field) in given
        and (metadata.get(effect.part) or {}).get(effect.field)
        == (present.get(effect.part) or {}).get(effect.field)
        for effect in earlier.effects
        if effect.part != "spec"
    )
