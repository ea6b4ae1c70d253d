"""Pods come, go and are found again while devices fail and come back, in any order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from extender.state import claims, deltas
from tests.extender.clusters import device_cluster
from tests.extender.clusters.device_cluster import NAME, DeviceCluster, device, gpu, rdma

JOINT = {names.ANNOTATION_DEVICE_JOINT: '{"deviceTypes":["gpu","rdma"]}'}
WANTED = (
    ({names.GPU: "30"}, {}),
    ({names.GPU: "50"}, {}),
    ({names.NVIDIA_GPU: "1"}, {}),
    ({names.NVIDIA_GPU: "2"}, {}),
    ({names.GPU_MEMORY: "30Gi"}, {}),
    ({names.GPU_CORE: "20", names.GPU_MEMORY_RATIO: "60"}, {}),
    ({names.RDMA: "40"}, {}),
    ({names.GPU: "100", names.RDMA: "1"}, JOINT),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("bind"), st.integers(0, len(WANTED) - 1)),
        st.tuples(st.just("leave"), st.integers(0, 9)),
        st.tuples(st.just("health"), st.integers(0, 15)),
        st.tuples(st.just("gone"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=14,
)
STRATEGIES = ("LeastAllocated", "MostAllocated", "LeastFragmented")


def machine(mask):
    gpus = [gpu(m, numa=m // 2, pcie=str(m // 2), health=bool(mask >> m & 1)) for m in range(4)]
    return device("n1", *gpus, rdma(0), rdma(1, numa=1, pcie="1"))


class History:
    """A cluster, and the pods that are on it."""

    def __init__(self, strategy):
        self.strategy = strategy
        self.plugin = device_cluster.plugin(scoringStrategy={"type": strategy})
        self.mask = 15
        self.count = 0
        self.pods = []
        self.cluster = self.fresh()

    def fresh(self):
        cluster = DeviceCluster(self.plugin)
        cluster.node()
        cluster.devices(machine(self.mask))
        return cluster

    def step(self, what, number):
        getattr(self, what)(number)
        self.check()

    def bind(self, number):
        requests, notes = WANTED[number]
        name, self.count = f"p{self.count}", self.count + 1
        pod = self.cluster.pod(name, requests, annotations=notes)
        before = self.cluster.sparse()
        if self.cluster.bind(pod) == "":
            self.pods.append(name)
            healthy = before.inventory.devices
            for kind, granted in self.held(name).items():
                for one in granted:
                    assert all(
                        value <= before.free[kind][one.minor].get(resource, value)
                        for resource, value in one.amounts.items()
                    ), "more than was free"
                    assert any(healthy[kind][one.minor].total.values()), "of a broken device"

    def held(self, name):
        found = self.cluster.state.claim(f"uid-{name}").allocations.get(NAME)
        return found.by_type if found else {}

    def leave(self, number):
        if self.pods:
            self.cluster.leave(self.pods.pop(number % len(self.pods)))

    def health(self, mask):
        self.mask = mask
        self.cluster.devices(machine(mask))

    def gone(self, _):
        self.cluster.told("n1", None)
        self.check()
        self.cluster.devices(machine(self.mask))

    def restart(self, _):
        """Build the state anew from what stands on the pods."""
        before, self.cluster = self.cluster, self.fresh()
        for name in self.pods:
            old = before.state.claim(f"uid-{name}")
            notes = dict(self.plugin.encode(old.allocations[NAME]))
            asked = {k: v for k, v in old.pod.requirements.inputs if k.endswith("joint-allocate")}
            index = next(i for i, (_, note) in enumerate(WANTED) if note == asked)
            record = old.pod
            read = self.plugin.decode(notes, record.requirements)
            assert read == old.allocations[NAME], WANTED[index]
            claim = claims.Claim(old.id, claims.ClaimKind.BOUND, "n1", record, {NAME: read})
            self.cluster.state.apply(deltas.ClaimDelta(claim.id, None, claim))

    def check(self):
        self.check_figures()
        held = {}
        for name in self.pods:
            for kind, granted in self.held(name).items():
                for one in granted:
                    for resource, value in one.amounts.items():
                        key = (kind, one.minor, resource)
                        held[key] = held.get(key, 0) + value
        for (kind, minor, resource), value in held.items():
            most = 80 << 30 if resource == names.GPU_MEMORY else 100
            assert value <= most, (kind, minor, resource, value)
        node = self.cluster.sparse()
        if node is not None:
            assert node.overused() == []

    def check_figures(self):
        """What follows from the last change is what follows from everything."""
        view = self.cluster.state.view()
        info = view.node(view.rows["n1"])
        unaware = device_cluster.plugin(scoringStrategy={"type": self.strategy})
        figures, node = unaware.node(info)
        assert self.plugin.node(info) == (figures, node)
        assert tuple(view.figures[NAME][:, view.rows["n1"]]) == figures
        assert self.cluster.sparse() == node


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=12, deadline=None)
@given(steps=STEPS)
def test_no_device_is_ever_given_beyond_what_it_has(strategy, steps):
    history = History(strategy)
    for step in steps:
        history.step(*step)
    assert history.cluster.state.fingerprint() == history.cluster.state.rebuilt().fingerprint()
    again = History(strategy)
    for step in steps:
        again.step(*step)
    assert again.pods == history.pods, "the same orders give the same answers"
    assert [again.held(name) for name in again.pods] == [history.held(n) for n in history.pods]
    history.health(15)
    for name in list(history.pods):
        history.cluster.leave(name)
    empty = History(strategy).cluster
    assert history.cluster.sparse().free == empty.sparse().free, "all of it is free again"
