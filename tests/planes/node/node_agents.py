"""Agents on a real node: their pages, and agents as pods of their own."""

import copy
import json
import os
import re
import signal

from api import names, resources
from tests.planes import raw
from tests.planes.node import node_cluster

PODS = resources.PODS.path(names.NAMESPACE)
PORT = 9316


async def page(cluster, pod, path):
    """A page of an agent's health port, as its kubelet would see it."""
    return await cluster.node.page(pod["status"]["podIP"], PORT, path)


async def told(cluster, pod, path, predicate):
    """Wait until what a page says in JSON satisfies a predicate; returns it."""
    seen = [None]

    async def check():
        text = await page(cluster, pod, path)
        if not text:
            return False
        seen[0] = json.loads(text)
        return predicate(seen[0])

    try:
        await raw.eventually(check, node_cluster.PATIENCE)
    except TimeoutError:
        log = cluster.node.pod_log(pod, "agent")[-4000:]
        shown = json.dumps(seen[0], indent=1)[-8000:]
        raise AssertionError(f"{path} never said what was waited for: {shown}\n{log}") from None
    return seen[0]


async def figure(cluster, pod, name, **labels):
    """A figure of an agent's metrics; zero where nothing was counted under these labels yet."""
    url = f"http://{pod['status']['podIP']}:{PORT}/metrics"
    status, text = await cluster.node.command(cluster.node.busybox, "wget", "-q", "-O", "-", url)
    assert status == 0, text
    # Counters are described without their ending.
    assert re.search(rf"^# TYPE {name.removesuffix('_total')}(_total)? ", text, re.MULTILINE), text
    inner = ",".join(f'{key}="{value}"' for key, value in labels.items())
    wanted = f"{name}{{{inner}}}" if inner else name
    for line in text.splitlines():
        key, _, value = line.rpartition(" ")
        if key == wanted:
            return float(value)
    return 0.0


def kill(cluster, pod):
    """End every process of a pod's first container at once."""
    container = pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
    group = cluster.pod_group("cpu", pod) / container
    for pid in (group / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


class Agents:
    """Runs agents as pods that are made from the template of the DaemonSet."""

    def __init__(self, cluster, template):
        self._cluster = cluster
        self._template = template
        self._names = []

    async def start(self, name, change=lambda spec: None):
        """Start an agent and wait until its container runs."""
        await self.create(name, change)
        path = f"{PODS}/{name}"
        return await self._cluster.api.wait_until(path, node_cluster.runs, node_cluster.PATIENCE)

    async def create(self, name, change=lambda spec: None):
        """Create an agent's pod without waiting for it."""
        spec = copy.deepcopy(self._template["spec"])
        spec["nodeName"] = node_cluster.NODE
        spec["restartPolicy"] = "Never"
        # Restarts would hide what goes wrong; a test looks at the pages of the agent instead.
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            spec["containers"][0].pop(probe, None)
        change(spec)
        await self._cluster.api.post(PODS, {"metadata": {"name": name}, "spec": spec})
        self._names.append(name)

    async def phase(self, name, phase):
        """Wait until a pod is in a phase; returns it."""
        return await self._cluster.api.wait_until(
            f"{PODS}/{name}",
            lambda found: found["status"].get("phase") == phase,
            node_cluster.PATIENCE,
        )

    async def stop(self):
        """Delete the pods and wait until they are gone."""
        for name in self._names:
            await self._cluster.api.call("DELETE", f"{PODS}/{name}")
        for name in self._names:
            path = f"{PODS}/{name}"
            gone = node_cluster.PATIENCE
            await self._cluster.api.wait_until(path, lambda found: found is None, gone)
        self._names.clear()

    async def tells(self, pod, path, word):
        """Wait until a page holds a word."""

        async def check():
            return word in await page(self._cluster, pod, path)

        try:
            await raw.eventually(check, node_cluster.PATIENCE)
        except TimeoutError:
            said = await page(self._cluster, pod, path)
            log = self._cluster.node.pod_log(pod, "agent")
            raise AssertionError(f"no {word!r} in {path}: {said}\n{log}") from None
