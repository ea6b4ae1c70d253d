"""Nodes of several shapes: their zones, cores, GPUs and RDMA cards as an agent reports them."""

import dataclasses
import json

from api import names, resources

GIB = 1 << 30
GPU_MEMORY = 80 * GIB


@dataclasses.dataclass(frozen=True)
class Shape:
    """One machine; NUMA nodes are divided evenly among sockets, switches among NUMA nodes."""

    sockets: int = 1
    zones: int = 1
    """NUMA nodes of each socket."""
    cores: int = 4
    """Physical cores of each NUMA node."""
    threads: int = 2
    gpus: int = 0
    switches: int = 1
    """PCIe switches that hold the GPUs and the cards."""
    cards: int = 0
    """RDMA cards."""
    fpgas: int = 0
    reserved: str = ""
    """CPUs that the kubelet keeps for the system."""
    policy: str = ""
    """Topology policy of the node."""

    @property
    def nodes(self):
        return self.sockets * self.zones

    @property
    def cpus(self):
        return self.nodes * self.cores * self.threads

    def zone_of_switch(self, switch):
        return switch * self.nodes // self.switches

    def cpu_table(self):
        """Siblings of a core are as many ids apart as there are cores, as Linux numbers them."""
        whole = self.nodes * self.cores
        return [
            {
                "id": cpu,
                "core": cpu % whole,
                "socket": cpu % whole // self.cores // self.zones,
                "node": cpu % whole // self.cores,
            }
            for cpu in range(self.cpus)
        ]

    def allocatable(self):
        """What the node offers, with what the manager sums up of its devices."""
        amounts = {"cpu": str(self.cpus), "memory": f"{8 * self.cpus}Gi"}
        if self.gpus:
            amounts |= {
                names.GPU: str(100 * self.gpus),
                names.GPU_CORE: str(100 * self.gpus),
                names.GPU_MEMORY_RATIO: str(100 * self.gpus),
                names.GPU_MEMORY: str(GPU_MEMORY * self.gpus),
                names.GPU_SHARED: str(100 * self.gpus),
            }
        for name, count in ((names.RDMA, self.cards), (names.FPGA, self.fpgas)):
            if count:
                amounts[name] = str(100 * count)
        return amounts


SHAPES = {
    # Two sockets of two NUMA nodes each, hyper-threads, CPUs that the kubelet keeps.
    "zones": Shape(sockets=2, zones=2, reserved="0,16"),
    "aligned": Shape(sockets=2, policy="SingleNUMANode"),
    "plain": Shape(cores=8, threads=1),
    "eight": Shape(sockets=2, cores=8, gpus=8, switches=2, cards=4),
    "pair": Shape(cores=8, gpus=2, cards=1),
    # Everything has to come from one NUMA node.
    "joined": Shape(sockets=2, gpus=2, switches=2, cards=2, fpgas=2, policy="SingleNUMANode"),
}


def topology(name, shape):
    """The NodeResourceTopology of a node."""
    notes = {"node.koordinator.sh/cpu-topology": {"detail": shape.cpu_table()}}
    if shape.reserved:
        policy = {"policy": "static", "options": {}, "reservedCPUs": shape.reserved}
        notes["kubelet.koordinator.sh/cpu-manager-policy"] = policy
    amounts = {"cpu": str(shape.cores * shape.threads), "memory": f"{8 * shape.cores * 2}Gi"}
    rows = [
        {"name": resource, "capacity": text, "allocatable": text, "available": text}
        for resource, text in amounts.items()
    ]
    return {
        "apiVersion": resources.NODE_RESOURCE_TOPOLOGIES.api_version,
        "kind": resources.NODE_RESOURCE_TOPOLOGIES.kind,
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/managed-by": "Koordinator"},
            "annotations": {key: json.dumps(value) for key, value in notes.items()},
        },
        "topologyPolicies": ["None"],
        "zones": [
            {"name": f"node-{node}", "type": "Node", "resources": rows}
            for node in range(shape.nodes)
        ],
    }


def device(name, shape, *, sick=()):
    """The Device of a node; `sick` are minors of GPUs that fail."""
    found = []
    for minor in range(shape.gpus):
        switch = minor * shape.switches // shape.gpus
        amounts = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100"}
        found.append(
            {
                **_plugged("gpu", minor, f"GPU-{name}-{minor}", switch, shape),
                "health": minor not in sick,
                "resources": {**amounts, names.GPU_MEMORY: str(GPU_MEMORY)},
            }
        )
    adapters = (("rdma", names.RDMA, shape.cards), ("fpga", names.FPGA, shape.fpgas))
    for bus, (kind, resource, count) in enumerate(adapters, 1):
        for minor in range(count):
            switch = minor * shape.switches // count
            card = _plugged(kind, minor, f"0000:{bus}{minor}:00.0", switch, shape)
            found.append({**card, "health": True, "resources": {resource: "100"}})
    return {
        "apiVersion": resources.DEVICES.api_version,
        "kind": resources.DEVICES.kind,
        "metadata": {"name": name},
        "spec": {"devices": found},
    }


def _plugged(kind, minor, ident, switch, shape):
    zone = shape.zone_of_switch(switch)
    place = {"socketID": zone // shape.zones, "nodeID": zone, "pcieID": f"pcie-{switch}"}
    return {"type": kind, "minor": minor, "id": ident, "topology": place}
