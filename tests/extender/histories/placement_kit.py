"""What pods are given in random histories: CPUs and devices of two nodes whose devices fail."""

import collections
import itertools
import json

from api import names
from api.koordinator import devices
from api.wire import quantity
from domain.devices import inventory
from domain.numa import node_topology
from extender import registry
from extender.framework import assembly, pipeline, views
from extender.state import deltas, records
from tests.extender.clusters import device_cluster, numa_cluster
from tests.extender.histories import histories

JOINT = {names.ANNOTATION_DEVICE_JOINT: '{"deviceTypes":["gpu","rdma"]}'}
FUNCTION = {names.ANNOTATION_DEVICE_HINT: '{"rdma":{"vfSelector":{}}}'}
SPREAD = {numa_cluster.SPEC: '{"requiredCPUBindPolicy":"SpreadByPCPUs"}'}
ALIGNED = {numa_cluster.NUMA_SPEC: '{"numaTopologyPolicy":"SingleNUMANode"}'}
KINDS = (
    ({"cpu": "2"}, {}),
    ({"cpu": "4"}, {}),
    ({"cpu": "2"}, SPREAD),
    ({"cpu": "2", names.GPU: "50"}, ALIGNED),
    ({names.GPU: "40"}, {}),
    ({names.GPU: "30"}, {}),
    ({names.GPU: "30"}, {}),
    ({names.GPU_MEMORY: "30Gi"}, {}),
    ({names.NVIDIA_GPU: "2"}, {}),
    ({names.GPU: "100", names.RDMA: "20"}, JOINT),
    ({names.RDMA: "10"}, FUNCTION),
)
MOST = {names.GPU_MEMORY: 80 << 30}
CPUS = 8
TOPOLOGY = node_topology.read(numa_cluster.topology(cores=2))


def machine(node, mask):
    """A Device of two GPUs and two cards, each with two virtual functions."""
    gpus = [
        device_cluster.gpu(m, numa=m, pcie=str(m), health=bool(mask >> m & 1)) for m in range(2)
    ]
    cards = [device_cluster.rdma(m, numa=m, pcie=str(m)) for m in range(2)]
    for minor, card in enumerate(cards):
        functions = [{"minor": -1, "busID": f"0000:{minor}1:00.{n}"} for n in range(2)]
        card["vfGroups"] = [{"labels": {}, "vfs": functions}]
    return inventory.read(devices.read_device(device_cluster.device(node, *gpus, *cards)))


class Placement:
    """NodeNUMAResource and DeviceShare, over what agents report."""

    pods = tuple("abcdefgh")

    def __init__(self):
        self.codecs = self.plugins()
        self.masks = dict.fromkeys(histories.NODES, 3)
        self.reported = {name: machine(name, 3) for name in histories.NODES}

    def projector(self):
        return records.Projector(None, self.codecs, registry.inputs(self.codecs))

    def plugins(self):
        # Packed, so that processes that do not know of each other choose the same devices.
        packed = device_cluster.plugin(scoringStrategy={"type": "MostAllocated"})
        return (numa_cluster.plugin(), packed)

    def line(self, plugins):
        return assembly.assemble(lambda _: list(plugins), {one.name: 1 for one in plugins})

    def begin(self, books):
        figures = (("cpu", CPUS * 1000), ("memory", 64 << 30))
        for name in histories.NODES:
            books.node(None, records.NodeRecord(name, figures, figures, uid=name))
            change = deltas.ObjectDelta(deltas.NODE_TOPOLOGY, name, None, TOPOLOGY, name)
            books.cluster.apply(change)
            self.hear(books, name)

    def hear(self, books, node):
        """Tell a process what the agent of a node reports now."""
        known = books.cluster.told(deltas.DEVICE, node)
        before, after = known.after if known else None, self.reported[node]
        if before != after:
            books.cluster.apply(deltas.ObjectDelta(deltas.DEVICE, node, before, after, node))

    def body(self, chance):
        requests, notes = chance.choice(KINDS)
        labels = {names.LABEL_QOS: "LSR"} if "cpu" in requests else {}
        more = {"annotations": dict(notes), "labels": labels}
        return more, {"name": "main", "resources": {"requests": requests}}

    def steps(self, history):
        def health():
            """A device fails or comes back, which processes hear at different times."""
            node = history.chance.choice(histories.NODES)
            self.masks[node] ^= 1 << history.chance.randrange(2)
            self.reported[node] = machine(node, self.masks[node])

        def hear_health():
            self.hear(history.any().ledger, history.chance.choice(histories.NODES))

        def ask_again():
            """The same request on the same state gives the same answer, also after a restart."""
            process = history.any()
            pod = process.store.get(history.key())
            if pod is None or pod.node or pod.uid in process.ledger.assumptions:
                return
            node = history.chance.choice(histories.NODES)
            answers = [
                _answer(process, cluster, pod, node)
                for cluster in (
                    process.ledger.cluster,
                    process.ledger.cluster,
                    process.ledger.cluster.rebuilt(),
                )
            ]
            assert answers[0] == answers[1] == answers[2]

        return {health: 2, hear_health: 3, ask_again: 4}

    def check(self, history):
        if not history.shared:
            assert recount(history.server.pods) == []

    def settled(self, history):
        """Nothing is held twice by now; when all pods have gone, everything is free."""
        assert recount(history.server.pods) == []
        for key in list(history.server.pods):
            history.server.delete(key)
        for process in history.processes:
            process.catch_up()
            for name in histories.NODES:
                self.hear(process.ledger, name)
        untouched = histories.Process(history.server, history.clock, self)
        empty = untouched.ledger.cluster.fingerprint()
        for process in history.processes:
            assert process.ledger.cluster.fingerprint() == empty


def _answer(process, cluster, pod, node):
    """What would be written on a pod on a node, or why it is refused."""
    view = cluster.view(node)
    row = view.rows[node]
    asked = process.line.cycle(views.PodInfo.of(pod), view)
    refusal = process.line.filter(asked, view, pipeline.alone(row), 0.0).refusal(0)
    if refusal is not None:
        return refusal.status.text
    found = process.line.reserve(asked, view, row)
    if isinstance(found, pipeline.Refusal):
        return found.status.text
    return {name: grant.allocation for name, grant in found.items()}


def recount(pods):
    """What is held twice, or beyond what there is, by the annotations of bound pods alone."""
    found = []
    by_node = itertools.groupby(
        sorted(pods.values(), key=lambda pod: pod["spec"]["nodeName"]),
        lambda pod: pod["spec"]["nodeName"],
    )
    for node, placed in by_node:
        if node:
            held = collections.Counter()
            for pod in placed:
                held.update(_held(pod["metadata"].get("annotations", {})))
            found += [
                f"{node}: {value} of {what}"
                for what, value in held.items()
                if value > MOST.get(what[-1], 100 if what[0] == "device" else 1)
            ]
    return found


def _held(notes):
    status = json.loads(notes.get(numa_cluster.STATUS, "{}"))
    held = collections.Counter()
    for part in filter(None, status.get("cpuset", "").split(",")):
        first, _, last = part.partition("-")
        held.update(("cpu", cpu) for cpu in range(int(first), int(last or first) + 1))
    written = json.loads(notes.get(names.ANNOTATION_DEVICE_ALLOCATED, "{}"))
    for kind, granted in written.items():
        for one in granted:
            for name, text in one["resources"].items():
                held["device", kind, one["minor"], name] += quantity.amount(name, text)
            for function in one.get("extension", {}).get("vfs", ()):
                held["function", function["busID"]] += 1
    return held
