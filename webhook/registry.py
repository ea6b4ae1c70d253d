"""Path to rules: one visible table."""

import dataclasses
from collections.abc import Callable, Mapping

import msgspec

from api import core, names, quantity, resources
from domain import resources as amounts
from process import features
from webhook import review
from webhook.rules import extended_spec, pod_resources, pod_shape, profile

SKIP_RESOURCES = "ColocationProfileSkipMutatingResources"
DISABLE_RECORD = "DisableExtendedResourceSpec"

GATES = (
    features.Gate(
        SKIP_RESOURCES,
        default=False,
        stage=features.Stage.ALPHA,
        description="Never rewrite cpu and memory to batch or mid resources.",
    ),
    features.Gate(
        pod_shape.SKIP_PRIORITY,
        default=False,
        stage=features.Stage.ALPHA,
        description="Let the label koordinator.sh/priority change during the life of a pod.",
    ),
    features.Gate(
        DISABLE_RECORD,
        default=False,
        stage=features.Stage.ALPHA,
        description="Do not record batch resources in the extended-resource-spec annotation.",
    ),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """What one path of the webhook server is asked about, and who answers."""

    decide: Callable[[review.Review, review.Picture], review.Decision]
    name: str
    """Name of the webhook in its configuration object."""
    operations: tuple[str, ...]
    kinds: tuple[resources.Resource, ...] = (resources.PODS,)
    subresource: str = ""
    mutating: bool = False
    gate: str = ""
    """Feature gate that has to be on for the API server to be told of this path."""
    home: bool = False
    """Whether it is asked of objects in our own namespace, and of no other."""

    def concerns(self, group: str, plural: str, subresource: str) -> bool:
        """Tell whether this path is asked about objects of a resource."""
        return subresource == self.subresource and any(
            (group, plural) == (one.group, one.plural) for one in self.kinds
        )


def mutate_pod(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Apply profiles, rewrite resources and record them; refuse what a profile made illegal."""
    unreadable = _unreadable(asked)
    if unreadable is not None:
        return review.Decision(unreadable)
    outcome = profile.apply(asked, picture)
    if isinstance(outcome, review.Refusal):
        return review.Decision(outcome)
    rewrite = outcome.rewrite and SKIP_RESOURCES not in picture.gates
    pod = pod_resources.rewrite(outcome.pod) if rewrite else outcome.pod
    if isinstance(pod, review.Refusal):
        return review.Decision(pod)
    if DISABLE_RECORD not in picture.gates:
        pod = extended_spec.record(pod)
    if isinstance(pod, review.Refusal):
        return review.Decision(pod)
    if outcome.applied:
        pod = _signed(pod, outcome.applied)
        refused = _shape(dataclasses.replace(asked, object=pod), picture.gates)
        if refused is not None:
            return review.Decision(_blame(refused, outcome.applied))
    return review.Decision(object=pod)


def validate_pod(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Check the pod's QoS class, priority and requests against each other."""
    unreadable = _unreadable(asked)
    if unreadable is not None:
        return review.Decision(unreadable)
    return review.Decision(_shape(asked, picture.gates))


def _signed(pod: review.Pod, applied: tuple[str, ...]) -> review.Pod:
    """Name the profiles on the pod, which also tells later that it did not slip through."""
    metadata = pod.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    signed = {**annotations, names.ANNOTATION_PROFILES: ",".join(applied)}
    return {**pod, "metadata": {**metadata, "annotations": signed}}


def _unreadable(asked: review.Review) -> review.Refusal | None:
    """Refuse what has not the shape of a pod, so that no rule trips over it."""
    try:
        for pod in (asked.object, asked.old):
            if pod is not None:
                msgspec.convert(pod, core.Pod)
    except msgspec.ValidationError as wrong:
        return review.Refusal("pod", (f"pod: {wrong}",))
    return None


def _shape(asked: review.Review, gates: frozenset[str]) -> review.Refusal | None:
    try:
        requests = amounts.pod_requests(msgspec.convert(asked.object, core.Pod))
    except (msgspec.ValidationError, quantity.QuantityError) as wrong:
        return review.Refusal("pod", (f"pod: {wrong}",))
    return pod_shape.check(asked, requests, gates)


def _blame(refusal: review.Refusal, applied: tuple[str, ...]) -> review.Refusal:
    """Name the profiles whose changes the user did not write and may not know of."""
    made = f"after ClusterColocationProfile {', '.join(applied)}"
    reasons = tuple(f"{reason} ({made})" for reason in refusal.reasons)
    return dataclasses.replace(refusal, reasons=reasons)


ROUTES: Mapping[str, Route] = {
    "/mutate-pod": Route(mutate_pod, "mpod.koordinator.sh", ("CREATE",), mutating=True),
    "/validate-pod": Route(validate_pod, "vpod.koordinator.sh", ("CREATE", "UPDATE")),
}
