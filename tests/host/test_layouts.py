"""Every way in which a kubelet and a runtime arrange groups, on a real kernel."""

import os

import pytest
import pytest_asyncio

from agent.model import cgroup_layout
from agent.observe.cgroups import cgroup_files
from tests.planes.host import kubepods

F = cgroup_layout.File
MIB = kubepods.MIB
SCOPES = {"containerd": "cri-containerd-", "cri-o": "crio-", "docker": "docker-"}
KINDS = {"Burstable": "LS", "BestEffort": "BE", "Guaranteed": "LSR"}


@pytest_asyncio.fixture
async def groups(request):
    made = kubepods.Groups(f"koord-layouts-{os.getpid()}", request.param)
    try:
        yield made
    finally:
        await made.remove()


def body(kind):
    resources = {}
    if kind == "BestEffort":
        asked = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": str(64 * MIB)}
        resources = {"requests": asked, "limits": asked}
    return {
        "metadata": {
            "name": kind.lower(),
            "namespace": "default",
            "uid": f"0b5c-{kind.lower()}",
            "labels": {"koordinator.sh/qosClass": KINDS[kind]},
        },
        "spec": {"containers": [{"name": "app", "resources": resources}]},
        "status": {"phase": "Running", "qosClass": kind},
    }


@pytest.mark.parametrize(
    ("groups", "runtime"),
    [("systemd", "containerd"), ("systemd", "cri-o"), ("cgroupfs", "containerd")],
    indirect=["groups"],
)
async def test_pods_are_found_and_limited_and_let_go(groups, runtime, tmp_path):
    first, driver = groups.version == 1, groups.layout.driver
    if not first:
        assert cgroup_files.detect(str(kubepods.ROOT)) == groups.layout
    node = kubepods.Node(groups, tmp_path)
    made = {kind: node.add(body(kind), runtime) for kind in KINDS}
    for kind, (pod, (container,)) in made.items():
        uid = f"0b5c-{kind.lower()}"
        inner = container.rpartition("/")[2]
        if driver == "systemd":
            assert pod.endswith(f"-pod{uid.replace('-', '_')}.slice")
            assert inner == f"{SCOPES[runtime]}c-{uid}-app.scope"
        else:
            assert (pod.rpartition("/")[2], inner) == (f"pod{uid}", f"c-{uid}-app")
        groups.burn(container, 0.1)
        groups.hold(container, 4 * MIB)
    node.enforce(resourceUsedThresholdWithBE={"enable": True, "cpuSuppressThresholdPercent": 50})
    await node.until(lambda: all(pod.usage.cpu for pod in node.loop.picture.pods), 30)
    assert not node.loop.picture.problems
    assert {pod.kubernetes_qos: pod.group for pod in node.loop.picture.pods} == {
        kind: pod for kind, (pod, _) in made.items()
    }
    pod, (batch,) = made["BestEffort"]
    files = [(file, group) for file in (F.CPU_SHARES, F.MEMORY_LIMIT) for group in (pod, batch)]
    for group in (pod, batch):
        assert groups.text(F.MEMORY_LIMIT, group) == str(64 * MIB)
        assert groups.text(F.CPU_SHARES, group) == ("512" if first else "20")
    assert len(cgroup_files.Cgroups(groups.layout, groups.kept).best_effort().groups) == 3
    node.uninstall()
    unlimited = groups.text(F.MEMORY_LIMIT, made["Burstable"][0])
    wanted = {F.CPU_SHARES: "1024" if first else "100", F.MEMORY_LIMIT: unlimited}
    assert [groups.text(file, group) for file, group in files] == [
        wanted[file] for file, _ in files
    ]
