"""Pods that stand on the real node from before its agent may change anything until it is gone.

What the agent has to write for them is worked out here by hand, from what they ask for.
"""

import dataclasses
import json
import resource
import subprocess

from api import names
from tests.planes import raw
from tests.planes.node import node_agents, node_cluster, node_groups, node_tree

MEBIBYTE = 1 << 20
ONLINE = {"koordinator.sh/qosClass": "LS"}
EXCLUSIVE = {"koordinator.sh/qosClass": "LSR"}
NEVER_EVICTED = {names.ANNOTATION_EVICTION_POLICY: "[]"}
HELD = 24
NAMES = ("online", "lent", "bound")
BY_HAND = "by-hand"
"""The scheduler of a pod that the test binds itself."""
BEAT_SECONDS = 0.06
"""Cpu time of one beat: twice what the limit of 300m allows in one period of 100 ms."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """The pods, the tree before, and the values that the agent has to write."""

    before: dict
    pods: dict
    cpus: tuple[int, ...]
    """The cpus of the node; the last one belongs to the pod `bound`."""

    def group(self, pod, container=None):
        """The path of a group as the agent calls it; `pause` is the container nobody asked for."""
        found = self.pods[pod]
        part = {"BestEffort": "besteffort/", "Burstable": "burstable/", "Guaranteed": ""}
        group = f"kubepods/{part[found['status']['qosClass']]}pod{found['metadata']['uid']}"
        if container is None:
            return group
        return f"{group}/{container_id(found, container)}"

    def batch(self):
        """Shares, quota and memory limit: 150m and 96 MiB, of which `main` asks for two thirds."""
        amounts = {None: (150, 96), "main": (100, 64), "beside": (50, 32)}
        found = {}
        for container, (milli, mebibytes) in amounts.items():
            group = self.group("lent", container)
            found["cpu-shares", group] = str(milli * 1024 // 1000)
            found["cpu-quota", group] = str(milli * 100)
            found["memory-limit", group] = str(mebibytes * MEBIBYTE)
        return found

    def cpusets(self):
        """The bound pod alone on the last cpu and without a quota, online pods on the others."""
        first, last = self.cpus[:-1], str(self.cpus[-1])
        shared = str(first[0]) if len(first) == 1 else f"{first[0]}-{first[-1]}"
        return {
            ("cpuset", self.group("bound", "main")): last,
            ("cpu-quota", self.group("bound", "main")): "-1",
            ("cpu-quota", self.group("bound")): "-1",
            ("cpuset", self.group("online", "main")): shared,
        }

    def bursts(self):
        """Ten times the limit of 300m was asked for; a mainline kernel takes the quota itself."""
        group = self.group("online")
        return {
            ("cpu-burst", group): "30000",
            ("cpu-burst", self.group("online", "main")): "30000",
        }


def container_id(pod, name):
    """The id of a running container."""
    statuses = pod["status"]["containerStatuses"]
    (found,) = (one["containerID"] for one in statuses if one["name"] == name)
    return found.partition("://")[2]


async def start(cluster):
    """Create the pods and return them with the tree as their kubelet left it."""
    cpus = tuple(sorted(cpus_of(cluster)))
    small = {"cpu": "300m", "memory": "64Mi"}
    beat = f"while :; do {counting(cluster, BEAT_SECONDS)}; sleep 0.35; done"
    await cluster.create(
        "online",
        command=beat,
        labels=ONLINE,
        resources={"requests": small, "limits": small},
        priorityClassName="koord-prod",
    )
    whole = {"cpu": "1", "memory": "32Mi"}
    await cluster.create(
        "bound",
        command=f"while :; do {counting(cluster, 0.02)}; sleep 0.5; done",
        labels=EXCLUSIVE,
        resources={"requests": whole, "limits": whole},
        priorityClassName="koord-prod",
        schedulerName=BY_HAND,
    )
    await bind(cluster, "bound", {"cpuset": str(cpus[-1])})
    large, little = {"cpu": "100m", "memory": "64Mi"}, {"cpu": "50m", "memory": "32Mi"}
    await cluster.create(
        "lent",
        command=f"dd if=/dev/zero of=/memory/held bs=1M count={HELD}; sleep 100000",
        labels=node_cluster.ENABLE,
        annotations=NEVER_EVICTED,
        resources={"requests": large, "limits": large},
        container={"volumeMounts": [{"name": "memory", "mountPath": "/memory"}]},
        volumes=[{"name": "memory", "emptyDir": {"medium": "Memory"}}],
        beside=[node_cluster.shell("beside", resources={"requests": little, "limits": little})],
    )
    pods = {name: await cluster.running(name) for name in NAMES}
    return Standing(node_tree.snapshot(cluster.node), pods, cpus)


async def bind(cluster, name, status):
    """Bind a pod as the extender does: the allocation is part of the Binding.

    Admission takes it off a new pod, and the kubelet starts none before its binding.
    """
    body = {
        "metadata": {
            "name": name,
            "annotations": {names.ANNOTATION_RESOURCE_STATUS: json.dumps(status)},
        },
        "target": {"kind": "Node", "name": node_cluster.NODE},
    }
    path = f"{node_cluster.PODS}/{name}"
    await cluster.api.post(f"{path}/binding", body)
    found = await cluster.api.get(path)
    assert names.ANNOTATION_RESOURCE_STATUS in found["metadata"]["annotations"]


def cpus_of(cluster):
    """The cpus of the node."""
    return parsed((cluster.node.group("cpuset") / "cpuset.cpus").read_text().strip())


def parsed(text):
    """The cpus of a list such as `0-2,5`."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def counting(cluster, seconds):
    """Shell words that take about so much cpu time in a container of this machine."""
    many, busybox = 100_000, cluster.node.busybox
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([busybox, "sh", "-c", _count_to(many)], check=True)
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return _count_to(max(1, int(many * seconds / took)))


