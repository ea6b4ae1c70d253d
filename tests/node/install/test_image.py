"""Our processes out of our image, as the chart's pods on the real node."""

import re

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
