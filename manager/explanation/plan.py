"""When an explanation of why a pod waits has had its day."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator import explanation
from api.wire import base, durations
from manager.reconcile import actions

MAKER: Final = "koord-extender"
"""Field manager of explanations that no user asked for; those end with their pod as well."""
_SETTLE_SECONDS: Final = 5.0


class Explained(msgspec.Struct, frozen=True, gc=False):
    """One ScheduleExplanation, as far as its end goes."""

    namespace: str
    name: str
    uid: str
    pod: str
    """namespace/name of the pod or job that it is about."""
    made_by_us: bool
    ttl: float
    """Seconds; 0 for ever."""
    since: float
    """When it was last confirmed, or made if it never was."""


def view(raw: Mapping[str, Any]) -> Explained | None:
    """Project an object; one that cannot be read is left to its author."""
    metadata = raw.get("metadata") or {}
    try:
        # Conditions of any shape must not keep it from ending.
        status = {**base.section(raw, "status"), "conditions": []}
        read = explanation.read_schedule_explanation({**raw, "status": status})
        made = durations.timestamp(str(metadata.get("creationTimestamp") or ""))
    except (base.ReadError, durations.TimestampError):
        return None
    confirmed = read.status.last_update_time
    return Explained(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        pod=read.spec.question_object_key,
        made_by_us=(metadata.get("labels") or {}).get(names.LABEL_CREATED_BY) == MAKER,
        ttl=read.spec.ttl,
        since=made if confirmed is None else max(made, confirmed),
    )


def planned(found: Explained, *, missing_since: float | None, now: float) -> actions.Plan:
    """Plan the end of an explanation: by its lifetime, or with the pod if it came by itself.

    ``missing_since`` is when the pod was first not seen; None while it is.
    """
    delete = actions.Delete(resources.SCHEDULE_EXPLANATIONS, found.name, found.uid, found.namespace)
    age = now - found.since
    if found.made_by_us and missing_since is not None:
        left = missing_since + _SETTLE_SECONDS - now
        if left <= 0:
            return actions.Plan(f"{found.pod} is gone", (delete,))
        # The order in which several watches deliver one pod is undefined.
        return actions.Plan(f"{found.pod} is not seen", again_in=left)
    if not found.ttl:
        return actions.Plan("stays for ever")
    if age >= found.ttl:
        return actions.Plan(f"was last confirmed {age:.0f} s ago", (delete,))
    return actions.Plan("has not expired", again_in=found.ttl - age)
