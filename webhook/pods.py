"""Admission of pods: the rules in their order. Pure."""

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec

from api import names
from api.kubernetes import core
from api.wire import quantity
from domain.pods import namespace_limits
from domain.pods import resources as amounts
from webhook import gates, review
from webhook.rules.objects import retired
from webhook.rules.pods import (
    binding_user,
    extended_spec,
    gang_gate,
    gang_warnings,
    pod_devices,
    pod_resources,
    pod_shape,
    pod_warnings,
    profile,
    protected_fields,
    required_labels,
    retired_requests,
    signature,
)
from webhook.rules.quotas import quota_affinity, quota_evaluation, quota_gate, quota_membership


def mutate(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Complete a pod; refuse what a profile made illegal, because its author cannot know why."""
    if asked.operation != "CREATE" or protected_fields.stands_in(asked, picture.writers):
        return review.Decision()
    made = completed(asked, picture)
    if isinstance(made, review.Refusal):
        return review.Decision(made)
    if made.applied:
        changed = dataclasses.replace(asked, object=made.pod)
        refused = _contradictions(changed, _read(made.pod), picture.gates)
        if refused is not None:
            return review.Decision(_blame(refused, made.applied), warnings=made.warnings)
    pod, stripped = protected_fields.strip(made.pod)
    pod, with_gang = gang_gate.gated(pod, picture)
    if not with_gang:
        pod, _ = quota_gate.gated(asked, pod, picture)
    return review.Decision(object=pod, warnings=(*stripped, *made.warnings), effects=made.effects)


def validate(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Check a pod; tell its creator what is legal and doubtful."""
    if protected_fields.stands_in(asked, picture.writers):
        return review.Decision()
    pod = _read(asked.object)
    if isinstance(pod, review.Refusal):
        return review.Decision(pod)
    if asked.old is not None and isinstance(before := _read(asked.old), review.Refusal):
        return review.Decision(before)
    if gates.PROTECTED in picture.gates:
        refused = protected_fields.check(asked, picture.writers)
        if refused is not None:
            return review.Decision(refused)
    told = tuple(retired.warnings(asked.object, asked.old))
    if asked.operation == "UPDATE" and _is_beside_the_point(asked):
        return review.Decision(warnings=_shown(told))
    refused = _first_fault(asked, pod, picture)
    if refused is not None:
        return review.Decision(refused)
    if asked.over_quota:
        return review.Decision(_exceeded(asked.over_quota))
    if asked.operation == "CREATE":
        gang = tuple(gang_warnings.warnings(pod, asked.namespace, picture))
        told = (*told, *gang, *pod_devices.doubts(pod), *pod_warnings.warnings(pod))
    return review.Decision(warnings=_shown(told))


def validation_needs(asked: review.Review, picture: review.Picture) -> review.Needs:
    """Ask the quota of a pod that is new to it, where nothing else speaks against the pod."""
    if not picture.charges_quotas or not quota_evaluation.changes_quota(asked):
        return review.NO_NEEDS
    if protected_fields.stands_in(asked, picture.writers):
        return review.NO_NEEDS
    found = quota_gate.charged_quota(asked, asked.object, picture)
    if found is None or validate(asked, picture).refusal is not None:
        return review.NO_NEEDS
    if asked.old is not None and quota_gate.charged_quota(asked, asked.old, picture) == found:
        return review.NO_NEEDS
    requests = quota_evaluation.requests(asked.object)
    return review.Needs(charge=review.Charge(found, requests, writes=not asked.dry_run))


def _exceeded(text: str) -> review.Refusal:
    return review.Refusal("quota", (text,), review.FORBIDDEN, ("exceeded",))


def _shown(told: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text[: pod_warnings.LONGEST] for text in told[: pod_warnings.MOST])


def _first_fault(
    asked: review.Review, pod: core.Pod, picture: review.Picture
) -> review.Refusal | None:
    """Return what the first group of checks that is broken says."""
    refused = _contradictions(asked, pod, picture.gates) or quota_membership.check(
        asked, picture.trees, picture.gates
    )
    if refused is None and gates.DEVICES in picture.gates:
        refused = pod_devices.check(asked.object)
    if gates.DEVICE_COMBINATIONS in picture.gates and asked.operation == "CREATE":
        refused = refused or pod_devices.illegal(pod)
    return refused or required_labels.check(asked, picture.demanded)


def protect(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Check a Binding, or an update of a part of a pod, for what only schedulers write."""
    return review.Decision(protected_fields.check(asked, picture.writers))


def bind(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Check who binds a pod."""
    decision = binding_user.allowed_unseen(asked, picture.binding, picture.gates)
    if decision:
        return review.Decision(note=decision)
    decision, refused = binding_user.check(asked, picture.binding, asked.bound)
    return review.Decision(refused, note=decision)


def bind_needs(asked: review.Review, picture: review.Picture) -> review.Needs:
    """Ask for the pod where it decides itself who may bind it."""
    unseen = binding_user.allowed_unseen(asked, picture.binding, picture.gates)
    return review.Needs(bound=not unseen)


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """A completed pod, and what its author and later passes have to know."""

    pod: review.Pod
    applied: tuple[str, ...] = ()
    effects: tuple[review.Effect, ...] = ()
    warnings: tuple[str, ...] = ()


def completed(asked: review.Review, picture: review.Picture) -> Made | review.Refusal:
    """Rename resources, apply profiles, move resources, record, pin to nodes, normalise devices."""
    unreadable = _read(asked.object)
    if isinstance(unreadable, review.Refusal):
        return unreadable
    renamed = retired_requests.rewritten(asked.object)
    asked = dataclasses.replace(asked, object=renamed.pod)
    outcome = profile.apply(asked, picture)
    if isinstance(outcome, review.Refusal):
        return outcome
    pod, told = outcome.pod, _renamed(renamed, asked)
    for step in (_moved, _recorded, _pinned, _devised):
        if step is _moved and not outcome.rewrite:
            continue
        done = step(asked, picture, pod, told)
        if isinstance(done, review.Refusal):
            return done
        pod = done
    warnings = _shown(renamed.warnings)
    if "resources" in told:
        warnings += _limits(asked, picture)
    if outcome.applied or outcome.drawn or told:
        earlier = signature.earlier(asked.object)
        kept = {key: value for key, value in earlier.items() if key in _STEPS}
        profiles = {"profiles": outcome.record} if outcome.record else {}
        pod = signature.signed(pod, outcome.applied, {**profiles, **kept, **told})
    return Made(pod, outcome.applied, outcome.effects, warnings)


_RENAMED = "renamed"
_STEPS = frozenset({_RENAMED, "resources", "tree", "devices"})


def _renamed(found: retired_requests.Rewritten, asked: review.Review) -> dict[str, Any]:
    """Return what is recorded of retired names, those of an earlier pass included."""
    if not found.names:
        return {}
    earlier = review.section(signature.earlier(asked.object), _RENAMED)
    known = names.DEPRECATED_RESOURCES.items()
    return {_RENAMED: {old: new for old, new in known if old in found.names or old in earlier}}


def _moved(
    asked: review.Review, picture: review.Picture, pod: review.Pod, told: dict[str, Any]
) -> review.Pod | review.Refusal:
    if gates.SKIP_RESOURCES in picture.gates:
        return pod
    moved = pod_resources.rewrite(pod, _defaulted(asked, picture))
    if not isinstance(moved, review.Refusal) and moved.get("spec") != pod.get("spec"):
        instead = pod_resources.lent(moved) or {}
        told["resources"] = sorted(instead.values())
    return moved


def _recorded(
    _asked: review.Review, picture: review.Picture, pod: review.Pod, _told: dict[str, Any]
) -> review.Pod | review.Refusal:
    disabled = gates.DISABLE_RECORD in picture.gates
    return extended_spec.without(pod) if disabled else extended_spec.record(pod)


def _pinned(
    asked: review.Review, picture: review.Picture, pod: review.Pod, told: dict[str, Any]
) -> review.Pod:
    if gates.QUOTA_TREES not in picture.gates:
        return pod
    default = gates.NO_DEFAULT_QUOTA not in picture.gates
    pinned, tree = quota_affinity.pin(asked, pod, picture.trees, default=default)
    if tree:
        told["tree"] = tree
    return pinned


def _devised(
    asked: review.Review, picture: review.Picture, pod: review.Pod, told: dict[str, Any]
) -> review.Pod | review.Refusal:
    if gates.DISABLE_DEVICES in picture.gates:
        return pod
    changed = pod_devices.normalise(pod)
    if changed is not pod and not isinstance(changed, review.Refusal):
        pairs = pod_devices.pairs(pod, changed)
        earlier = signature.earlier(asked.object).get("devices")
        listed = earlier if isinstance(earlier, list) else []
        known = {one for one in listed if isinstance(one, str)}
        told["devices"] = [
            name for old, new in pairs if (name := new.get("name", "")) in known or old is not new
        ]
    return changed


def _defaulted(
    asked: review.Review, picture: review.Picture
) -> Callable[[str, str, int], bool] | None:
    """Return how to tell what a LimitRange added since an earlier pass, None in the first."""
    annotations = (asked.object.get("metadata") or {}).get("annotations") or {}
    if names.ANNOTATION_PROFILES not in annotations:
        return None
    if picture.limits is None:
        return lambda *_: True
    found = picture.limits.get(asked.namespace, ())
    given = frozenset[namespace_limits.Default]().union(*(one.defaults for _, one in found))
    return lambda part, resource, milli: (part, resource, milli) in given


def _limits(asked: review.Review, picture: review.Picture) -> tuple[str, ...]:
    found = (picture.limits or {}).get(asked.namespace, ())
    return namespace_limits.sentences(tuple(found))


def _read(pod: review.Pod) -> core.Pod | review.Refusal:
    """Refuse what has not the shape of a pod, so that no rule trips over it."""
    try:
        return msgspec.convert(pod, core.Pod)
    except msgspec.ValidationError as wrong:
        return review.Refusal("pod", (f"pod: {wrong}",))


def _contradictions(
    asked: review.Review, pod: core.Pod | review.Refusal, on: frozenset[str]
) -> review.Refusal | None:
    if isinstance(pod, review.Refusal):
        return pod
    try:
        return pod_shape.check(asked, amounts.pod_requests(pod), on)
    except quantity.QuantityError as wrong:
        return review.Refusal("pod", (f"pod: {wrong}",))


def _is_beside_the_point(asked: review.Review) -> bool:
    """Tell whether an update leaves alone all that is checked.

    A pod that slipped through, or was legal when it came, must still lose its finalizers.
    """
    if asked.old is None or asked.object == asked.old:
        return False
    now, before = asked.object.get("metadata") or {}, asked.old.get("metadata") or {}
    reserved = names.ANNOTATION_RESERVE_POD
    return (
        asked.object.get("spec") == asked.old.get("spec")
        and now.get("labels") == before.get("labels")
        and (reserved in (now.get("annotations") or {}))
        <= (reserved in (before.get("annotations") or {}))
    )


def _blame(refusal: review.Refusal, applied: tuple[str, ...]) -> review.Refusal:
    """Name the profiles whose changes the user did not write and may not know of."""
    made = f"after ClusterColocationProfile {', '.join(applied)}"
    reasons = tuple(f"{reason} ({made})" for reason in refusal.reasons)
    return dataclasses.replace(refusal, reasons=reasons)
