"""What a cluster has between its pods and its API server, for one real node.

The API server reaches pods through a proxy that stands in the network of the node, as clusters do
whose control plane is elsewhere; pods find a Service by its name and reach what is behind it.
"""

import contextlib
import json
import random
import re
import socket
import struct

from api import resources
from tests.planes.node import node, node_network

FLAG = "--egress-selector-config-file"
DNS_PORT = 53
NAME = re.compile(r"(?P<service>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc(?:\.cluster\.local)?")
ADDRESS_RECORD, SECONDS = 1, 5


def egress(folder):
    """Write how the API server reaches pods; returns its flag and the socket of the proxy."""
    folder.mkdir()
    path = folder / "proxy.sock"
    transport = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(path)}}}
    document = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": transport}],
    }
    file = folder / "egress.json"
    file.write_text(json.dumps(document))
    return f"{FLAG}={file}", path


def proxying(path, pid):
    """The proxy: carries what the API server sends to an address that only the node knows."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))

    async def to(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        address, _, port = head.split(" ", 2)[1].rpartition(":")
        ends = await node_network.connect(pid, address, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return ends

    return node_network.carrying(listener, to)


class Names:
    """Answers of a name server: the addresses of Services."""

    def __init__(self, wire):
        self._wire = wire
        self.known = {}
        """Addresses by namespace and name."""

    def answer(self):
        """Answer what has come in."""
        with contextlib.suppress(BlockingIOError):
            while True:
                question, sender = self._wire.recvfrom(4096)
                self._wire.sendto(self._answered(question), sender)

    def _answered(self, question):
        """The response to a question; a name that is not known does not exist."""
        labels, place = [], 12
        while length := question[place]:
            labels.append(question[place + 1 : place + 1 + length].decode("ascii", "replace"))
            place += 1 + length
        end = place + 5
        (kind,) = struct.unpack_from("!H", question, place + 1)
        found = NAME.fullmatch(".".join(labels).lower())
        address = self.known.get((found["namespace"], found["service"])) if found else None
        asked = kind == ADDRESS_RECORD and address is not None
        flags = 0x8580 if address else 0x8583
        head = question[:2] + struct.pack("!HHHHH", flags, 1, int(asked), 0, 0)
        if not asked:
            return head + question[12:end]
        record = struct.pack("!HHHIH", 0xC00C, ADDRESS_RECORD, 1, SECONDS, 4)
        return head + question[12:end] + record + socket.inet_aton(address)


@contextlib.asynccontextmanager
async def naming(loop, real_node):
    """Serve names to the pods of a node."""
    wire = node_network.datagrams(real_node.pid, node.SERVICE, DNS_PORT)
    wire.setblocking(False)
    served = Names(wire)
    loop.add_reader(wire, served.answer)
    # What a kubelet that knows no name server hands to its pods.
    (real_node.workdir / "resolv.conf").write_text(f"nameserver {node.SERVICE}\n")
    try:
        yield served
    finally:
        loop.remove_reader(wire)
        wire.close()


@contextlib.asynccontextmanager
async def reachable(api, real_node, served, namespace, name):
    """Let pods reach a Service by its name and its address: any ready pod behind it answers."""
    service = await api.get(resources.SERVICES.path(namespace, name))
    address, (port,) = service["spec"]["clusterIP"], service["spec"]["ports"]
    words = ("ip", "addr", "add", f"{address}/32", "dev", "lo")
    status, said = await real_node.command(real_node.busybox, *words)
    assert status == 0, said
    served.known[namespace, name] = address

    async def to(_reader, _writer):
        ends = [one async for one in _ends(api, namespace, name)]
        if not ends:
            raise ConnectionRefusedError(name)
        return await node_network.connect(real_node.pid, *random.choice(ends))

    async with node_network.carrying(real_node.listener_at(address, port["port"]), to):
        yield


async def _ends(api, namespace, name):
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    label = f"kubernetes.io/service-name={name}"
    for piece in (await api.get(path, labelSelector=label))["items"]:
        for end in piece["endpoints"] or ():
            if end["conditions"].get("ready"):
                yield end["addresses"][0], piece["ports"][0]["port"]
