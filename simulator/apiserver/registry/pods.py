"""What the API server makes of pods: defaults, quality of service, checks, updates."""

import contextlib
from collections.abc import Mapping
from typing import Any

from api.wire import quantity
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import metadata_rules, pod_rules

Object = dict[str, Any]

_COMPUTE = ("cpu", "memory")
_LISTS = ("initContainers", "containers")
_UPDATE_RULE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def defaulted_spec(spec: Mapping[str, Any]) -> Object:
    """Return a pod spec, also that of a template, with the defaults of the API."""
    result = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        **{key: value for key, value in spec.items() if value is not None},
    }
    for field in _LISTS:
        if isinstance(result.get(field), list):
            result[field] = [_container(c) if isinstance(c, Mapping) else c for c in result[field]]
    return result


def defaulted(body: Mapping[str, Any]) -> Object:
    """Return a pod as it is stored: defaults filled in, pending, with its quality of service."""
    spec = {"enableServiceLinks": True, **defaulted_spec(body.get("spec") or {})}
    if spec["terminationGracePeriodSeconds"] < 0:
        # As long as nothing, which a kubelet cannot wait for.
        spec["terminationGracePeriodSeconds"] = 1
    return {**body, "spec": spec}


def initial_status(body: Mapping[str, Any]) -> Object:
    """Return the status of a new pod; what a client sends there does not count."""
    status: Object = {"phase": "Pending", "qosClass": quality(body["spec"])}
    if body["spec"].get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": None,
            }
        ]
    return status


def quality(spec: Mapping[str, Any]) -> str:
    """Return the quality of service class of a pod spec."""
    guaranteed, any_figure = True, False
    for field in _LISTS:
        for container in spec.get(field) or ():
            resources = container.get("resources") or {}
            requests = _figures(resources.get("requests"))
            limits = _figures(resources.get("limits"))
            any_figure |= bool(requests or limits)
            guaranteed &= len(limits) == len(_COMPUTE) and requests == limits
    if not any_figure:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def problems(body: Mapping[str, Any]) -> list[api_errors.Cause]:
    """Return what is wrong with a pod."""
    spec = body["spec"]
    return [*pod_rules.problems(spec, "spec"), *pod_rules.gate_problems(spec)]


def template_problems(body: Mapping[str, Any]) -> list[api_errors.Cause]:
    """Return what is wrong with the pod template of a workload."""
    template = body.get("spec", {}).get("template", {})
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    path = "spec.template.metadata"
    return [
        *pod_rules.problems(spec, "spec.template.spec"),
        *metadata_rules.label_problems(labels, f"{path}.labels"),
        *metadata_rules.annotation_problems(annotations, f"{path}.annotations"),
    ]


def update_problems(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[api_errors.Cause]:
    """Return what an update changes although it must not."""
    before, after = old["spec"], new["spec"]
    added = [
        t for t in after.get("tolerations") or () if t not in (before.get("tolerations") or ())
    ]
    kept = [t for t in before.get("tolerations") or () if t not in (after.get("tolerations") or ())]
    gates = [g["name"] for g in before.get("schedulingGates") or ()]
    found = [
        api_errors.Cause(
            "spec.schedulingGates",
            f'Forbidden: only deletion is allowed, but found new scheduling gate "{gate["name"]}"',
            "FieldValueForbidden",
        )
        for gate in after.get("schedulingGates") or ()
        if gate["name"] not in gates
    ]
    if _frozen(before, gated=bool(gates)) != _frozen(after, gated=bool(gates)) or (kept and added):
        found.append(api_errors.Cause("spec", _UPDATE_RULE, "FieldValueForbidden"))
    elif kept:
        message = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        found.append(api_errors.Cause("spec.tolerations", message, "FieldValueForbidden"))
    return found


def _container(container: Mapping[str, Any]) -> Object:
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    always = "@" not in image and tag in ("", "latest")
    result = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always" if always else "IfNotPresent",
        "resources": {},
        **{key: value for key, value in container.items() if value is not None},
    }
    resources = result["resources"]
    if isinstance(resources, Mapping) and resources.get("limits"):
        requests = {**resources["limits"], **(resources.get("requests") or {})}
        result["resources"] = {**resources, "requests": requests}
    if isinstance(result.get("ports"), list):
        result["ports"] = [{"protocol": "TCP", **port} for port in result["ports"]]
    return result


def _figures(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    found = {}
    for name in _COMPUTE:
        # What is no quantity is refused by `problems`; it has no class.
        with contextlib.suppress(quantity.QuantityError):
            found[name] = quantity.milli((amounts or {}).get(name, 0))
    return {name: figure for name, figure in found.items() if figure}


def _frozen(spec: Mapping[str, Any], *, gated: bool) -> Object:
    """Return the part of a spec that an update must leave alone."""
    open_fields = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if gated:
        # A pod behind a gate may be narrowed down; that it only gets narrower is not checked.
        open_fields |= {"nodeSelector", "affinity"}
    rest = {key: value for key, value in spec.items() if key not in open_fields}
    for field in _LISTS:
        rest[field] = [
            {key: value for key, value in container.items() if key != "image"}
            for container in spec.get(field) or ()
        ]
    return rest
