"""Deployments and Jobs become pods that run."""

import asyncio

from api.kubernetes import scheduler_config
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator import link
from simulator.controllers import workload_plans, workloads
from tests.planes import raw

PODS = "/api/v1/namespaces/default/pods"
CONTAINER = {"name": "main", "image": "web:1"}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [CONTAINER]},
}


async def test_a_deployment_becomes_running_pods_and_leaves_with_them(assembled, assembled_api):
    await assembled.start_scheduler(scheduler_config.Options(""))
    path = "/apis/apps/v1/namespaces/default/deployments"
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": 3, "selector": selector, "template": TEMPLATE}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    await assembled_api.post(path, {**body, "spec": spec})
    done = await assembled_api.wait_until(
        f"{path}/web", lambda found: found.get("status", {}).get("readyReplicas") == 3
    )
    assert done["status"]["availableReplicas"] == 3
    pods = (await assembled_api.get(PODS))["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"n", "m"}
    await assembled_api.patch(f"{path}/web", {"spec": {"replicas": 1}})
    await assembled_api.wait_until(
        f"{path}/web", lambda found: found["status"].get("replicas") == 1
    )
    await assembled_api.delete(f"{path}/web")

    async def empty():
        return not (await assembled_api.get(PODS))["items"]

    await raw.eventually(empty)


async def test_a_job_runs_to_its_end(assembled, assembled_api):
    await assembled.start_scheduler(scheduler_config.Options(""))
    path = "/apis/batch/v1/namespaces/default/jobs"
    meta = {"annotations": {"dev.koord.sh/run-seconds": "0"}}
    template = {"metadata": meta, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    spec = {"completions": 3, "parallelism": 2, "template": template}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec}
    await assembled_api.post(path, body)
    done = await assembled_api.wait_until(
        f"{path}/job", lambda found: found.get("status", {}).get("succeeded") == 3
    )
    assert done["status"]["conditions"][0]["type"] == "Complete"


async def test_nothing_is_kept_of_pods_that_are_gone(assembled, assembled_api):
    clock = clocks.SystemClock()
    access = (assembled.server, assembled.ca, assembled.token)
    async with (
        link.connected(*access, clock=clock, agent="test") as client,
        supervise.Supervisor("test") as tasks,
    ):
        mine = workloads.Workloads(client, clock)
        tasks.start("workloads", mine.run)
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        made = await assembled_api.post(PODS, {**body, "spec": TEMPLATE["spec"]})
        uid = made["metadata"]["uid"]

        async def known():
            return uid in mine._known["pods"]

        async def gone():
            return uid not in mine._known["pods"]

        await raw.eventually(known)
        await assembled_api.delete(f"{PODS}/p", gracePeriodSeconds=0)
        await raw.eventually(gone)
        assert not mine._gone


class Hasty:
    """A client of an API server whose watch tells that a pod is gone before it tells of it."""

    def __init__(self):
        self.show = {}

    async def follow(self, path, replace, show):
        self.show[path] = show
        replace([])
        await asyncio.Event().wait()

    async def call(self, method, path, body):
        made = {**body, "metadata": {"uid": f"uid of {method}"}}
        self.show[path.replace("/namespaces/default", "")]("DELETED", made)
        return made


async def test_a_pod_is_gone_that_is_deleted_while_it_is_made():
    client = Hasty()
    mine = workloads.Workloads(client, clocks.SystemClock())
    async with supervise.Supervisor("test") as tasks:
        tasks.start("workloads", mine.run)

        async def watched():
            return len(client.show) == len(workloads.PATHS)

        await raw.eventually(watched)
        await mine._carry_out(workload_plans.Create("pods", "default", {"kind": "Pod"}))
        assert mine._known["pods"] == {}
