"""What the descheduler does: pods leave with a job of theirs, by every way that it is allowed."""

import json

from api import names, resources
from tests.planes.install import installation
from tests.planes.install.lives import days, scheduling

JOBS, RESERVATIONS = resources.POD_MIGRATION_JOBS, resources.RESERVATIONS
PODS = resources.PODS.path(scheduling.ONLINE)
OLD = {"old": "yes"}
CONFIGURATION = {
    "deschedulingInterval": "1s",
    "profiles": [
        {
            "name": "life",
            "plugins": {
                "deschedule": {"enabled": [{"name": "PodLifeTime"}]},
                "balance": {"enabled": [{"name": "LowNodeLoad"}]},
            },
            "pluginConfig": [
                {
                    "name": "PodLifeTime",
                    "args": {"maxPodLifeTimeSeconds": 1, "labelSelector": {"matchLabels": OLD}},
                },
                {
                    "name": "MigrationController",
                    "args": {
                        "evictAllBarePods": True,
                        "skipCheckExpectedReplicas": True,
                        "arbitrationArgs": {"interval": "100ms"},
                    },
                },
            ],
        }
    ],
}
VALUE = f"descheduler.config={json.dumps(CONFIGURATION)}"
"""Written as for `--set-json`."""


async def by_rounds(it):
    """Pods leave because a round finds them too old."""
    # Nobody else reports of the node without an agent, and pods keep away from such nodes.
    control = resources.NODE_METRICS.path(name=installation.CONTROL)
    await scheduling.reported(it, control, "1", "1Gi")
    for name in ("old-1", "old-2"):
        # A round may find it too old before anybody has seen it run.
        await created(it, name, OLD)
        await it.api.wait_until(f"{PODS}/{name}", gone, days.PATIENCE)


async def by_people(it):
    """Pods leave because people ask for it, in each of the ways."""
    await reserved_first(it)
    await to_a_reservation(it)
    await in_vain(it)
    await softly(it)
    for job in (await it.api.get(JOBS.path()))["items"]:
        if names.ANNOTATION_JOB_CREATED_BY not in job["metadata"].get("annotations", {}):
            await it.api.delete(JOBS.path(name=job["metadata"]["name"]))


async def created(it, name, labels=None, **spec):
    """Create a pod for the scheduler."""
    spec = {"schedulerName": "koord-scheduler", **spec}
    pod = days.pod_body(name, {"cpu": "100m"}, **spec)
    pod["metadata"]["labels"] = {"app": name, **(labels or {})}
    await it.api.post(PODS, pod)


async def runs(it, name, labels=None, **spec):
    """Create a pod and wait until it runs."""
    await created(it, name, labels, **spec)
    return await it.api.wait_until(
        f"{PODS}/{name}", lambda found: found["status"].get("phase") == "Running", days.PATIENCE
    )


async def asked(it, name, pod, **spec):
    """Ask for a migration as a person does."""
    body = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name}}
    reference = {"namespace": scheduling.ONLINE, "name": pod}
    await it.api.post(JOBS.path(), body | {"spec": {"podRef": reference, **spec}})


async def ended(it, name, phase):
    """Wait until a job has ended in a phase."""
    await it.api.wait_until(
        JOBS.path(name=name),
        lambda found: (found or {}).get("status", {}).get("phase") == phase,
        days.PATIENCE,
    )


def gone(pod):
    return pod is None or "deletionTimestamp" in pod["metadata"]


async def reserved_first(it):
    """The place of a pod is kept on another node before it leaves."""
    before = await runs(it, "moves")
    owners = [{"labelSelector": {"matchLabels": {"app": "moves"}}}]
    template = {"spec": {"owners": owners}}
    await asked(it, "reserved-first", "moves", reservationOptions={"template": template})
    await it.api.wait_until(f"{PODS}/moves", lambda found: found is None, days.PATIENCE)
    after = await runs(it, "moves")
    assert after["spec"]["nodeName"] != before["spec"]["nodeName"]
    await ended(it, "reserved-first", "Succeeded")
    await it.api.delete(f"{PODS}/moves", gracePeriodSeconds="0")


async def to_a_reservation(it):
    """A person names the Reservation; the descheduler writes its order only."""
    pod = await runs(it, "named")
    other = next(one for one in installation.MACHINES if one != pod["spec"]["nodeName"])
    template = days.pod_body("x", {"cpu": "100m"}, schedulerName="koord-scheduler")
    spec = {"metadata": {"namespace": scheduling.ONLINE}, "spec": template["spec"]}
    spec["spec"]["nodeSelector"] = {names.LABEL_HOSTNAME: other}
    owners = [{"labelSelector": {"matchLabels": {"app": "named"}}}]
    kind = RESERVATIONS
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "named"}}
    await it.api.post(kind.path(), body | {"spec": {"template": spec, "owners": owners}})
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": "named"}
    await asked(it, "named", "named", reservationOptions={"reservationRef": reference})
    await it.api.wait_until(f"{PODS}/named", lambda found: found is None, days.PATIENCE)
    found = await it.api.get(kind.path(name="named"))
    assert names.LABEL_RESERVATION_ORDER in found["metadata"]["labels"]
    await it.api.delete(JOBS.path(name="named"))
    await it.api.delete(kind.path(name="named"))


async def in_vain(it):
    """No other node takes the pod: the job times out, and what it reserved goes."""
    pod = await runs(it, "stuck")
    selector = {names.LABEL_HOSTNAME: pod["spec"]["nodeName"]}
    template = {"spec": {"template": {"spec": {"nodeSelector": selector}}}}
    await asked(it, "in-vain", "stuck", ttl="3s", reservationOptions={"template": template})
    await ended(it, "in-vain", "Failed")
    await it.api.delete(f"{PODS}/stuck", gracePeriodSeconds="0")


async def softly(it):
    """Another controller is asked to evict a pod, by an annotation."""
    await runs(it, "soft", {names.LABEL_EVICT_POLICY: "SoftEviction"})
    await asked(it, "softly", "soft", mode="EvictDirectly")

    def told(found):
        return names.ANNOTATION_SOFT_EVICTION in found["metadata"].get("annotations", {})

    await it.api.wait_until(f"{PODS}/soft", told, days.PATIENCE)
    await it.api.delete(f"{PODS}/soft", gracePeriodSeconds="0")
