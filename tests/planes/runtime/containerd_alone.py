"""A real containerd with runc and control groups of its own, without kubelet and control plane.

It is called by CRI, as a kubelet calls it, and asks plug-ins by NRI.
"""

import asyncio
import contextlib
import dataclasses
import os
import shutil

from agent.nri import protobuf
from process.runtime import clock as clocks
from runtimeproxy import unary
from simulator.processes import children
from tests.planes.node import node_files, node_groups

PATIENCE = 60.0
EXITED = 2
ON_THE_NODE = 2
"""The network of the host."""
CRI = protobuf.classes(
    {
        "RunPodSandboxRequest": "config PodSandboxConfig 1",
        "PodSandboxConfig": (
            "metadata PodSandboxMetadata 1, log_directory string 3, labels string{} 6, "
            "annotations string{} 7, linux LinuxPodSandboxConfig 8"
        ),
        "PodSandboxMetadata": "name string 1, uid string 2, namespace string 3",
        "LinuxPodSandboxConfig": (
            "cgroup_parent string 1, security_context LinuxSandboxSecurityContext 2"
        ),
        "LinuxSandboxSecurityContext": "namespace_options NamespaceOption 1",
        "NamespaceOption": "network int32 1",
        "RunPodSandboxResponse": "pod_sandbox_id string 1",
        "CreateContainerRequest": (
            "pod_sandbox_id string 1, config ContainerConfig 2, sandbox_config PodSandboxConfig 3"
        ),
        "ContainerConfig": (
            "metadata ContainerMetadata 1, image ImageSpec 2, command string[] 3, "
            "mounts Mount[] 7, log_path string 11, linux LinuxContainerConfig 15"
        ),
        "Mount": "container_path string 1, host_path string 2, readonly bool 3",
        "ContainerMetadata": "name string 1",
        "ImageSpec": "image string 1",
        "LinuxContainerConfig": "resources LinuxContainerResources 1",
        "LinuxContainerResources": (
            "cpu_period int64 1, cpu_quota int64 2, cpu_shares int64 3, "
            "memory_limit_in_bytes int64 4, oom_score_adj int64 5"
        ),
        "CreateContainerResponse": "container_id string 1",
        "ContainerRequest": "container_id string 1",
        "SandboxRequest": "pod_sandbox_id string 1",
        "Empty": "",
        "ContainerStatusResponse": "status ContainerStatus 1",
        "ContainerStatus": "state int32 3, exit_code int32 7, reason string 11, message string 12",
    }
)
LIMITS = ("cpu/cpu.shares", "cpu/cpu.cfs_quota_us", "memory/memory.limit_in_bytes")
OWN = (*LIMITS, "cpuset/cpuset.cpus", "cpu/cpu.cfs_burst_us")
BLOCKS = "blkio/blkio.throttle.read_iops_device"
HOST = "/host-cgroups"
"""Where containers find all cgroups of the machine, that of their pod among them."""
OOM_SCORE = "900"
"""What containers are requested with."""
POLICY = 41
"""Which field of /proc/PID/stat is the scheduling policy."""


@dataclasses.dataclass(frozen=True)
class Seen:
    """What the first process of a container has read, as soon as it ran."""

    limits: tuple
    """CPU shares, CFS quota and memory limit of the container."""
    cpus: str
    burst: str
    of_pod: tuple
    """CPU shares, CFS quota and memory limit of the pod."""
    blocks: tuple
    """The limits of block I/O of the pod."""
    policy: str
    oom_score: str
    environment: tuple


def reading(group):
    """A first process that reads the files of a container and of its pod's cgroup."""
    own = [f"/sys/fs/cgroup/{name}" for name in OWN]
    above = [f"{HOST}/{folder}/{group}/{name}" for folder, _, name in map(_parts, LIMITS)]
    folder, _, name = _parts(BLOCKS)
    files = [*own, *above, "/proc/self/stat", "/proc/self/oom_score_adj"]
    return ("cat", *files, f"{HOST}/{folder}/{group}/{name}", "/proc/self/environ")


def _parts(path):
    return path.partition("/")


def read(lines):
    """What a first process has read, from the lines that it said."""
    count = len(OWN) + len(LIMITS)
    plain, (stat, score), rest = lines[:count], lines[count : count + 2], lines[count + 2 :]
    blocks = tuple(line for line in rest if line[:1].isdigit())
    return Seen(
        limits=tuple(plain[:3]),
        cpus=plain[3],
        burst=plain[4],
        of_pod=tuple(plain[5:]),
        blocks=blocks,
        # The name of the program stands in brackets before the third field.
        policy=stat.rpartition(")")[2].split()[POLICY - 3],
        oom_score=score,
        environment=tuple("\n".join(rest[len(blocks) :]).split("\0")),
    )


@dataclasses.dataclass(frozen=True)
class Sandbox:
    """A pod that runs."""

    identity: str
    uid: str
    group: str
    config: object


