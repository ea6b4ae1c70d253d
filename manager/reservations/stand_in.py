"""The pod that stands in for a Reservation while kube-scheduler chooses its node. Pure.

It asks for what the template asks for and runs nothing: of the template it has what schedulers
look at, every container has an image that does not exist, and it mounts, shares and may do nothing.
So a pod that is bound by mistake never starts, and the account that creates it can run no code.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from api import names
from api.koordinator.metadata import protected_metadata
from api.wire import quantity
from domain.pods import renamed_resources
from manager.reservations import objects, pre_allocation, priorities

IMAGE: Final = "koord.sh/reservation-stand-in:none"
"""The image of every container; no registry has it."""
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_MEMBERSHIPS: Final = (
    names.LABEL_POD_GROUP,
    names.LABEL_POD_GROUP_OLD,
    names.LABEL_POD_GROUP_MIN_AVAILABLE,
    names.LABEL_QUOTA_NAME,
    names.LABEL_QUOTA_TREE,
    names.LABEL_RESERVATION_IGNORED,
    names.LABEL_OPERATING_MODE,
)
"""Labels by which the owners of a Reservation belong to gangs, quotas and other reservations."""
_FOREIGN_NOTES: Final = (
    "gang.scheduling.koordinator.sh/",
    "pod-group.scheduling.sigs.k8s.io/",
    "quota.scheduling.koordinator.sh/",
    "kubectl.kubernetes.io/",
    "koord.sh/",
)
"""Prefixes of annotations that say nothing about where a pod fits, or that only we write."""
_OWN_NOTES: Final = frozenset(
    (
        *protected_metadata.NEVER_CREATED,
        *protected_metadata.RECORDS,
        names.ANNOTATION_RESERVATION_AFFINITY,
        names.ANNOTATION_EXACT_MATCH_RESERVATION,
        names.ANNOTATION_RESERVATION_OWNERS,
        names.ANNOTATION_RESERVATION_RESTRICTED,
        names.ANNOTATION_RESERVATION_RESIZE,
        names.ANNOTATION_NODE_RESERVATION,
    )
)
_COPIED: Final = (
    *("nodeSelector", "tolerations", "topologySpreadConstraints", "overhead"),
    *("runtimeClassName", "resources"),
)
_REQUESTING: Final = frozenset(
    ("initContainers", "containers", "overhead", "runtimeClassName", "resources")
)
"""What adds to the requests of a pod."""
_UNPRIVILEGED: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
_TERMS: Final = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


class Place(NamedTuple):
    """Where and how a stand-in is created."""

    namespace: str
    scheduler: str
    priority: priorities.Priority
    number: int = 0
    """How many stand-ins there were before; each has another name."""
    over: pre_allocation.Choice | None = None
    """Running pods over which the Reservation is to be placed; the stand-in asks for the rest."""


def label(name: str) -> str:
    """Return the value of the label for a Reservation: its name, or a digest of a long one."""
    if _LABEL_VALUE.fullmatch(name):
        return name
    return f"sha256-{hashlib.sha256(name.encode()).hexdigest()[:48]}"


def pod_name(found: objects.ReservationObject, number: int) -> str:
    """Return the name of a stand-in, within the 253 characters of a name."""
    stem = f"reservation-{found.name[:200].rstrip('-.')}-{found.uid[:8]}"
    return f"{stem}-{number}" if number else stem


def refusal(found: objects.ReservationObject, schedulers: Sequence[str]) -> str:
    """Return why no stand-in can be made of a template, wherever it would be created."""
    spec = _spec(found)
    if found.fault:
        return found.fault
    if not spec.get("containers"):
        return "spec.template.spec.containers: Required value: give at least one container"
    if spec.get("resourceClaims"):
        return (
            "spec.template.spec.resourceClaims: Forbidden: a Reservation holds no devices of "
            "ResourceClaims; ask for them in the pods that use it"
        )
    chosen = spec.get("schedulerName") or names.DEFAULT_SCHEDULER
    if chosen != names.DEFAULT_SCHEDULER and chosen not in schedulers:
        return (
            f"spec.template.spec.schedulerName: {chosen} does not place Reservations; leave it "
            f"out, or name {' or '.join(schedulers)}"
        )
    return ""


def refusal_abroad(found: objects.ReservationObject) -> str:
    """Return why a stand-in cannot be created outside the namespace of its template."""
    spec = _spec(found)
    if spec.get("topologySpreadConstraints"):
        return "spec.template.spec.topologySpreadConstraints: they count pods of one namespace"
    if any(_claims(spec)):
        return "spec.template.spec.volumes: PersistentVolumeClaims belong to one namespace"
    return ""


def scheduler(found: objects.ReservationObject, schedulers: Sequence[str]) -> str:
    """Return the scheduler of a stand-in: the template's where it is one of ours, else ours."""
    chosen = str(_spec(found).get("schedulerName"))
    return chosen if chosen in schedulers else schedulers[0]


