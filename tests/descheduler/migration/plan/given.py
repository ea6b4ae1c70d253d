"""Jobs, Reservations and facts in the words of these tests."""

from typing import Any

from api.koordinator import migration, scheduling
from descheduler.configuration import by_profile
from descheduler.migration.plan import conditions, facts
from descheduler.model import objects, podinfo
from tests.descheduler import builders

NOW = builders.NOW
PASSED = {"descheduler.koordinator.sh/passed-arbitration": "true"}
RULES = facts.Rules()
PROFILE = {"koord.sh/migration-profile": "even"}
POD = builders.pod("web-0", "node-0")
REF = {"reservation_ref": {"name": "uid-job", "uid": "r-1"}}


def ruled(of_profile: facts.Defaults | None = None, **otherwise: Any) -> facts.Rules:
    """Rules with these defaults, and others for the jobs of the profile `even`."""
    named = {} if of_profile is None else {"even": of_profile}
    return facts.Rules(by_profile.ByProfile(facts.Defaults(**otherwise), named))


def condition(kind: str, status: str, reason: str = "", *, ago: float = 0.0, **more: Any) -> dict:
    """A condition as it stands in a status; `ago` seconds old."""
    moment = NOW - ago
    defaults = {"lastProbeTime": moment, "lastTransitionTime": moment, "message": ""}
    return {"type": kind, "status": status, "reason": reason, **defaults, **more}


CREATED = condition(conditions.RESERVATION_CREATED, "True")
SCHEDULED = condition(conditions.RESERVATION_SCHEDULED, "True")
BEGUN = condition(conditions.EVICTION, "False", conditions.EVICTION_BEGUN)
EVICTING = condition(conditions.EVICTION, "False", conditions.EVICTING)
EVICTED = condition(conditions.EVICTION, "True", conditions.EVICT_COMPLETE)
BOUND = condition(conditions.RESERVATION_BOUND, "True")


def job(
    *told: dict, phase: str = "Running", spec: dict | None = None, **fields: Any
) -> objects.Job:
    """A job that arbitration has let begin, with these conditions."""
    fields.setdefault("annotations", PASSED)
    status = {"conditions": told}
    return builders.job("job", "web-0", phase=phase, spec=spec, status=status, **fields)


def reserving(*told: dict, **fields: Any) -> objects.Job:
    """The same, which names its Reservation."""
    spec = {"reservation_options": migration.ReservationOptions.model_validate(REF)}
    return job(*told, spec={**spec, **fields.pop("spec", {})}, **fields)


def reservation(
    phase: str = "Available",
    node: str = "node-1",
    *,
    uid: str = "r-1",
    job_uid: str = "uid-job",
    **more: Any,
) -> objects.Reservation:
    """A Reservation of the job; `more` goes into its status, `owners` and `ttl` into its spec."""
    name, labels = "uid-job", {"scheduling.koordinator.sh/reservation-order": "1"}
    owner = {
        "controller": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    }
    metadata = {
        "name": name,
        "uid": uid,
        "labels": more.pop("labels", labels),
        "ownerReferences": [{"kind": "PodMigrationJob", "name": "job", "uid": job_uid}],
        **({"deletionTimestamp": "2023-11-14T00:00:00Z"} if more.pop("deleting", False) else {}),
    }
    spec = {"template": {"spec": {}}, "owners": more.pop("owners", [owner])}
    spec["unschedulable"] = more.pop("closed", False)
    spec["ttl"] = more.pop("ttl", "570s")
    status = {"phase": phase, "nodeName": node, **more}
    raw = scheduling.read_reservation({"metadata": metadata, "spec": spec, "status": status})
    return objects.Reservation(name, uid, raw.metadata.labels, raw)


def given(of: objects.Job, pod: podinfo.Pod | None = POD, held: Any = None, **more: Any) -> Any:
    """Facts about a job."""
    return facts.Facts(of, pod, held, **more)