class Containerd:
    """One containerd; its sockets lie in its folder."""

    def __init__(self, folder, programs):
        self.folder, self.nri = folder, folder / "nri.sock"
        self.groups = node_groups.Groups()
        self._programs = programs
        self._target = unary.Target(str(folder / "c.sock"), clocks.SystemClock())
        self._sandboxes = []
        self._child = None

    async def start(self):
        """Start it, also again, and wait until it answers."""
        programs = self._programs
        path = f"{programs.containerd}:{programs.runc.parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
        program = programs.containerd / "containerd"
        line = f"{self.groups.entering()}; exec {program} --config {self.folder}/containerd.toml"
        self._child = await children.start(
            "containerd", ("env", f"PATH={path}", "sh", "-c", line), self.folder
        )

        async def answers():
            with contextlib.suppress(unary.CallError):
                await self._target.call("/runtime.v1.RuntimeService/Version", b"", 5.0)
                return True
            return False

        await children.ready(self._child, answers, clock=clocks.SystemClock())

    async def kill(self):
        """End it at once; its containers run on."""
        await self._child.kill()

    async def prepare(self):
        """Write its configuration and load the images."""
        text = node_files.containerd(self.folder, self._programs, "native")
        for before, after in (
            ("/run/containerd/containerd.sock", self.folder / "c.sock"),
            ('"/run/containerd"', f'"{self.folder}/run"'),
            ("/run/nri/nri.sock", self.nri),
        ):
            text = text.replace(before, str(after))
        (self.folder / "containerd.toml").write_text(text)
        (self.folder / "cni").mkdir()
        self.groups.create()
        await self.start()
        for image, command in (
            (node_files.SANDBOX, ["sleep", "2147483647"]),
            (node_files.BUSYBOX, ["sh"]),
        ):
            file = self.folder / "image.tar"
            node_files.archive(file, image, self._programs.busybox, command)
            words = ("--namespace", "k8s.io", "images", "import", "--local", str(file))
            ctr = (self._programs.containerd / "ctr", "--address", self.folder / "c.sock")
            process = await asyncio.create_subprocess_exec(
                *map(str, ctr), *words, stdout=asyncio.subprocess.DEVNULL
            )
            assert await process.wait() == 0

    async def stop(self):
        """End all pods and the runtime."""
        for one in self._sandboxes:
            for method in ("StopPodSandbox", "RemovePodSandbox"):
                with contextlib.suppress(unary.CallError):
                    asked = CRI["SandboxRequest"](pod_sandbox_id=one.identity)
                    await self.call(method, asked, "Empty")
        if self._child is not None:
            await self.kill()
        self._target.close()
        await self.groups.remove()
        shutil.rmtree(self.folder / "containerd", ignore_errors=True)

    async def call(self, method, request, response):
        """Call the runtime as a kubelet does."""
        data = await self._target.call(
            f"/runtime.v1.RuntimeService/{method}", request.to_bytes(), PATIENCE
        )
        return CRI[response].from_bytes(data)

    def group(self, kubernetes_qos, uid):
        """The cgroup of a pod below those of this containerd."""
        parts = {"Burstable": "/burstable", "BestEffort": "/besteffort", "Guaranteed": ""}
        return f"{self.groups.name}/kubepods{parts[kubernetes_qos]}/pod{uid}"

    async def run_pod(self, uid, kubernetes_qos, labels=None, annotations=None):
        """Run the sandbox of a pod."""
        config = CRI["PodSandboxConfig"](
            metadata=CRI["PodSandboxMetadata"](name=f"name-{uid}", uid=uid, namespace="default"),
            log_directory=str(self.folder / "logs" / uid),
            labels=labels or {},
            annotations=annotations or {},
        )
        group = self.group(kubernetes_qos, uid)
        config.linux.cgroup_parent = f"/{group}"
        config.linux.security_context.namespace_options.network = ON_THE_NODE
        asked = CRI["RunPodSandboxRequest"](config=config)
        answer = await self.call("RunPodSandbox", asked, "RunPodSandboxResponse")
        made = Sandbox(answer.pod_sandbox_id, uid, group, config)
        self._sandboxes.append(made)
        return made

    async def start_container(self, pod, name, command):
        """Create and start a container as a kubelet does for one that requests nothing."""
        config = CRI["ContainerConfig"](
            metadata=CRI["ContainerMetadata"](name=name),
            image=CRI["ImageSpec"](image=node_files.BUSYBOX),
            command=list(command),
            mounts=[CRI["Mount"](container_path=HOST, host_path="/sys/fs/cgroup", readonly=True)],
            log_path=f"{name}.log",
        )
        asked = config.linux.resources
        asked.cpu_period, asked.cpu_shares, asked.oom_score_adj = 100_000, 2, int(OOM_SCORE)
        request = CRI["CreateContainerRequest"](
            pod_sandbox_id=pod.identity, config=config, sandbox_config=pod.config
        )
        made = await self.call("CreateContainer", request, "CreateContainerResponse")
        one = CRI["ContainerRequest"](container_id=made.container_id)
        await self.call("StartContainer", one, "Empty")
        return one

    async def born(self, pod, name):
        """Run a container whose first process reads its cgroups; return what it saw."""
        return read(await self.said(pod, name, reading(pod.group)))

    async def said(self, pod, name, command):
        """Run a container to its end; return the lines that it has written."""
        one = await self.start_container(pod, name, command)
        async with asyncio.timeout(PATIENCE):
            # The runtime tells of an end only to those that ask.
            while True:
                found = await self.call("ContainerStatus", one, "ContainerStatusResponse")
                if found.status.state == EXITED:
                    break
                await asyncio.sleep(0.01)
        status = found.status
        text = (self.folder / "logs" / pod.uid / f"{name}.log").read_text(errors="replace")
        assert status.exit_code == 0, (status.reason, status.message, text)
        await self.call("RemoveContainer", one, "Empty")
        return [line.split(" ", 3)[-1] for line in text.splitlines()]


@contextlib.asynccontextmanager
async def running(folder, programs):
    """A containerd that answers."""
    await node_groups.remove_stale()
    folder.mkdir()
    made = Containerd(folder, programs)
    try:
        await made.prepare()
        yield made
    finally:
        await made.stop()
