"""The subresources of pods that do something: binding and eviction."""

from collections.abc import Mapping
from typing import Any

from simulator.apiserver.http import api_errors
from simulator.apiserver.storage import lifecycle, object_store
from simulator.controllers import disruption_budgets

Object = dict[str, Any]

# What a binding brings along for the pod.
COPIED = ("annotations", "labels")

# What is posted to do something, by the group, version and kind of its body.
ACTIONS: Mapping[str, tuple[str, str, str]] = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}


def success(code: int = 201) -> Object:
    """Return the Status that says it worked."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": code,
    }


def bind(
    store: object_store.Objects, namespace: str, name: str, body: Mapping[str, Any], now: str
) -> None:
    """Place a pod on a node; annotations and labels of the binding replace those of the pod."""
    target = body.get("target") or {}
    _check_target(target)
    pod = store.get(object_store.PODS, name, namespace)
    meta, wanted = pod["metadata"], body["metadata"]
    obstacle = _obstacle(pod, wanted)
    if obstacle:
        raise api_errors.conflict("", "pods/binding", name, obstacle)
    copied = {key: {**(meta.get(key) or {}), **(wanted.get(key) or {})} for key in COPIED}
    status = lifecycle.copied(pod.get("status") or {})
    # What was hoped for is over once it is known.
    status.pop("nominatedNodeName", None)
    status["conditions"] = [
        *(c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"),
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": now,
        },
    ]
    placed = {
        **pod,
        "metadata": {**meta, **{key: value for key, value in copied.items() if value}},
        "spec": {**pod["spec"], "nodeName": target["name"]},
        "status": status,
    }
    store.update(object_store.PODS, placed, counted=False)


def _check_target(target: Mapping[str, Any]) -> None:
    if target.get("kind") not in (None, "", "Node"):
        words = 'supported values: "Node", "<empty>"'
        raise api_errors.untyped(f'target.kind: Unsupported value: "{target["kind"]}": {words}')
    if not target.get("name"):
        raise api_errors.untyped("target.name: Required value")


def _obstacle(pod: Object, wanted: Mapping[str, Any]) -> str:
    """Why a pod cannot be placed now, empty when it can."""
    meta = pod["metadata"]
    for key, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        asked = wanted.get(key, "")
        if asked and asked != meta[key]:
            return (
                f"Precondition failed: {title} in precondition: {asked}, "
                f"{title} in object meta: {meta[key]}"
            )
    if "deletionTimestamp" in meta:
        return f"pod {meta['name']} is being deleted, cannot be assigned to a host"
    if pod["spec"].get("nodeName"):
        return f'pod {meta["name"]} is already assigned to node "{pod["spec"]["nodeName"]}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {meta['name']} has non-empty .spec.schedulingGates"
    return ""


def evict(
    store: object_store.Objects,
    covering: list[Object],
    pod: Object,
    options: Mapping[str, Any],
    now: str,
) -> None:
    """Delete a pod if its disruption budget lets it go."""
    meta = pod["metadata"]
    if not _is_running(pod):
        _require(pod, options)
        if "deletionTimestamp" not in meta:
            _told(store, meta, now)
        _remove(store, meta, options)
        return
    if len(covering) > 1:
        raise api_errors.internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    _require(pod, options)
    for budget in covering:
        _charge(store, budget, pod, now)
    _told(store, meta, now)
    _remove(store, meta, options)


def _require(pod: Object, options: Mapping[str, Any]) -> None:
    """Refuse before a budget is charged for a pod that was not meant."""
    wanted = options.get("preconditions") or {}
    object_store.require(
        object_store.PODS,
        pod,
        uid=wanted.get("uid", ""),
        version=wanted.get("resourceVersion", ""),
        precondition=True,
    )


def _told(store: object_store.Objects, meta: Mapping[str, Any], now: str) -> None:
    """Say in the pod's status why it goes, as controllers that replace it want to know."""

    def change(pod: Object) -> None:
        status = pod.setdefault("status", {})
        status["conditions"] = [
            *(c for c in status.get("conditions") or () if c.get("type") != "DisruptionTarget"),
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
                "lastProbeTime": None,
                "lastTransitionTime": now,
            },
        ]

    store.modify(object_store.PODS, meta["name"], meta["namespace"], change)


def _is_running(pod: Mapping[str, Any]) -> bool:
    phase = pod.get("status", {}).get("phase")
    return phase == "Running" and "deletionTimestamp" not in pod["metadata"]


def _charge(store: object_store.Objects, budget: Object, pod: Object, now: str) -> None:
    status = lifecycle.copied(budget.get("status") or {})
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    policy = budget["spec"].get("unhealthyPodEvictionPolicy", "IfHealthyBudget")
    if not disruption_budgets.is_healthy(pod) and (
        policy == "AlwaysAllow" or (healthy >= desired and desired > 0)
    ):
        # A pod that is not ready costs the budget nothing.
        return
    if status.get("disruptionsAllowed", 0) <= 0:
        name = budget["metadata"]["name"]
        cause = api_errors.Cause(
            "",
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} "
            "currently",
            "DisruptionBudget",
        )
        raise api_errors.too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.", [cause]
        )
    status["disruptionsAllowed"] -= 1
    status.setdefault("disruptedPods", {})[pod["metadata"]["name"]] = now
    store.update(disruption_budgets.BUDGETS, {**budget, "status": status})


def _remove(
    store: object_store.Objects, meta: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Delete a pod whose preconditions have been checked; its condition has moved its version."""
    how = object_store.Deletion(grace=options.get("gracePeriodSeconds"), uid=meta["uid"])
    store.delete(object_store.PODS, meta["name"], meta["namespace"], how)
