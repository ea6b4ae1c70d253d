"""The same request to two API servers, and what they make of it in one form."""

import asyncio
import dataclasses
import json

# The server makes these up; their presence is compared, their value is not.
STAMPED = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "continue",
     "lastTransitionTime", "remainingItemCount"}
)  # fmt: skip
UNSET_TIMES = ("f:lastTransitionTime", "f:lastProbeTime", "f:lastHeartbeatTime", "f:lastUpdateTime")
EMPTY = ({}, [], "", None, False, 0)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one plane made of a request."""

    status: int
    reason: str
    value: object
    message: str = ""


class Side:
    """One of the two planes."""

    def __init__(self, api):
        self._api = api

    async def prepare(self, step):
        """The body of the request for this plane."""
        if not callable(step.body):
            return step.body
        current = await self._api.call("GET", step.subject)
        return step.filled(current.body if current.status == 200 else {})

    async def take(self, step):
        """Send the request; returns the outcome and how its subject looks afterwards."""
        body = await self.prepare(step)
        answer = await self._api.call(
            step.method, step.path, body, query=dict(step.query), kind=step.media
        )
        after = None
        if step.subject and step.method != "GET":
            got = await self._api.call("GET", step.subject)
            after = outcome(got)
        return outcome(answer), after


def outcome(answer):
    """An answer without what differs from run to run."""
    body = answer.body
    if body.get("kind") == "Status":
        return Outcome(
            answer.status,
            body.get("reason", "") or body.get("status", ""),
            None,
            body.get("message", ""),
        )
    return Outcome(answer.status, "", normal(_ordered(body)))


def _ordered(body):
    """Sort finalizers of a Namespace: kube-apiserver orders them at random when it is deleted."""
    metadata = body.get("metadata")
    if body.get("kind") != "Namespace" or not isinstance(metadata, dict):
        return body
    return body | {"metadata": metadata | {"finalizers": sorted(metadata.get("finalizers") or ())}}


def normal(value):
    """An object in one form: made-up values are marked, what is empty is left out."""
    if isinstance(value, dict):
        result = {}
        for key, inner in value.items():
            if key == "managedFields":
                made = sorted((normal(_untimed(e)) for e in inner or ()), key=_entry)
            elif key in STAMPED and inner:
                made = f"<{key}>"
            elif key == "fieldsV1":
                made = json.dumps(_fields(inner), sort_keys=True)
            else:
                made = normal(inner)
            if not any(made is e or (made == e and type(made) is type(e)) for e in EMPTY):
                result[key] = made
        return result
    if isinstance(value, list):
        return [normal(inner) for inner in value]
    return value


def _untimed(entry):
    return {key: value for key, value in entry.items() if key != "time"}


def _fields(fields):
    """Owned fields; a condition of Go has times that were never set, and somebody owns them."""
    return {key: _fields(inner) for key, inner in fields.items() if key not in UNSET_TIMES}


def _entry(entry):
    return tuple(str(entry.get(key, "")) for key in ("manager", "operation", "subresource"))


async def both(sides, step):
    """Both outcomes of a step, each with the subject afterwards."""
    return await asyncio.gather(*(side.take(step) for side in sides))


def differences(left, right, path=""):
    """The paths at which two normal values differ, with both values."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from differences(left.get(key), right.get(key), f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, two) in enumerate(zip(left, right, strict=True)):
            yield from differences(one, two, f"{path}[{index}]")
    elif left != right:
        yield path, left, right
