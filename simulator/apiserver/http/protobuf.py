"""Protobuf bodies, which kubectl sends when it creates built-in kinds without a manifest.

Only the messages and fields listed here are read; anything else is refused by name. Answers are
always JSON, which the same clients accept.
"""

import base64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from simulator.apiserver.http import api_errors

MAGIC = b"k8s\x00"
MEDIA = "application/vnd.kubernetes.protobuf"

Fields = Mapping[int, str]

# Field number to "name kind". Kinds: s string, b bytes, i integer, o boolean; the name of a
# message; [x] a repeated x; {x} a map from strings to x.
_META: Fields = {
    1: "name s",
    2: "generateName s",
    3: "namespace s",
    5: "uid s",
    6: "resourceVersion s",
    7: "generation i",
    8: "creationTimestamp Time",
    9: "deletionTimestamp Time",
    10: "deletionGracePeriodSeconds i",
    11: "labels {s}",
    12: "annotations {s}",
    13: "ownerReferences [Owner]",
    14: "finalizers [s]",
}
_POD_SPEC: Fields = {
    2: "containers [Container]",
    3: "restartPolicy s",
    4: "terminationGracePeriodSeconds i",
    5: "activeDeadlineSeconds i",
    6: "dnsPolicy s",
    7: "nodeSelector {s}",
    8: "serviceAccountName s",
    9: "serviceAccount s",
    10: "nodeName s",
    19: "schedulerName s",
    20: "initContainers [Container]",
    24: "priorityClassName s",
}
_MESSAGES: Mapping[str, Fields] = {
    "Empty": {},
    "Meta": _META,
    "Owner": {
        1: "kind s",
        3: "name s",
        4: "uid s",
        5: "apiVersion s",
        6: "controller o",
        7: "blockOwnerDeletion o",
    },
    "Selector": {1: "matchLabels {s}", 2: "matchExpressions [Requirement]"},
    "Requirement": {1: "key s", 2: "operator s", 3: "values [s]"},
    "Named": {1: "name s"},
    "Namespace": {1: "metadata Meta", 2: "spec NamespaceSpec", 3: "status NamespaceStatus"},
    "NamespaceSpec": {1: "finalizers [s]"},
    "NamespaceStatus": {1: "phase s"},
    "ConfigMap": {1: "metadata Meta", 2: "data {s}", 3: "binaryData {b}", 4: "immutable o"},
    "Secret": {
        1: "metadata Meta",
        2: "data {b}",
        3: "type s",
        4: "stringData {s}",
        5: "immutable o",
    },
    "ServiceAccount": {
        1: "metadata Meta",
        3: "imagePullSecrets [Named]",
        4: "automountServiceAccountToken o",
    },
    "Service": {1: "metadata Meta", 2: "spec ServiceSpec", 3: "status Empty"},
    "ServiceSpec": {
        1: "ports [ServicePort]",
        2: "selector {s}",
        3: "clusterIP s",
        4: "type s",
        7: "sessionAffinity s",
        8: "loadBalancerIP s",
        10: "externalName s",
        11: "externalTrafficPolicy s",
        12: "healthCheckNodePort i",
        13: "publishNotReadyAddresses o",
    },
    "ServicePort": {
        1: "name s",
        2: "protocol s",
        3: "port i",
        4: "targetPort IntOrString",
        5: "nodePort i",
    },
    "Pod": {1: "metadata Meta", 2: "spec PodSpec", 3: "status Empty"},
    "PodTemplate": {1: "metadata Meta", 2: "spec PodSpec"},
    "PodSpec": _POD_SPEC,
    "Container": {
        1: "name s",
        2: "image s",
        3: "command [s]",
        4: "args [s]",
        5: "workingDir s",
        6: "ports [Port]",
        7: "env [Variable]",
        8: "resources Resources",
        13: "terminationMessagePath s",
        14: "imagePullPolicy s",
        16: "stdin o",
        17: "stdinOnce o",
        18: "tty o",
        20: "terminationMessagePolicy s",
    },
    "Port": {1: "name s", 2: "hostPort i", 3: "containerPort i", 4: "protocol s", 5: "hostIP s"},
    "Variable": {1: "name s", 2: "value s"},
    "Resources": {1: "limits {Quantity}", 2: "requests {Quantity}"},
    "Deployment": {1: "metadata Meta", 2: "spec DeploymentSpec", 3: "status Empty"},
    "DeploymentSpec": {
        1: "replicas i",
        2: "selector Selector",
        3: "template PodTemplate",
        4: "strategy Strategy",
        5: "minReadySeconds i",
        6: "revisionHistoryLimit i",
        7: "paused o",
        9: "progressDeadlineSeconds i",
    },
    "Strategy": {1: "type s", 2: "rollingUpdate Rolling"},
    "Rolling": {1: "maxUnavailable IntOrString", 2: "maxSurge IntOrString"},
    "Job": {1: "metadata Meta", 2: "spec JobSpec", 3: "status Empty"},
    "JobSpec": {
        1: "parallelism i",
        2: "completions i",
        3: "activeDeadlineSeconds i",
        4: "selector Selector",
        5: "manualSelector o",
        6: "template PodTemplate",
        7: "backoffLimit i",
        8: "ttlSecondsAfterFinished i",
    },
    "PodDisruptionBudget": {1: "metadata Meta", 2: "spec BudgetSpec", 3: "status Empty"},
    "BudgetSpec": {
        1: "minAvailable IntOrString",
        2: "selector Selector",
        3: "maxUnavailable IntOrString",
        4: "unhealthyPodEvictionPolicy s",
    },
    "PriorityClass": {
        1: "metadata Meta",
        2: "value i",
        3: "globalDefault o",
        4: "description s",
        5: "preemptionPolicy s",
    },
    "Role": {1: "metadata Meta", 2: "rules [Rule]"},
    "ClusterRole": {1: "metadata Meta", 2: "rules [Rule]"},
    "RoleBinding": {1: "metadata Meta", 2: "subjects [Subject]", 3: "roleRef Ref"},
    "ClusterRoleBinding": {1: "metadata Meta", 2: "subjects [Subject]", 3: "roleRef Ref"},
    "Rule": {
        1: "verbs [s]",
        2: "apiGroups [s]",
        3: "resources [s]",
        4: "resourceNames [s]",
        5: "nonResourceURLs [s]",
    },
    "Subject": {1: "kind s", 2: "apiGroup s", 3: "name s", 4: "namespace s"},
    "Ref": {1: "apiGroup s", 2: "kind s", 3: "name s"},
    "Eviction": {1: "metadata Meta", 2: "deleteOptions DeleteOptions"},
    "DeleteOptions": {
        1: "gracePeriodSeconds i",
        2: "preconditions Preconditions",
        3: "orphanDependents o",
        4: "propagationPolicy s",
        5: "dryRun [s]",
    },
    "Preconditions": {1: "uid s", 2: "resourceVersion s"},
    "Unknown": {1: "typeMeta TypeMeta", 2: "raw b", 3: "contentEncoding s", 4: "contentType s"},
    "TypeMeta": {1: "apiVersion s", 2: "kind s"},
}
# Zero counts here, because the field is a pointer: zero replicas are not the default.
_POINTERS = frozenset(
    {"replicas", "gracePeriodSeconds", "parallelism", "completions", "backoffLimit", "value"}
)


