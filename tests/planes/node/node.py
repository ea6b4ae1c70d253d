"""A whole real node in namespaces of its own: kubelet, containerd, runc and real control groups.

The node has its own processes, mounts, network and view of the control groups, so that nothing
of it is left on the machine when its process 1 ends, and that happens at the latest with the
test process. Its control groups are removed afterwards.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import sys

import yarl

from process.runtime import clock as clocks
from simulator.processes import children, credentials
from tests.planes import raw
from tests.planes.node import node_files, node_groups, node_network

ADDRESS = "10.96.0.1"
SERVICE = "10.0.0.1"
PATIENCE = 90.0
IMAGE = node_files.BUSYBOX
SCRIPT = pathlib.Path(__file__).parent / "node_root.sh"
VIEW_SCRIPT = pathlib.Path(__file__).parent / "node_view.sh"
# What the processors worked for this node alone, as seen in the node.
STAT = "/run/machine/stat"
CONTAINERD, NRI = "/run/containerd/containerd.sock", "/run/nri/nri.sock"
ROOT = pathlib.Path(__file__).parents[3]


def user(name):
    """Who the kubelet of a node is."""
    return credentials.User(f"system:node:{name}", ("system:nodes",))


class Node:
    """One node; `groups` is where this machine's control groups become those of the node."""

    def __init__(self, name, workdir, programs, *, proxied=False):
        self.name = name
        self.workdir = workdir
        self.groups = node_groups.Groups()
        self._programs = programs
        self._children = {}
        self.pid = 0
        self.proxy_socket = workdir / "proxy.sock" if proxied else None
        """Where the CRI proxy listens, None where the kubelet talks to containerd itself."""

    @property
    def containerd_socket(self):
        """The socket of containerd, as this machine sees it."""
        return pathlib.Path(f"/proc/{self.pid}/root{CONTAINERD}")

    @property
    def proxy_pid(self):
        """The process of the CRI proxy, as this machine sees it."""
        return _only_child(self._children["proxy"].pid)

    def group(self, hierarchy, *parts):
        """The folder of a group of the node in one hierarchy, as this machine sees it."""
        return node_groups.ROOT.joinpath(hierarchy, self.groups.name, *parts)

    @property
    def busybox(self):
        """The program that every test image is made of."""
        return self._programs.busybox

    def log(self, name):
        """What containerd, the kubelet or a command said."""
        return (self.workdir / f"{name}.log").read_text(errors="replace")

    def pod_log(self, pod, container):
        """What a container of a pod has written, all its lives together."""
        meta = pod["metadata"]
        folder = f"{meta['namespace']}_{meta['name']}_{meta['uid']}"
        files = sorted((self.workdir / "pod-logs" / folder / container).glob("*.log"))
        # Each line begins with a time, the stream and whether it is whole.
        lines = "\n".join(f.read_text(errors="replace") for f in files).splitlines()
        return "\n".join(line.split(" ", 3)[-1] for line in lines)

    async def start_root(self):
        """Make the namespaces and their process 1."""
        unshare = "unshare --mount --net --pid --uts --ipc --cgroup --fork --kill-child"
        words = (self._programs.busybox, self.name, ADDRESS, SERVICE, self.workdir)
        line = f"exec {unshare} --propagation private sh {SCRIPT} {' '.join(map(str, words))}"
        child = await self._run("root", f"{self.groups.entering()}; {line}")

        async def is_ready():
            return (self.workdir / "root-ready").exists()

        await children.ready(child, is_ready, clock=clocks.SystemClock())
        self.pid = _only_child(child.pid)
        await self._inside("view", "sh", VIEW_SCRIPT, STAT)

    def listener(self, port):
        """A socket that listens at the address of the API server's Service in the node."""
        return self.listener_at(SERVICE, port)

    def listener_at(self, address, port):
        """A socket that listens at an address of the node."""
        return node_network.listen(self.pid, address, port)

    async def start_containerd(self):
        configuration = self.workdir / "containerd.toml"
        (self.workdir / "cni").mkdir()
        (self.workdir / "cni" / "10-pods.conflist").write_text(node_files.network(self.workdir))
        snapshotter = "overlayfs" if _has_overlay() else "native"
        configuration.write_text(node_files.containerd(self.workdir, self._programs, snapshotter))
        await self.run_containerd()
        for image, command in (
            (node_files.SANDBOX, ["sleep", "2147483647"]),
            (node_files.BUSYBOX, ["sh"]),
        ):
            file = self.workdir / "image.tar"
            node_files.archive(file, image, self._programs.busybox, command)
            await self.load(file)
            file.unlink()

    async def run_containerd(self):
        """Run containerd, also again: it finds the containers that run."""
        program = self._programs.containerd / "containerd"
        configuration = self.workdir / "containerd.toml"
        child = await self._inside("containerd", program, "--config", configuration)

        async def answers():
            done, _ = await self.command(self._ctr, "version")
            return done == 0

        await children.ready(child, answers, clock=clocks.SystemClock())

    async def start_proxy(self):
        """Run the CRI proxy, as a service of the host; also again."""
        (self.workdir / "hookserver.d").mkdir(exist_ok=True)
        child = await self.start_service(
            *("proxy", "runtime-proxy"),
            f"--koord-runtimeproxy-endpoint={self.proxy_socket}",
            f"--remote-runtime-service-endpoint={CONTAINERD}",
            f"--hook-server-folder={self.workdir}/hookserver.d",
        )

        async def listens():
            return self.proxy_socket.exists()

        await children.ready(child, listens, clock=clocks.SystemClock())

    async def start_service(self, name, *words):
        """Run a command of ours as a service of the host, also again."""
        return await self.start_module(name, "cli.main", *words)

    async def start_module(self, name, module, *words):
        """Run a module of Python as a service of the host, also again."""
        python = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", module)
        return await self._inside(name, *python, *words)

    async def kill(self, name):
        """End containerd, the kubelet, the proxy or the agent at once; pods run on."""
        await self._children[name].kill()

    async def load(self, archive):
        """Import a docker archive."""
        words = ("--namespace", "k8s.io", "images", "import", "--local", archive)
        status, said = await self.command(self._ctr, *words)
        assert status == 0, f"import of {archive}: {said}"

    async def configure_kubelet(self, ca, token):
        server = f"https://{SERVICE}:443"
        login = self.workdir / "kubelet-login.json"
        login.touch(mode=0o600)
        login.write_text(json.dumps(credentials.kubeconfig(server, ca, token)))
        (self.workdir / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        (self.workdir / "static").mkdir()
        (self.workdir / "kubelet.json").write_text(
            node_files.kubelet(self.workdir, self.proxy_socket or CONTAINERD)
        )

    async def start_kubelet(self):
        """Start the kubelet, also again: it finds the pods that run."""
        await self._inside(
            "kubelet",
            self._programs.kubelet,
            f"--config={self.workdir}/kubelet.json",
            f"--kubeconfig={self.workdir}/kubelet-login.json",
            f"--root-dir={self.workdir}/kubelet",
            f"--cert-dir={self.workdir}/kubelet-certificates",
            f"--hostname-override={self.name}",
            f"--node-ip={ADDRESS}",
            "--v=2",
        )

    async def start_lone_kubelet(self):
        """Start a kubelet without an API server: its pods are files, and any client may ask it."""
        (self.workdir / "static").mkdir()
        (self.workdir / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        configuration = json.loads(
            node_files.kubelet(self.workdir, self.proxy_socket or CONTAINERD)
        )
        configuration |= {
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "fileCheckFrequency": "1s",
        }
        (self.workdir / "kubelet.json").write_text(json.dumps(configuration))
        await self._inside(
            "kubelet",
            self._programs.kubelet,
            f"--config={self.workdir}/kubelet.json",
            f"--root-dir={self.workdir}/kubelet",
            f"--cert-dir={self.workdir}/kubelet-certificates",
            f"--hostname-override={self.name}",
            "--v=2",
        )

    async def kill_kubelet(self):
        """End the kubelet at once; its pods run on."""
        await self._children["kubelet"].kill()

    async def registered(self, api):
        """Wait until the node is ready for pods."""
        kubelet = self._children["kubelet"]

        async def is_ready():
            answer = await api.call("GET", f"/api/v1/nodes/{self.name}")
            if answer.status != 200:
                return False
            conditions = answer.body["status"].get("conditions", ())
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            return ready and not answer.body["spec"].get("taints")

        await children.ready(
            kubelet, is_ready, clock=clocks.SystemClock(), timeout_seconds=PATIENCE
        )

    async def command(self, *words):
        """Run a command in the node; return its status and what it said."""
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", self._line(*words)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        return process.returncode, said.decode(errors="replace")

    async def page(self, address, port, path):
        """What a page of a pod says, whatever its status, as seen from the node."""
        request = f"printf 'GET {path} HTTP/1.0\\r\\n\\r\\n'"
        line = f"{request} | {self._programs.busybox} nc {address} {port}"
        _, said = await self.command("sh", "-c", line)
        return said.partition("\r\n\r\n")[2]

    async def stop(self):
        """End everything; the namespaces and all that is in them go with their process 1."""
        for name in ("kubelet", "agent", "relay", "proxy", "containerd", "view", "root"):
            if name in self._children:
                await self._children[name].kill()
        await self.groups.remove()
        shutil.rmtree(self.workdir / "containerd", ignore_errors=True)
        shutil.rmtree(self.workdir / "kubelet", ignore_errors=True)

    @property
    def _ctr(self):
        return self._programs.containerd / "ctr"

    def _line(self, *words):
        """A line of shell that becomes a command inside the node."""
        inside = ("nsenter", f"--target={self.pid}", "--all", "--wdns=/", *words)
        return f"{self.groups.entering()}; exec {shlex.join(map(str, inside))}"

    async def _inside(self, name, *words):
        return await self._run(name, self._line(*words))

    async def _run(self, name, line):
        programs = self._programs
        path = f"{programs.containerd}:{programs.runc.parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
        command = ("env", f"PATH={path}", "sh", "-c", line)
        self._children[name] = await children.start(name, command, self.workdir)
        return self._children[name]


@contextlib.asynccontextmanager
async def running(name, workdir, programs, plane):
    """A ready node of a real control plane, which knows the user of its kubelet."""
    await node_groups.remove_stale()
    node = Node(name, workdir, programs)
    workdir.mkdir()
    server = yarl.URL(plane.server)
    try:
        node.groups.create()
        await node.start_root()
        async with (
            node_network.forwarding(node.listener(443), server.host, server.port),
            raw.connected(plane.server, plane.ca, plane.token) as api,
        ):
            await node.start_containerd()
            await node.configure_kubelet(plane.ca, plane.binaries.tokens[user(name).name])
            await node.start_kubelet()
            await node.registered(api)
            yield node
    finally:
        await node.stop()


def _has_overlay():
    return "overlay" in pathlib.Path("/proc/filesystems").read_text()


def _only_child(pid):
    listed = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return int(listed.split()[0])
