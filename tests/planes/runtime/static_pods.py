"""Pods of a kubelet without an API server: they are files in a folder of the node."""

import contextlib
import json

from runtimeproxy.cri import messages
from tests import protobuf_messages as wire
from tests.planes import raw
from tests.planes.node import node_cluster
from tests.runtimeproxy import stand_in

PATIENCE = 120.0
# A filter by state: what has exited stays until the kubelet collects it, once a minute.
RUNNING = wire.field(1, wire.field(2, wire.field(1, 1)))


class Pods:
    """The pods of one node whose kubelet stands alone."""

    def __init__(self, real_node):
        self.node = real_node

    def put(self, name, **spec):
        """Let a pod exist."""
        made = node_cluster.pod(name, **spec)
        made |= {"apiVersion": "v1", "kind": "Pod"}
        made["metadata"]["namespace"] = "default"
        # The kubelet reads a file as soon as there is one.
        file = self.node.workdir / "static" / f"{name}.json"
        hidden = file.with_name(f".{name}")
        hidden.write_text(json.dumps(made))
        hidden.rename(file)

    async def emptied(self):
        """Let no pod exist any longer, and wait until none of them runs."""
        for file in (self.node.workdir / "static").glob("*.json"):
            file.unlink()

        async def gone():
            return not await self.containers()

        await raw.eventually(gone, PATIENCE)

    def said(self, name, container="main"):
        """What a container has written, all its lives together."""
        folder = self.node.workdir / "pod-logs"
        files = sorted(folder.glob(f"default_{name}-{self.node.name}_*/{container}/*.log"))
        lines = "\n".join(file.read_text() for file in files).splitlines()
        return "\n".join(line.split(" ", 3)[-1] for line in lines)

    async def until_says(self, name, words):
        """Wait until a pod has written some words."""

        async def says():
            return words in self.said(name)

        await raw.eventually(says, PATIENCE)

    @contextlib.asynccontextmanager
    async def cri(self, *, proxied=False):
        """A connection that calls the runtime as a kubelet does."""
        path = self.node.proxy_socket if proxied else self.node.containerd_socket
        made = stand_in.Kubelet(str(path))
        yield made
        made.close()

    async def containers(self, which=RUNNING):
        """The containers that run, as containerd says without the proxy."""
        async with self.cri() as cri:
            found, _ = await cri.call(messages.path("ListContainers"), which)
        return messages.read("ListContainersResponse", found[0]).containers
