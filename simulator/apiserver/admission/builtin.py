"""What the API server decides itself before and after webhooks: priorities and namespaces."""

from typing import Any, Final

from api import resources
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import defaults, kinds
from simulator.apiserver.storage import lifecycle, object_store

Object = dict[str, Any]


def namespace_checked(
    kind: kinds.Kind, namespace: str, name: str, store: object_store.Objects
) -> None:
    """Refuse to create in a namespace that does not exist or is going away."""
    found = store.find(object_store.NAMESPACES, namespace)
    if found is None:
        raise api_errors.not_found("", "namespaces", namespace)
    if "deletionTimestamp" in found["metadata"]:
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise api_errors.forbidden(kind.group, kind.plural, name, why)


def definition_checked(kind: kinds.Kind, name: str, store: object_store.Objects) -> None:
    """Refuse to create an object of a kind whose definition is going away."""
    found = store.find(resources.CRDS, f"{kind.plural}.{kind.group}") if kind.custom else None
    if found is not None and "deletionTimestamp" in found["metadata"]:
        why = "create not allowed while custom resource definition is terminating"
        raise api_errors.forbidden(kind.group, kind.plural, name, why)


def deletion_checked(kind: kinds.Kind, name: str) -> None:
    """Refuse to delete what a cluster cannot be without."""
    if kind.sort == object_store.NAMESPACES and name in defaults.PROTECTED_NAMESPACES:
        raise api_errors.forbidden("", "namespaces", name, "this namespace may not be deleted")
    if kind.plural == "priorityclasses" and name in defaults.SYSTEM_PRIORITIES:
        why = "system priority classes may not be deleted"
        raise api_errors.forbidden(kind.group, kind.plural, name, why)


_TERM: Final = {"labelSelector", "topologyKey", "namespaces"}
_CONSTRAINT: Final = {"labelSelector", "topologyKey", "maxSkew", "whenUnsatisfiable"}


def placement_checked(body: Object) -> None:
    """Refuse what the stand-in scheduler would not obey; a pod that has a node needs none."""
    spec = body.get("spec", {})
    if spec.get("nodeName"):
        return
    affinity = spec.get("affinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if (affinity.get("podAffinity") or {}).get(required):
        raise api_errors.missing("required podAffinity of pods")
    for term in (affinity.get("podAntiAffinity") or {}).get(required) or ():
        for field in sorted(term.keys() - _TERM):
            raise api_errors.missing(f"{field} of required podAntiAffinity of pods")
    for constraint in spec.get("topologySpreadConstraints") or ():
        if constraint.get("whenUnsatisfiable") == "DoNotSchedule":
            for field in sorted(constraint.keys() - _CONSTRAINT):
                raise api_errors.missing(
                    f"{field} of topology spread constraints that forbid nodes"
                )


def priority_resolved(body: Object, store: object_store.Objects) -> Object:
    """Return a new pod with the priority of its class, as the Priority admission does."""
    spec = lifecycle.copied(body["spec"])
    sort = object_store.Collection("scheduling.k8s.io", "priorityclasses")
    wanted = spec.get("priorityClassName", "")
    pod = body["metadata"].get("name", "") or body["metadata"].get("generateName", "")
    if wanted:
        chosen = store.find(sort, wanted)
        if chosen is None:
            why = f"no PriorityClass with name {wanted} was found"
            raise api_errors.forbidden("", "pods", pod, why)
    else:
        chosen = next((c for c in store.list(sort).items if c.get("globalDefault")), None)
    value = chosen["value"] if chosen else 0
    policy = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("priority") not in (None, value):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise api_errors.forbidden("", "pods", pod, why)
    if spec.get("preemptionPolicy") not in (None, policy):
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the given "
            "PriorityClass name"
        )
        raise api_errors.forbidden("", "pods", pod, why)
    if chosen is not None and not wanted:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    spec["priority"] = value
    spec["preemptionPolicy"] = policy
    return {**body, "spec": spec}
