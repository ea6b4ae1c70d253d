"""A node with a runtime whose containers the agent adjusts."""

from agent.apply import deliveries
from agent.hooks import batch_resources, oom_score, resctrl
from agent.hooks.cpu import cpu_burst, cpu_normalization, cpuset
from agent.hooks.devices import gpu_env, rdma_devices
from agent.hooks.lifecycle import stages
from agent.model import state, strategy_settings
from agent.model.cpus import shared_pools
from agent.nri import link, session
from agent.serve import container_events
from tests.agent.nri import stand_in

wire = stand_in.wire
QOS = "koordinator.sh/qosClass"
BATCH = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1Gi"}
ALLOCATED = "scheduling.koordinator.sh/device-allocated"
BUS = "0000:d8:00.0"
GIVEN = (
    '{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"100"}}],'
    f'"rdma":[{{"minor":0,"id":"{BUS}","resources":{{"koordinator.sh/rdma":"100"}}}}]}}'
)
GPU = {
    "koordinator.sh/gpu-core": "100",
    "koordinator.sh/gpu-memory-ratio": "100",
    "koordinator.sh/rdma": "100",
}
BURST = strategy_settings.NodeBurst(strategy_settings.Burst("auto"))
POOLS = shared_pools.Pools((shared_pools.Pool(0, 0, frozenset({1, 2})),))
RULES = stages.freeze(
    [
        cpuset.HOOK.bind(cpuset.Rule(cpuset.Known(POOLS))),
        batch_resources.HOOK.bind(batch_resources.Rule()),
        cpu_burst.HOOK.bind(cpu_burst.Rule(BURST, state.Kernel())),
        cpu_normalization.HOOK.bind(2.0),
        oom_score.HOOK.bind(oom_score.Rule()),
        resctrl.HOOK.bind(resctrl.rule({}, state.Caches((0,), 0xFFF, "GenuineIntel"))),
        gpu_env.HOOK.bind(None),
        rdma_devices.HOOK.bind(
            rdma_devices.Rule(
                {BUS: "uverbs0"},
                {"/dev/infiniband/uverbs0": (231, 192), "/dev/infiniband/rdma_cm": (10, 58)},
            )
        ),
    ]
)


class Node:
    """A runtime and the agent's side of it; time passes by hand."""

    def __init__(self, folder):
        self.now = 0.0
        self.kept = []
        self.asked = []
        self.events = container_events.Events(lambda: self.now, self.keep, wait_seconds=0.0)
        self.events.unknown = self.asked.append
        self.runtime = stand_in.Runtime(folder / "nri.sock")
        self.link = link.Link(str(folder / "nri.sock"), self.begin)
        self.link.start()
        self.runtime.accept()
        self.runtime.greet()
        self.knows()

    def begin(self):
        return session.Session("koord", "00", container_events.EVENTS, self.events)

    def knows(self, *pods, **more):
        by_uid = {pod.pod.metadata.uid: pod for pod in pods}
        given = {"roles": frozenset({"cpu-burst"}), **more}
        self.events.snapshot = container_events.Snapshot(RULES, by_uid, **given)

    def keep(self, delivered):
        if self.kept is None:
            raise deliveries.DeliveryError("no space left")
        self.kept += delivered

    def create(self, pod, name="app", linux=b""):
        container = stand_in.container("c", "u", name) + linux
        asked = wire.field(1, pod) + wire.field(2, container)
        return self.runtime.call("CreateContainer", asked, "CreateContainerResponse").adjust

    def created(self, pod, name="app"):
        said = wire.field(2, pod) + wire.field(3, stand_in.container("c", "u", name))
        self.runtime.call("StateChange", wire.field(1, 5) + said, "Empty")


def linux(path, *, quota=None, shares=None, memory=None, cpus="", score=None):
    """Return the LinuxContainer of a request."""
    numbers = ((1, shares), (2, quota))
    cpu = b"".join(wire.field(n, wire.field(1, one)) for n, one in numbers if one is not None)
    cpu += wire.field(6, cpus.encode()) if cpus else b""
    resources = wire.field(2, cpu)
    if memory is not None:
        resources = wire.field(1, wire.field(1, wire.field(1, memory))) + resources
    body = wire.field(3, resources) + wire.field(5, path.encode())
    if score is not None:
        body += wire.field(4, wire.field(1, score))
    return wire.field(11, body)
