"""Cycles and instructions of containers: opened in one tick, read in a later one, never left."""

import errno
import os

import pytest

from agent.observe import collectors
from agent.observe.cgroups import cycles_per_instruction, perf_event
from process.runtime import metrics

METRIC = "koord_agent_container_cycles_per_instruction"


class Counters:
    """A processor that counts three cycles for every two instructions."""

    def __init__(self):
        self.open_pairs, self.most, self.refusal, self.blind = set(), 0, 0, False

    def open(self, folder, cpu):
        assert os.fstat(folder)
        if self.refusal:
            raise OSError(self.refusal, os.strerror(self.refusal))
        pair = (1000 + 2 * len(self.open_pairs) + 100 * cpu, cpu)
        while pair in self.open_pairs:
            pair = (pair[0] + 1, cpu)
        self.open_pairs.add(pair)
        self.most = max(self.most, 2 * len(self.open_pairs))
        return pair

    def read(self, pair):
        if self.blind:
            raise OSError(errno.EIO, "gone")
        return perf_event.Counts(300.0 * (pair[1] + 1), 200.0 * (pair[1] + 1))

    def close(self, pair):
        self.open_pairs.remove(pair)


@pytest.fixture
def counting(host, request):
    habits = cycles_per_instruction.Habits(60.0, 10.0, getattr(request, "param", 2048))
    for name in ("a", "b", "c"):
        host.add(name, "Burstable", 100)
    host.registry, host.counters = metrics.Registry(), Counters()
    made = cycles_per_instruction.Performance(host.registry, habits, host.counters)
    host.observer._collectors = collectors.Collectors([made])
    host.step()
    if host.tree.version == 1:
        for pod in host.look().pods:
            for container in pod.containers:
                (host.tree.cgroup / "perf_event" / container.group).mkdir(parents=True)
        host.step(60)
    return host


def told(host, pod):
    labels = {"pod_namespace": "default", "pod_name": f"name-{pod}", "container": "app"}
    return host.registry.value(METRIC, labels)


def test_a_window_ends_in_a_later_tick(counting):
    assert len(counting.counters.open_pairs) == 3 * counting.tree.cpus
    assert told(counting, "a") is None
    counting.step(9)
    assert told(counting, "a") is None
    counting.step(1)
    assert not counting.counters.open_pairs
    assert [told(counting, name) for name in "abc"] == [1.5, 1.5, 1.5]
    cycles = counting.observer.samples.get(("container", "a", "app", "cycles")).newest[1]
    assert cycles == 300.0 * sum(range(1, counting.tree.cpus + 1))
    counting.step(10)
    assert not counting.counters.open_pairs
    counting.step(40)
    assert counting.counters.open_pairs
    counting.observer.close()
    assert not counting.counters.open_pairs
    assert told(counting, "a") is None


def test_counters_of_a_container_go_with_it(counting):
    counting.know(pods=counting.known.pods[1:])
    counting.step(1)
    assert len(counting.counters.open_pairs) == 2 * counting.tree.cpus
    counting.step(10)
    assert told(counting, "a") is None
    assert told(counting, "b") == 1.5
    counting.know(pods=())
    counting.step(60)
    assert told(counting, "b") is None


@pytest.mark.parametrize("counting", [20], indirect=True)
def test_containers_take_turns_where_counters_are_few(counting):
    for _ in range(8):
        counting.step(5)
    assert counting.counters.most <= 20
    assert [told(counting, name) for name in "abc"] == [1.5, 1.5, 1.5]


@pytest.mark.parametrize("counting", [8], indirect=True)
def test_too_few_for_a_single_container(counting):
    assert "performanceDescriptors" in counting.look().problems["performance"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EACCES, "CAP_PERFMON"),
        (errno.ENOENT, "no counters"),
        (errno.EMFILE, "lower measure.performanceDescriptors"),
        (errno.EINVAL, "Invalid argument"),
    ],
)
def test_why_nothing_is_counted_is_named_until_it_is(counting, code, said):
    counting.step(10)
    counting.counters.refusal = code
    assert said in counting.step(60).problems["performance"]
    assert said in counting.step(1).problems["performance"]
    assert not counting.counters.open_pairs
    assert told(counting, "a") is None
    counting.counters.refusal = 0
    assert "performance" not in counting.step(60).problems
    assert "performance" not in counting.step(10).problems
    assert told(counting, "a") == 1.5


def test_what_cannot_be_read_is_left_out(counting):
    counting.counters.blind = True
    counting.step(10)
    assert not counting.counters.open_pairs
    assert told(counting, "a") is None


def test_groups_that_are_missing_are_named(counting):
    if counting.tree.version == 2:
        pytest.skip("version 2 has one hierarchy")
    unified = counting.tree.cgroup / "unified"
    unified.mkdir()
    (unified / "cgroup.procs").write_text("")
    counting.step(10)
    assert counting.observer.layout.hybrid
    assert "unified" in (said := counting.step(60).problems["performance"])
    assert "no group whose events are counted" in said
    (counting.tree.cgroup / "perf_event" / "cgroup.procs").write_text("")
    assert "performance" not in counting.step(60).problems
    assert counting.counters.open_pairs