def body(found: objects.ReservationObject, place: Place) -> dict[str, Any]:
    """Return the stand-in of a Reservation."""
    spec = _spec(found)
    own: dict[str, Any] = {name: spec[name] for name in _COPIED if spec.get(name)}
    foreign = place.namespace != found.home
    affinity = _affinity(spec, found.home if foreign else "")
    if place.over is not None:
        affinity["nodeAffinity"] = _pinned(_section(affinity, "nodeAffinity"), place.over.node)
    if affinity:
        own["affinity"] = affinity
    volumes = list(_claims(spec))
    if volumes:
        own["volumes"] = volumes
    shared = spec.get("hostNetwork") is True
    for part in ("initContainers", "containers"):
        if spec.get(part):
            own[part] = [_container(one, index, shared) for index, one in enumerate(spec[part])]
    if place.over is not None:
        own = {name: value for name, value in own.items() if name not in _REQUESTING}
        own["containers"] = [_container({"resources": _rest(place.over.rest)}, 0, False)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(found, place),
        "spec": {
            **own,
            "schedulerName": place.scheduler,
            "priorityClassName": place.priority.name,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


def _metadata(found: objects.ReservationObject, place: Place) -> dict[str, Any]:
    written = _section(found.template, "metadata")
    labels = {**_texts(_section(written, "labels")), **found.labels}
    notes = {**_texts(_section(written, "annotations")), **found.notes}
    return {
        "name": pod_name(found, place.number),
        "namespace": place.namespace,
        "labels": {
            **{key: value for key, value in labels.items() if key not in _MEMBERSHIPS},
            names.LABEL_STAND_IN: label(found.name),
        },
        "annotations": {
            **{
                key: value
                for key, value in notes.items()
                if key not in _OWN_NOTES and not key.startswith(_FOREIGN_NOTES)
            },
            names.ANNOTATION_STAND_IN_NAME: found.name,
            names.ANNOTATION_STAND_IN_UID: found.uid,
            names.ANNOTATION_STAND_IN_GENERATION: str(found.generation),
            names.ANNOTATION_STAND_IN_POLICY: found.policy,
            **_over(place.over),
        },
        "ownerReferences": [
            {
                "apiVersion": "scheduling.koordinator.sh/v1alpha1",
                "kind": "Reservation",
                "name": found.name,
                "uid": found.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }


def _over(choice: pre_allocation.Choice | None) -> dict[str, str]:
    if choice is None:
        return {}
    return {names.ANNOTATION_STAND_IN_PODS: ",".join(choice.uids)}


def _rest(amounts: Mapping[str, int]) -> dict[str, Any]:
    """Return the resources of a container that requests what running pods do not hold.

    Zeros are written: a LimitRange would fill in what is missing. Of extended resources and huge
    pages Kubernetes demands equal limits.
    """
    written = quantity.texts({"cpu": 0, "memory": 0, **amounts})
    limits = {k: text for k, text in written.items() if "/" in k or k.startswith("hugepages-")}
    return {"requests": written, "limits": limits} if limits else {"requests": written}


def _container(one: Any, index: int, shares_network: bool) -> dict[str, Any]:
    """Return a container that asks for the same and starts nothing."""
    written = one if isinstance(one, Mapping) else {}
    made: dict[str, Any] = {
        "name": written.get("name") or f"container-{index}",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "securityContext": _UNPRIVILEGED,
    }
    resources = renamed_resources.in_container(_section(written, "resources"))
    asked = {part: resources[part] for part in ("requests", "limits") if resources.get(part)}
    if asked:
        made["resources"] = asked
    if written.get("restartPolicy") == "Always":
        made["restartPolicy"] = "Always"
    ports = list(_ports(written, shares_network))
    if ports:
        made["ports"] = ports
    return made


def _ports(container: Mapping[str, Any], shares_network: bool) -> Iterator[dict[str, Any]]:
    """Yield the ports of the node that a container takes."""
    for port in container.get("ports") or ():
        if not isinstance(port, Mapping):
            continue
        number = port.get("hostPort") or (port.get("containerPort") if shares_network else None)
        if number:
            kept = {key: port[key] for key in ("protocol", "hostIP") if port.get(key)}
            yield {"containerPort": port.get("containerPort") or number, "hostPort": number, **kept}


def _claims(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the volumes that may only be mounted on some nodes."""
    for volume in spec.get("volumes") or ():
        claim = volume.get("persistentVolumeClaim") if isinstance(volume, Mapping) else None
        if claim:
            yield {"name": volume.get("name", ""), "persistentVolumeClaim": claim}


def _affinity(spec: Mapping[str, Any], home: str) -> dict[str, Any]:
    """Return the affinity, with the node that is asked for and the namespace that is meant."""
    affinity = dict(_section(spec, "affinity"))
    node = spec.get("nodeName")
    if node:
        affinity["nodeAffinity"] = _pinned(_section(affinity, "nodeAffinity"), str(node))
    if home:
        for kind in ("podAffinity", "podAntiAffinity"):
            if affinity.get(kind):
                affinity[kind] = _at_home(_section(affinity, kind), home)
    return affinity


def _pinned(affinity: Mapping[str, Any], node: str) -> dict[str, Any]:
    """Require one node by its name, beside what is required already."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = _section(affinity, _TERMS[0])
    terms = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), field]}
        for term in required.get("nodeSelectorTerms") or ()
        if isinstance(term, Mapping)
    ]
    chosen = {"nodeSelectorTerms": terms or [{"matchFields": [field]}]}
    return {**affinity, _TERMS[0]: chosen}


def _at_home(affinity: Mapping[str, Any], home: str) -> dict[str, Any]:
    """Name the namespace in terms that mean the one of the pod itself."""
    required, preferred = (affinity.get(kind) or () for kind in _TERMS)
    named = {
        _TERMS[0]: [_named(term, home) for term in required],
        _TERMS[1]: [
            {**one, "podAffinityTerm": _named(_section(one, "podAffinityTerm"), home)}
            for one in preferred
        ],
    }
    return {kind: terms for kind, terms in named.items() if terms}


def _named(term: Mapping[str, Any], home: str) -> dict[str, Any]:
    if term.get("namespaces") or term.get("namespaceSelector") is not None:
        return dict(term)
    return {**term, "namespaces": [home]}


def _spec(found: objects.ReservationObject) -> Mapping[str, Any]:
    return _section(found.template, "spec")


def _section(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def _texts(pairs: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in pairs.items() if isinstance(value, str)}
