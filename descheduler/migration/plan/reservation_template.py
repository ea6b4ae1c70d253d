"""The Reservation that a job creates for its pod, on any node but the present one. Pure.

Of the pod it has what schedulers look at. The rest stays behind: a Reservation belongs to no
namespace, and what containers are given in their environment is not for all who may read it.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names, resources
from api.koordinator.metadata import protected_metadata
from api.wire import durations
from descheduler.migration.plan import gang_barrier, reserving
from descheduler.model import objects

CREATED_BY: Final = "koord-descheduler"
_COPIED: Final = (
    *("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints"),
    *("overhead", "priority", "priorityClassName", "preemptionPolicy", "resources"),
    *("runtimeClassName", "schedulerName", "hostNetwork", "terminationGracePeriodSeconds"),
)
_OF_CONTAINERS: Final = ("name", "image", "ports", "resources", "restartPolicy")
_WRITTEN: Final = frozenset(
    (
        *protected_metadata.NEVER_CREATED,
        *protected_metadata.RECORDS,
        names.ANNOTATION_SOFT_EVICTION,
        "kubectl.kubernetes.io/last-applied-configuration",
    )
)
"""Annotations of a pod that say what became of it, not what it asks for."""
_DEFAULT_GRACE: Final = 30
_MARGIN: Final = 240.0
"""Seconds by which the Reservation outlives its job and the end of the pod."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What the job and the settings say about the Reservation."""

    ttl: float | None
    """Of the job, in seconds; None: it never times out."""
    drops_claims: bool = False
    now: float = 0.0


def body(job: objects.Job, pod: Mapping[str, Any], terms: Terms) -> dict[str, Any]:
    """Return the Reservation to create; what the job says about it has precedence."""
    written = _written(job)
    given, metadata = _section(written, "spec"), _section(written, "metadata")
    kind = resources.RESERVATIONS
    node = _text(_section(pod, "spec"), "nodeName")
    target = job.annotations.get(names.ANNOTATION_MIGRATION_TARGET, "")
    template = dict(_section(given, "template")) or template_of(pod, terms.drops_claims)
    template["spec"] = placed(_section(template, "spec"), node, target)
    # No other pod of the same controller takes the place before this one leaves.
    kept = {"allocateOnce": True, **({"unschedulable": True} if node else {})}
    spec: dict[str, Any] = {**kept, **given, "template": template}
    if not spec.get("owners"):
        spec["owners"] = list(owners(pod))
    if follows_ttl(job):
        spec["ttl"] = _lifetime(job, pod, terms.ttl)
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": reserving.expected_name(job),
            "labels": {
                names.LABEL_RESERVATION_ORDER: str(int(terms.now * 1000)),
                **_texts(_section(metadata, "labels")),
                names.LABEL_CREATED_BY: CREATED_BY,
            },
            "annotations": _texts(_section(metadata, "annotations")),
            "ownerReferences": [_job(job)],
        },
        "spec": spec,
    }


def template_of(pod: Mapping[str, Any], drops_claims: bool) -> dict[str, Any]:
    """Return a pod template that asks for what the pod asks for."""
    metadata, spec = _section(pod, "metadata"), _section(pod, "spec")
    kept: dict[str, Any] = {name: spec[name] for name in _COPIED if spec.get(name)}
    for part in ("initContainers", "containers"):
        if spec.get(part):
            kept[part] = [_container(one) for one in _items(spec.get(part))]
    claims = [] if drops_claims else list(_claims(spec))
    if claims:
        kept["volumes"] = claims
    notes = _texts(_section(metadata, "annotations"))
    return {
        "metadata": {
            "namespace": _text(metadata, "namespace"),
            "labels": {
                key: value
                for key, value in _texts(_section(metadata, "labels")).items()
                if key not in protected_metadata.MARKING_LABELS
            },
            "annotations": {key: value for key, value in notes.items() if key not in _WRITTEN},
        },
        "spec": kept,
    }


def owners(pod: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield who may use the Reservation: the pods of the same controller.

    A pod that waits for a node uses it itself; one without a controller leaves it to the pod that
    is created under its name.
    """
    metadata = _section(pod, "metadata")
    named = {"kind": "Pod", **{key: _text(metadata, key) for key in ("namespace", "name")}}
    if not _text(_section(pod, "spec"), "nodeName"):
        yield {"object": {**named, "uid": _text(metadata, "uid")}}
        return
    references = _items(metadata.get("ownerReferences"))
    controller = next((one for one in references if one.get("controller") is True), None)
    if controller is None:
        yield {"object": named}
        return
    reference = {key: _text(controller, key) for key in ("apiVersion", "kind", "name", "uid")}
    namespace = _text(metadata, "namespace")
    yield {"controller": {**reference, "controller": True, "namespace": namespace}}


def placed(spec: Mapping[str, Any], node: str, target: str) -> dict[str, Any]:
    """Return the spec of a pod for one node, or for any but the present one."""
    kept = {key: value for key, value in spec.items() if key != "nodeName"}
    if target and target != node:
        field = {"key": "metadata.name", "operator": "In", "values": [target]}
    elif node:
        field = {"key": "metadata.name", "operator": "NotIn", "values": [node]}
    else:
        return kept
    affinity = _section(kept, "affinity")
    nodes = _section(affinity, "nodeAffinity")
    terms = [
        {**term, "matchFields": [*_items(term.get("matchFields")), field]}
        for term in _items(_section(nodes, _REQUIRED).get("nodeSelectorTerms"))
    ]
    chosen = {"nodeSelectorTerms": terms or [{"matchFields": [field]}]}
    kept["affinity"] = {**affinity, "nodeAffinity": {**nodes, _REQUIRED: chosen}}
    return kept


def follows_ttl(job: objects.Job) -> bool:
    """Whether the Reservation lasts by the ttl of its job, since the job does not say how long."""
    given = _section(_written(job), "spec")
    return "ttl" not in given and "expires" not in given


def _lifetime(job: objects.Job, pod: Mapping[str, Any], ttl: float | None) -> str:
    """Return for how long it is kept: longer than its job, which deletes it, may need it.

    The jobs of a group get their ttl once more when the first pod has left.
    """
    if ttl is None:
        return durations.text(0)
    ttl = 2 * ttl if gang_barrier.group(job) else ttl
    grace = _section(pod, "spec").get("terminationGracePeriodSeconds")
    seconds = grace if isinstance(grace, int) and grace > 0 else _DEFAULT_GRACE
    return durations.text(ttl + seconds + _MARGIN)


def _job(job: objects.Job) -> dict[str, Any]:
    kind = resources.POD_MIGRATION_JOBS
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _container(one: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in _OF_CONTAINERS if one.get(key)}


def _claims(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for volume in _items(spec.get("volumes")):
        claim = volume.get("persistentVolumeClaim")
        if claim:
            yield {"name": volume.get("name", ""), "persistentVolumeClaim": claim}


def _written(job: objects.Job) -> Mapping[str, Any]:
    options = job.spec.reservation_options
    template = options.template if options is not None else None
    return template if template is not None else {}


def _section(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def _items(value: Any) -> Sequence[Mapping[str, Any]]:
    found = value if isinstance(value, list | tuple) else ()
    return [one for one in found if isinstance(one, Mapping)]


def _text(value: Mapping[str, Any], name: str) -> str:
    part = value.get(name)
    return part if isinstance(part, str) else ""


def _texts(pairs: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in pairs.items() if isinstance(value, str)}
