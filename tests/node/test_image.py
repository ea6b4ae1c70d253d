"""Our processes out of our image, as the chart's pods on the real node."""

import re

from api import names, resources
from tests.planes import node_cluster

BAD = re.compile(r"^.*(?:level=error|Traceback|[Ff]orbidden|Unauthorized).*$", re.MULTILINE)


async def test_the_agent_becomes_ready_and_reports(cluster):
    pod = await cluster.pod_of("agent")
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    metric = await cluster.metric(lambda status: status.get("nodeMetric"))
    assert "cpu" in metric["status"]["nodeMetric"]["nodeUsage"]["resources"]


async def test_the_manager_runs_without_root(cluster):
    pod = await cluster.pod_of("manager")
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    assert pod["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    assert "process started name=manager" in cluster.node.pod_log(pod, "manager")


async def test_no_pod_of_ours_logs_an_error(cluster):
    for component in ("agent", "manager"):
        log = cluster.node.pod_log(await cluster.pod_of(component), component)
        assert not BAD.findall(log), log


async def test_helm_test_runs_in_the_cluster(cluster):
    """The webhook and the extender are no pods here, since API server and scheduler are none."""
    path = resources.PODS.path(names.NAMESPACE, "koord-test")
    parts = "--components=manager,agent,descheduler"
    for document in node_cluster.rendered(cluster.image, "tests.enabled=true"):
        if document["metadata"].get("annotations", {}).get("helm.sh/hook") == "test":
            if document["kind"] == "Pod":
                (container,) = document["spec"]["containers"]
                kept = [one for one in container["args"] if "--components" not in one]
                container["args"] = [*kept, parts]
            await node_cluster.apply(cluster.api, document)

    def ended(found):
        return found["status"]["phase"] in ("Succeeded", "Failed")

    pod = await cluster.api.wait_until(path, ended, node_cluster.PATIENCE)
    said = cluster.node.pod_log(pod, "test")
    assert pod["status"]["phase"] == "Succeeded", said
    assert "every part that was installed is ready" in said
    assert "the API server calls the webhook" in said
    await cluster.api.delete(path)
