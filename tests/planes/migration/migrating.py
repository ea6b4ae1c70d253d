"""Pods that move on any plane: the vocabulary of scenarios of PodMigrationJobs."""

import contextlib
import json

from api import names, resources
from cli.dev import all_in_one
from descheduler import app as deschedulers
from descheduler import settings
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.planes import raw
from tests.planes.migration import reserving
from tests.planes.processes import restarting

PATIENCE = 60.0
JOBS, KEPT = resources.POD_MIGRATION_JOBS, resources.RESERVATIONS
OPEN = {"", "Pending", "Running"}
# Workloads of these scenarios are small, and what is moved is moved at once.
CONFIGURATION = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 1h
profiles:
- name: only-jobs
  pluginConfig:
  - name: MigrationController
    args:
      skipCheckExpectedReplicas: true
      evictAllBarePods: true
      evictBurst: 10
      maxConcurrentReconciles: 2
      maxMigratingPerNode: 0
      objectLimiters: {workload: {duration: 0s}}
      skipEvictionGates: [MaxUnavailablePerWorkload, MaxMigratingPerWorkload]
      arbitrationArgs: {interval: 100ms}
"""


@contextlib.asynccontextmanager
async def descheduling(access, folder, configuration=CONFIGURATION):
    """A descheduler that does what jobs ask for, and finds nothing to move by itself."""
    file = folder / "descheduler.yaml"
    file.write_text(configuration)
    chosen = settings.Settings.model_validate(
        {
            "configuration": file,
            "health": all_in_one.local(),
            "leader_election": {"enabled": False},
            "finds_targets": False,
        }
    )
    async with supervise.Supervisor("descheduler", stop_seconds=30.0) as supervisor:
        hosted = restarting.Hosted(
            supervisor.spawn,
            lambda: deschedulers.running(chosen, access=access, clock=clocks.SystemClock()),
        )
        await hosted.start()
        try:
            yield hosted
        finally:
            await hosted.stop()


class Migrating(reserving.Reserving):
    """One test's workloads, their pods, and the jobs that move these."""

    def __init__(self, here, system, kube, descheduler):
        super().__init__(here, system, kube)
        self.descheduler = descheduler
        self._jobs = []

    # -- workloads -------------------------------------------------------------------------

    def template(self, name, requests=None, **more):
        """A pod template of this test; `labels` and `annotations` go into its metadata."""
        metadata = {"labels": {"app": name, **more.pop("labels", {})}}
        metadata["annotations"] = more.pop("annotations", {})
        body = self.here.pod_body("x", requests=requests or {"cpu": "2"}, **more)
        return {"metadata": metadata, "spec": body["spec"]}

    async def deployment(self, name, replicas=1, requests=None, **more):
        """Create a Deployment and wait until its pods have a node and are ready."""
        selector = {"matchLabels": {"app": name}}
        template = self.template(name, requests, **more)
        spec = {"replicas": replicas, "selector": selector, "template": template}
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": spec,
        }
        await self.api.post(self.here.path("deployments", group="apps/v1"), body)
        return await self.running(name, replicas)

    async def successor(self, app, pod):
        """Wait until another pod of a workload has a node in place of one; return it."""
        (found,) = await self.running(app, without=(pod,))
        return found

    async def running(self, app, count=1, without=()):
        """Wait until so many pods of a workload have a node, and these are gone.

        Their kubelets are played; the pods are returned.
        """
        found = []

        async def placed():
            found[:] = [pod for pod in await self.pods(app) if pod["spec"].get("nodeName")]
            named = {pod["metadata"]["name"] for pod in found}
            return len(found) == count and not named & set(without)

        await raw.eventually(placed, PATIENCE)
        for pod in found:
            await self.started(pod["metadata"]["name"])
        return sorted(found, key=lambda pod: pod["metadata"]["name"])

    async def protect(self, app):
        """Let no pod of a workload be evicted."""
        spec = {"minAvailable": "100%", "selector": {"matchLabels": {"app": app}}}
        body = {"metadata": {"name": app}, "spec": spec}
        await self.api.post(self.here.path("poddisruptionbudgets", group="policy/v1"), body)

    async def release(self, app):
        """Let its pods be evicted again."""
        budgets = self.here.path("poddisruptionbudgets", group="policy/v1")
        await self.api.delete(f"{budgets}/{app}")

    async def started(self, name):
        """Do what a kubelet does that has started a pod."""
        conditions = [{"type": "Ready", "status": "True", "reason": "Started"}]
        body = {"status": {"phase": "Running", "conditions": conditions}}
        await self.api.call(
            "PATCH", self.here.path("pods", name, "status"), body, kind=raw.STRATEGIC_PATCH
        )

    async def pods(self, app):
        """The pods of a workload that do not terminate."""
        found = await self.api.get(self.here.path("pods"), labelSelector=f"app={app}")
        return [
            pod
            for pod in found["items"]
            if not pod["metadata"].get("deletionTimestamp")
            and names.LABEL_STAND_IN not in pod["metadata"]["labels"]
        ]

    # -- jobs ------------------------------------------------------------------------------

    def job_path(self, name, subresource=""):
        """Where a job is found."""
        return JOBS.path(name=self.here.name(name), subresource=subresource)

    async def move(self, name, pod, *, annotations=None, **spec):
        """Create a job that moves a pod."""
        body = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": self.here.name(name), "annotations": annotations or {}},
            "spec": {"podRef": {"namespace": self.here.namespace, "name": pod}, **spec},
        }
        await self.api.post(JOBS.path(), body)
        self._jobs.append(name)

    async def job_until(self, name, predicate):
        """Wait until a job is as wanted; returns it."""
        return await self.api.wait_until(self.job_path(name), predicate, PATIENCE)

    async def ended(self, name, phase, reason=None):
        """Wait until a job has ended; see that it has ended this way; returns its status."""
        found = await self.job_until(name, lambda one: _status(one).get("phase", "") not in OPEN)
        status = found["status"]
        assert status["phase"] == phase, status
        if reason is not None:
            assert status["reason"] == reason, status
        return status

    async def says(self, name, kind, status, reason=None):
        """Wait until a condition of a job says this; returns the job."""

        def told(found):
            for one in _status(found).get("conditions", ()):
                if one["type"] == kind and one["status"] == status:
                    return reason in (None, one.get("reason", ""))
            return False

        return await self.job_until(name, told)

    async def job_until_any(self, jobs, kind, status):
        """Wait until a condition of one of several jobs says this; returns the name of the job."""
        found = []

        async def one():
            for name in jobs:
                job = await self.api.get(self.job_path(name))
                told = _status(job).get("conditions", ())
                if any(one["type"] == kind and one["status"] == status for one in told):
                    found.append(name)
            return bool(found)

        await raw.eventually(one, PATIENCE)
        return found[0]

    async def reservation_of(self, name):
        """Return the Reservation that a job names; None where it names none, or it is gone."""
        job = await self.api.get(self.job_path(name))
        options = job["spec"].get("reservationOptions", {})
        named = options.get("reservationRef", {}).get("name")
        if named is None:
            return None
        answer = await self.api.call("GET", KEPT.path(name=named))
        return answer.body if answer.status == 200 else None

    async def reserved(self, name):
        """Wait until the Reservation of a job has a node; returns the name of the node."""
        found = await self.says(name, "ReservationScheduled", "True")
        return found["status"]["nodeName"]

    async def nothing_is_kept(self, name):
        """Wait until no Reservation of a job is there any more."""

        async def gone():
            return await self.reservation_of(name) is None

        await raw.eventually(gone, PATIENCE)

    async def patch_job(self, name, spec=None, status=None):
        """Change a job as a person does."""
        if spec is not None:
            await self.api.patch(self.job_path(name), {"spec": spec})
        if status is not None:
            await self.api.patch(self.job_path(name, "status"), {"status": status})

    def used(self, pod):
        """Return the name of the Reservation that a pod uses."""
        note = pod["metadata"].get("annotations", {}).get(names.ANNOTATION_RESERVATION_ALLOCATED)
        return json.loads(note)["name"] if note else ""

    async def clear(self):
        """Delete the jobs of this test, and what else it has made."""
        for name in self._jobs:
            await self.api.call("DELETE", self.job_path(name))
        deployments = self.here.path("deployments", group="apps/v1")
        found = await self.api.get(deployments)
        for one in found["items"]:
            await self.api.delete(f"{deployments}/{one['metadata']['name']}")
        await super().clear()


def _status(found):
    return (found or {}).get("status", {})
