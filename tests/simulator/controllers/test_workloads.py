"""Deployments and Jobs become pods that run."""

from api.kubernetes import scheduler_config
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