def decoded(body: bytes) -> dict[str, Any]:
    """Read an object from its envelope."""
    if not body.startswith(MAGIC):
        raise api_errors.bad_request("the body is not a protobuf object of Kubernetes")
    try:
        raw, kind, version = _envelope(body[len(MAGIC) :])
        if kind not in _MESSAGES:
            raise api_errors.missing(f"protobuf bodies of kind {kind or 'unknown'}; send JSON")
        return {"apiVersion": version, "kind": kind, **_message(kind, raw)}
    except (IndexError, ValueError, OverflowError, OSError) as error:
        raise api_errors.bad_request(f"the protobuf body is damaged: {error}") from error


def _envelope(body: bytes) -> tuple[bytes, str, str]:
    raw, about = b"", {}
    for number, value in _fields(body):
        if number == 1 and isinstance(value, bytes):
            about = _message("TypeMeta", value)
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return raw, about.get("kind", ""), about.get("apiVersion", "")


def _message(name: str, body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(body):
        if name == "Empty":
            continue  # A status, which a client cannot set on creation.
        if number not in _MESSAGES[name] and not value:
            continue  # Senders write empty text and zero for what was never set.
        if number not in _MESSAGES[name]:
            raise api_errors.missing(f"field {number} of {name} in protobuf bodies; send JSON")
        field, kind = _MESSAGES[name][number].split()
        if kind.startswith("["):
            found.setdefault(field, []).append(_value(kind[1:-1], value))
        elif kind.startswith("{"):
            key, inner = _entry(kind[1:-1], value)
            found.setdefault(field, {})[key] = inner
        else:
            single = _value(kind, value)
            if single or field in _POINTERS or (kind == "IntOrString" and single is not None):
                found[field] = single
    return found


def _signed(value: int) -> int:
    """Read a negative number, which travels as ten bytes of two's complement."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _entry(kind: str, body: int | bytes) -> tuple[str, Any]:
    if isinstance(body, int):
        raise ValueError("an entry of a map is a number")
    parts = dict(_fields(body))
    absent: int | bytes = 0 if kind in ("i", "o") else b""
    return str(_value("s", parts.get(1, b""))), _value(kind, parts.get(2, absent))


def _value(kind: str, value: int | bytes) -> Any:
    if isinstance(value, int) is not (kind in ("i", "o")):
        raise ValueError("a field is of another type than expected")
    if isinstance(value, int):
        return bool(value) if kind == "o" else _signed(value)
    if kind == "s":
        return value.decode()
    if kind == "b":
        return base64.b64encode(value).decode()
    special = {"Time": _time, "Quantity": _quantity, "IntOrString": _int_or_string}.get(kind)
    return special(value) if special is not None else _message(kind, value)


def _time(body: bytes) -> str | None:
    seconds = dict(_fields(body)).get(1)
    if not isinstance(seconds, int):
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _quantity(body: bytes) -> str:
    text = dict(_fields(body)).get(1, b"0")
    return text.decode() if isinstance(text, bytes) else "0"


def _int_or_string(body: bytes) -> Any:
    parts = dict(_fields(body))
    if parts.get(1):
        return _value("s", parts.get(3, b""))
    return _value("i", parts.get(2, 0))


def _fields(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(body):
        tag, position = _varint(body, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(body, position)
            yield number, value
        elif wire == 2:
            size, position = _varint(body, position)
            if position + size > len(body):
                raise ValueError("a field is longer than its message")
            yield number, body[position : position + size]
            position += size
        else:
            raise ValueError(f"wire type {wire} of field {number} is not used by Kubernetes")


def _varint(body: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = body[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise OverflowError("a number has more than 64 bits")
