"""The assembled embedded control assembled: ports, restarts, kubeconfig."""

import json
import stat

import pytest

from api.kubernetes import scheduler_config
from simulator import cluster
from simulator.apiserver.storage import lifecycle
from simulator.kubelet import kubelet
from tests.planes import raw

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "web:1"}], "nodeName": "n"},
}
PODS = "/api/v1/namespaces/default/pods"


def phase(wanted):
    return lambda pod: pod is not None and pod["status"].get("phase") == wanted


async def test_a_restart_keeps_address_and_state(assembled, assembled_api):
    await assembled_api.post(PODS, POD)
    server = assembled.server
    await assembled.restart_apiserver()
    assert assembled.server == server
    await assembled_api.wait_until(f"{PODS}/web", phase("Running"))


async def test_a_taken_port_is_named(assembled):
    port = int(assembled.server.rpartition(":")[2])
    with pytest.raises(cluster.ClusterError, match=f"port {port} is in use; stop the program"):
        async with cluster.running(cluster.Options(port=port)):
            pass


async def test_a_taken_kubelet_port_is_named(assembled):
    port = assembled.kubelets.port
    with pytest.raises(cluster.ClusterError, match=f"kubelet_port {port} is in use"):
        async with cluster.running(cluster.Options(kubelet_port=port)):
            pass


async def test_without_kubelets_there_are_none():
    async with cluster.running(cluster.Options(with_kubelets=False)) as running:
        with pytest.raises(cluster.ClusterError, match="set with_kubelets"):
            _ = running.kubelets


def test_a_kubeconfig_is_for_its_owner_only(assembled, tmp_path):
    path = assembled.write_kubeconfig(tmp_path / "config", "koord-manager")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    user = json.loads(path.read_text())["users"][0]["user"]
    assert user == {"token": assembled.tokens["koord-manager"]}


async def test_it_runs_on_virtual_time(clock):
    options = cluster.Options(machines=[kubelet.Machine("n")])
    async with (
        cluster.running(options, clock=clock) as running,
        raw.connected(running.server, running.ca, running.token) as api,
    ):
        body = {
            **POD,
            "metadata": {"name": "web", "annotations": {"dev.koord.sh/run-seconds": "60"}},
        }
        await api.post(PODS, body)
        pod = await api.wait_until(f"{PODS}/web", phase("Running"))
        assert pod["status"]["startTime"] == lifecycle.timestamp(clock.now())
        await clock.advance(59)
        assert (await api.get(f"{PODS}/web"))["status"]["phase"] == "Running"
        await clock.advance(1)
        await api.wait_until(f"{PODS}/web", phase("Succeeded"))


TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": POD["spec"]["containers"]}}
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.mark.parametrize(
    ("path", "conditions"),
    [
        pytest.param(f"{PODS}/waiting", [{"type": "PodScheduled"}], id="pod without a status"),
        pytest.param(f"{PODS}/waiting", [{"status": "True"}], id="pod without a type"),
        pytest.param(f"{JOBS}/job", [{"type": "Failed"}], id="job without a status"),
        pytest.param("/api/v1/nodes/n", [{"message": "odd"}], id="node with neither"),
    ],
)
async def test_a_condition_of_which_half_is_missing_ends_nothing(
    assembled, assembled_api, path, conditions
):
    await assembled.start_scheduler(scheduler_config.Options(""))
    waiting = {**POD, "metadata": {"name": "waiting"}}
    waiting["spec"] = {**POD["spec"], "nodeName": "", "nodeSelector": {"zone": "x"}}
    await assembled_api.post(PODS, waiting)
    finite = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    await assembled_api.post(JOBS, {"metadata": {"name": "job"}, "spec": {"template": finite}})
    await assembled_api.wait_until(f"{PODS}/waiting", lambda pod: pod["status"].get("conditions"))
    await assembled_api.patch(f"{path}/status", {"status": {"conditions": conditions}})
    selector = {"matchLabels": {"app": "a"}}
    body = {"metadata": {"name": "a"}, "spec": {"selector": selector, "template": TEMPLATE}}
    await assembled_api.post(REPLICA_SETS, body)
    await assembled_api.wait_until(
        f"{REPLICA_SETS}/a", lambda one: one.get("status", {}).get("readyReplicas") == 1
    )
    labels = {"metadata": {"labels": {"zone": "x"}}}
    await assembled_api.patch("/api/v1/nodes/m", labels)
    await assembled_api.wait_until(f"{PODS}/waiting", phase("Running"))
