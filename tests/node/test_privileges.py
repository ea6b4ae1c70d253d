"""What the agent may do on its node is what it needs, and it puts the node back when it ends.

The agent of the DaemonSet is gone here; each test runs one as a pod of its own, made from the
DaemonSet's template with something taken away.
"""

import copy
import os
import signal

import pytest
import pytest_asyncio

from api import names, resources
from tests.planes import node_cluster, node_groups, raw

QUOTA = "cpu.cfs_quota_us"
HOLD = {"enable": True, "cpuSuppressThresholdPercent": 0, "cpuSuppressPolicy": "cfsQuota"}
PODS = resources.PODS.path(names.NAMESPACE)
DAEMON_SET = resources.DAEMON_SETS.path(names.NAMESPACE, "koord-agent")


def quota(cluster):
    return node_groups.figure(cluster.class_group("cpu"), QUOTA)


async def quota_is(cluster, predicate):
    async def check():
        return predicate(quota(cluster))

    await raw.eventually(check, node_cluster.PATIENCE)


class Agents:
    """Runs agents as pods that are made from the template of the DaemonSet."""

    def __init__(self, cluster, template):
        self._cluster = cluster
        self._template = template
        self._names = []

    async def start(self, name, change=lambda spec: None):
        """Start an agent and wait until its container runs."""
        spec = copy.deepcopy(self._template["spec"])
        spec["nodeName"] = node_cluster.NODE
        spec["restartPolicy"] = "Never"
        # Restarts would hide what goes wrong; a test looks at the pages of the agent instead.
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            spec["containers"][0].pop(probe, None)
        change(spec)
        await self._cluster.api.post(PODS, {"metadata": {"name": name}, "spec": spec})
        self._names.append(name)
        path = f"{PODS}/{name}"
        return await self._cluster.api.wait_until(path, node_cluster.runs, node_cluster.PATIENCE)

    async def stop(self):
        for name in self._names:
            await self._cluster.api.call("DELETE", f"{PODS}/{name}")
        for name in self._names:
            path = f"{PODS}/{name}"
            gone = node_cluster.PATIENCE
            await self._cluster.api.wait_until(path, lambda found: found is None, gone)
        self._names.clear()

    async def page(self, pod, path):
        """A page of an agent's health port, as its kubelet would see it."""
        return await self._cluster.node.page(pod["status"]["podIP"], 9316, path)

    async def tells(self, pod, path, word):
        """Wait until a page holds a word."""

        async def check():
            return word in await self.page(pod, path)

        try:
            await raw.eventually(check, node_cluster.PATIENCE)
        except TimeoutError:
            said = f"{await self.page(pod, path)}\n{self._cluster.node.pod_log(pod, 'agent')}"
            raise AssertionError(f"no {word!r} in {path}: {said}") from None


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def template(cluster):
    """The DaemonSet's template, after its own pod held a class back and has put it back."""
    found = await cluster.api.get(DAEMON_SET)
    pod = await cluster.pod_of("agent")
    await cluster.strategy(**HOLD)
    await quota_is(cluster, lambda figure: figure > 0)
    await cluster.api.delete(DAEMON_SET, propagationPolicy="Background")
    path = f"{PODS}/{pod['metadata']['name']}"
    await cluster.api.wait_until(path, lambda found: found is None, node_cluster.PATIENCE)
    assert quota(cluster) == -1
    return found["spec"]["template"]


@pytest_asyncio.fixture(loop_scope="session")
async def agents(cluster, template):
    """Agents without probes; all are stopped after the test, which puts the node back."""
    await cluster.strategy(**HOLD)
    running = Agents(cluster, template)
    yield running
    await running.stop()
    assert quota(cluster) == -1


async def test_as_shipped_it_holds_back_and_puts_back(cluster, agents):
    await agents.start("shipped")
    await quota_is(cluster, lambda figure: figure > 0)
    await agents.stop()
    assert quota(cluster) == -1
    status, said = await cluster.node.command("ls", "/run/koord-agent")
    assert status == 0, said


def unprivileged(spec):
    spec["containers"][0]["securityContext"] |= {"runAsUser": 65532, "runAsGroup": 65532}


def read_only(spec):
    for mount in spec["containers"][0]["volumeMounts"]:
        if mount["name"] == "cgroup":
            mount["readOnly"] = True
            mount["recursiveReadOnly"] = "Enabled"


def without(name):
    def change(spec):
        mounts = spec["containers"][0]["volumeMounts"]
        spec["containers"][0]["volumeMounts"] = [one for one in mounts if one["name"] != name]
        spec["volumes"] = [one for one in spec["volumes"] if one["name"] != name]

    return change


def without_token(spec):
    spec["serviceAccountName"] = "default"


@pytest.mark.parametrize(
    ("change", "page", "word"),
    [
        pytest.param(unprivileged, "/readyz", "Permission denied", id="not as root"),
        pytest.param(read_only, "/debug/audit", "Read-only file system", id="groups read-only"),
        pytest.param(without("cgroup"), "/readyz", "cgroup", id="without the groups"),
        pytest.param(without("state"), "/readyz", "journal", id="without the journal"),
        pytest.param(without_token, "/readyz", "403", id="with nobody's permissions"),
    ],
)
async def test_taken_away_it_fails_by_name(cluster, agents, change, page, word):
    pod = await agents.start("less", change)
    await agents.tells(pod, page, word)
    assert quota(cluster) == -1


async def test_after_a_kill_the_next_one_puts_back(cluster, agents):
    pod = await agents.start("killed")
    await quota_is(cluster, lambda figure: figure > 0)
    container = pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
    group = cluster.pod_group("cpu", pod) / container
    for pid in (group / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    path = f"{PODS}/killed"
    await cluster.api.wait_until(
        path, lambda found: found["status"]["phase"] == "Failed", node_cluster.PATIENCE
    )
    assert quota(cluster) > 0
    await cluster.strategy(enable=False)
    pod = await agents.start("next")
    await quota_is(cluster, lambda figure: figure == -1)
    await agents.tells(pod, "/debug/audit", "an earlier run left it behind")
