"""Whether a filter may decide alone: why the scheduler's total of a pod cannot be computed here."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from domain.scoring import objects, profile, terms
from domain.scoring import pod as scored_pod
from domain.scoring.indexes import affinity, images

OTHER_PROFILE: Final = "the profile is not the one that the pod names"
NOT_SYNCED: Final = "a cache that scores depend on is not synced"
RESOURCE_CLAIMS: Final = "the pod has resource claims"
POD_GROUP: Final = "the pod is scheduled with a pod group, whose assumed pods are not published"
UNBOUND_CLAIM: Final = "the pod has a volume claim that is not known to be bound"
DEVICE_CLASS: Final = "a requested or scored resource may come from a device class"
SPREAD_CONSTRAINTS: Final = "the pod has topology spread constraints"
POD_PREFERENCES: Final = "the pod has preferred pod affinity or anti-affinity"
OTHERS_AFFINITY: Final = "affinity of a pod on a node may score the pod"
NODE_PREFERENCES: Final = "a preferred node affinity term cannot be evaluated"
TOLERATION: Final = "the pod has a toleration that compares numbers"
IMAGE_SIZES: Final = "nodes disagree on the size of an image of the pod"
TOO_MUCH: Final = "the pod has more tolerations or node affinity than is compared with every node"
IMAGE_COUNTS: Final = "this release scores images by what it knew when each node last changed"

REASONS: Final = (
    *(OTHER_PROFILE, NOT_SYNCED, RESOURCE_CLAIMS, UNBOUND_CLAIM, DEVICE_CLASS),
    *(SPREAD_CONSTRAINTS, POD_PREFERENCES, OTHERS_AFFINITY, NODE_PREFERENCES, TOLERATION),
    *(IMAGE_SIZES, IMAGE_COUNTS, POD_GROUP, TOO_MUCH),
)
"""Every reason but those of a profile, which `configuration` states."""

_DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
_TOLERATION_OPERATORS: Final = frozenset({"", "Exists", "Equal"})
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_SOFT: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_POD_AFFINITY: Final = ("podAffinity", "podAntiAffinity")
_MOST_COMPARED: Final = 64
"""Tolerations of a pod, and terms and requirements of its node affinity: each is compared with
every node, and the API server bounds neither."""
_MOST_VALUES: Final = 1024
"""Values of all these requirements."""


class ClusterFacts(msgspec.Struct, frozen=True, gc=False):
    """What is known of the cluster beyond the columns of nodes; the caches are only read."""

    synced: bool
    """Every cache that scores depend on has listed its objects and is current."""
    terms: affinity.TermIndex
    """Affinity terms of the pods that are placed or assumed, and the labels of namespaces."""
    images: images.ImageIndex
    bound_claims: Collection[str] = frozenset()
    """`namespace/name` of the PersistentVolumeClaims that are bound."""
    device_resources: Collection[str] = frozenset()
    """Extended resources behind which a DeviceClass stands."""


def undecidable(settings: profile.ScoringProfile, pod: objects.Pod, facts: ClusterFacts) -> str:
    """Return why the scheduler's total of a pod cannot be computed here, empty where it can.

    The texts are constants, so that they can be counted.
    """
    return (
        settings.unsupported
        or _claims_problem(settings, pod, facts)
        or _affinity_problem(settings, pod, facts)
        or _resource_problem(settings, pod, facts)
        or _image_problem(settings, pod, facts)
    )


def _claims_problem(settings: profile.ScoringProfile, pod: objects.Pod, facts: ClusterFacts) -> str:
    spec = pod.spec
    if spec.scheduler_name != settings.scheduler_name:
        return OTHER_PROFILE
    if not facts.synced:
        return NOT_SYNCED
    if spec.resource_claims:
        return RESOURCE_CLAIMS
    if spec.scheduling_group is not None or spec.workload_ref is not None:
        return POD_GROUP
    if spec.volumes and any(claim not in facts.bound_claims for claim in _claims(pod)):
        return UNBOUND_CLAIM
    return SPREAD_CONSTRAINTS if spec.topology_spread_constraints else ""


def _affinity_problem(
    settings: profile.ScoringProfile, pod: objects.Pod, facts: ClusterFacts
) -> str:
    written = pod.spec.affinity or {}
    if written and any((written.get(kind) or {}).get(_SOFT) for kind in _POD_AFFINITY):
        return POD_PREFERENCES
    hard = settings.hard_pod_affinity_weight > 0
    if profile.POD_AFFINITY in settings.plugins and facts.terms.may_score(
        pod.metadata.namespace, pod.metadata.labels, hard
    ):
        return OTHERS_AFFINITY
    of_nodes = written.get("nodeAffinity")
    if len(pod.spec.tolerations) > _MOST_COMPARED or (
        of_nodes and terms.exceeds(of_nodes, _MOST_COMPARED, _MOST_VALUES)
    ):
        return TOO_MUCH
    preferred = (of_nodes or {}).get(_SOFT)
    if preferred and not all(_is_evaluable(one.get("preference") or {}) for one in preferred):
        return NODE_PREFERENCES
    return ""


def _resource_problem(
    settings: profile.ScoringProfile, pod: objects.Pod, facts: ClusterFacts
) -> str:
    spec = pod.spec
    # Loops, since generators would take several times as long for the few that most pods have.
    for toleration in spec.tolerations:
        if toleration.operator not in _TOLERATION_OPERATORS:
            return TOLERATION
    names = set(settings.resources)
    for container in (*spec.containers, *spec.init_containers):
        names.update(container.resources.requests)
    if any(map(facts.device_resources.__contains__, names)):
        return DEVICE_CLASS
    for name in names:
        if name.startswith(_DEVICE_CLASS_PREFIX):
            return DEVICE_CLASS
    return ""


def _image_problem(settings: profile.ScoringProfile, pod: objects.Pod, facts: ClusterFacts) -> str:
    if profile.IMAGES not in settings.plugins:
        return ""
    names = scored_pod.images(pod.spec, settings.release.images)
    if settings.release.stale_image_counts and facts.images.reported(names):
        return IMAGE_COUNTS
    return "" if facts.images.agree(names) else IMAGE_SIZES


def _claims(pod: objects.Pod) -> Iterator[str]:
    metadata = pod.metadata
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"{metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
        elif volume.ephemeral is not None:
            yield f"{metadata.namespace}/{metadata.name}-{volume.name}"


def _is_evaluable(term: Mapping[str, Any]) -> bool:
    """Tell whether the scheduler would evaluate a term rather than fail the attempt."""
    for one in terms.written_requirements(term):
        values = one.get("values") or []
        if one.get("operator") in _OPERATORS:
            continue
        if one.get("operator") not in ("Gt", "Lt") or len(values) != 1:
            return False
        if not _is_integer(str(values[0])):
            return False
    return True


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return digits.isascii() and digits.isdigit()