def _count_to(number):
    return f"n=0; while [ $n -lt {number} ]; do n=$((n+1)); done"


def values(cluster, expected):
    """What stands in the files behind expected values, by the same keys."""
    files = {
        "cpu-shares": ("cpu", "cpu.shares"),
        "cpu-quota": ("cpu", "cpu.cfs_quota_us"),
        "cpu-burst": ("cpu", "cpu.cfs_burst_us"),
        "cpuset": ("cpuset", "cpuset.cpus"),
        "memory-limit": ("memory", "memory.limit_in_bytes"),
    }
    found = {}
    for role, group in expected:
        hierarchy, name = files[role]
        found[role, group] = cluster.node.group(hierarchy, group, name).read_text().strip()
    return found


async def held(cluster, standing):
    """Let the agent hold the class back and set every limit; wait until all of it stands."""
    await cluster.strategy("cpu-burst", policy="auto")
    await cluster.strategy(**node_cluster.HOLD)
    expected = {**standing.cpusets(), **standing.bursts()}

    async def stands():
        quota = node_groups.figure(cluster.class_group("cpu"), "cpu.cfs_quota_us")
        return quota > 0 and values(cluster, expected) == expected

    try:
        await raw.eventually(stands, node_cluster.PATIENCE)
    except TimeoutError:
        now = values(cluster, expected)
        differ = {key: (text, now[key]) for key, text in expected.items() if now[key] != text}
        quota = node_groups.figure(cluster.class_group("cpu"), "cpu.cfs_quota_us")
        pod = await cluster.pod_of("agent")
        said = await node_agents.page(cluster, pod, "/debug/audit")
        raise AssertionError(f"quota of the class {quota}; not so: {differ}\n{said}") from None


async def let_go(cluster, standing):
    """Let the agent hold and burst nothing, and wait until that is so.

    Otherwise the next test takes what still stands for what it asked for itself.
    """
    await cluster.strategy(enable=False)
    await cluster.strategy("cpu-burst", policy="none")
    none = dict.fromkeys(standing.bursts(), "0")

    async def gone():
        quota = node_groups.figure(cluster.class_group("cpu"), "cpu.cfs_quota_us")
        return quota == -1 and values(cluster, none) == none

    await raw.eventually(gone, node_cluster.PATIENCE)
