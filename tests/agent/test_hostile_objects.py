"""Generated pods, nodes and NodeSLOs through every reader of the agent.

`make fuzz` sends KOORD_FUZZ objects, others each time.
"""

import gc
import json
import os
import random
import time
import tracemalloc

import pytest

from agent.hooks import batch_resources
from agent.model import pod_lists, slo_settings, state
from agent.model.cpus import cpu_bindings, reserved_cpus
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.cluster_settings import node_slo
from domain.pods import resources
from tests.agent import conftest
from tests.agent.decide import test_poisoned_pod
from tests.agent.model import test_annotations

OBJECTS = int(os.environ.get("KOORD_FUZZ", "150"))
pytestmark = pytest.mark.timeout(max(60, OBJECTS // 10))
SLOWEST = 0.02
"""Seconds of this thread that any call may take."""
MACHINE = tuple(state.Processor(cpu, cpu // 2, 0, 0) for cpu in range(16))
SITE = cpu_bindings.Site(processors=MACHINE)
FIELDS = test_annotations.FIELDS
KEYS = test_poisoned_pod.KEYS
AMOUNTS = ["1", "100m", "16Mi", "-3", "1e400", "many", "", "9" * 40, "0.0000001", "1Ei"]
SECTIONS = ["resourceUsedThresholdWithBE", "resourceQOSStrategy", "cpuBurstStrategy"]
SECTIONS += ["systemStrategy", "podOverrideLimits", "hostApplications", "extensions"]


class Tenant:
    """Writes what nobody expects."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def value(self, depth=0):
        kind = self.chance.randrange(12 if depth < 4 else 8)
        simple = [None, True, -1, 2**63, 0.5, "x", "0-4,7", "\x1b[31m"]
        if kind < 8:
            return self.chance.choice([*simple, 10 ** self.chance.randrange(400)])
        if kind < 10:
            return [self.value(depth + 1) for _ in range(self.chance.randrange(4))]
        count = self.chance.randrange(5)
        return {self.chance.choice(FIELDS): self.value(depth + 1) for _ in range(count)}

    def text(self):
        """Return the text of an annotation."""
        number = self.chance.choice([3, 40, 900, 5000])
        return self.chance.choice(
            [
                lambda: json.dumps(self.value()),
                lambda: json.dumps({self.chance.choice(FIELDS): self.value() for _ in range(6)}),
                lambda: '{"x":' * number,
                lambda: '{"policy":' + "[" * number + "]" * number + "}",
                lambda: '{"cpuset":"' + "0-4096," * number + '"}',
                lambda: json.dumps({f"c{n}": n for n in range(number)}),
                lambda: "".join(map(chr, self.chance.choices(range(1, 300), k=number))),
                lambda: json.dumps({"cpuset": f"{self.chance.randrange(20)}-{number}"}),
            ]
        )()

    def pod(self):
        """Return a pod as the kubelet lists it, mostly."""
        odd = self.chance.random() < 0.1
        sides = {
            side: {
                name: self.chance.choice(AMOUNTS)
                for name in ("cpu", "memory", "kubernetes.io/batch-cpu")
            }
            for side in ("requests", "limits")
        }
        keys = self.chance.sample(KEYS, 4)
        return {
            "metadata": {
                "name": "a",
                "uid": "u",
                "labels": {names.LABEL_QOS: self.chance.choice([*qos.QoS, "x"])},
                "annotations": self.value() if odd else {key: self.text() for key in keys},
                "creationTimestamp": self.chance.choice(
                    [None, "yesterday", "2026-01-01T00:00:00Z"]
                ),
            },
            "spec": {"containers": self.value() if odd else [{"name": "app", "resources": sides}]},
            "status": {"phase": "Running", "qosClass": self.chance.choice(["", "Burstable"])},
        }


def timed(call, *arguments):
    """Call, hold it to the time that it may take, and return the answer or a ValueError."""
    gc.disable()
    begin = time.thread_time()
    try:
        return call(*arguments)
    except ValueError as error:
        return error
    finally:
        seconds = time.thread_time() - begin
        gc.enable()
        assert seconds < SLOWEST, (call, seconds)


@pytest.fixture
def tenant():
    return Tenant(random.randrange(1 << 32) if OBJECTS > 250 else 7)


def test_no_pod_makes_a_reader_of_the_agent_fail(tenant):
    read = refused = 0
    for _ in range(OBJECTS):
        raw = tenant.pod()
        found = timed(pod_lists.read, json.dumps({"items": [raw]}).encode())
        if isinstance(found, pod_lists.ListError):
            refused += 1
            continue
        for pod in found.pods:
            read += 1
            bindings = timed(cpu_bindings.granted, [pod], SITE)
            assert isinstance(bindings, cpu_bindings.Bindings)
            assert sum(map(len, bindings.cpus.values())) <= 16
            timed(batch_resources.extended, pod)
            timed(resources.pod_requests, pod)
            timed(reserved_cpus.read, core.Node(pod.metadata))
            for name, text in pod.metadata.annotations.items():
                for reader in test_annotations.READERS:
                    if reader in ("node", "raw allocatable", "bound cpus"):
                        continue
                    if name.rpartition("/")[2].startswith(reader) or len(text) < 200:
                        timed(test_annotations.read, reader, conftest.Placed(), text)
    assert read > OBJECTS // 2
    assert refused < OBJECTS // 2


def test_no_hostile_pod_changes_what_its_neighbours_get(tenant):
    for _ in range(max(4, OBJECTS // 500)):
        kind = tenant.chance.randrange(len(test_poisoned_pod.KINDS))
        expected, _, _ = test_poisoned_pod.decided(
            [*test_poisoned_pod.HEALTHY, test_poisoned_pod.bystander({}, kind)]
        )
        annotations = {key: tenant.text() for key in KEYS}
        hostile = test_poisoned_pod.bystander(annotations, kind)
        found, round_, _ = test_poisoned_pod.decided([*test_poisoned_pod.HEALTHY, hostile])
        assert found == expected
        assert not round_.failed


def test_no_node_slo_makes_its_reader_fail(tenant):
    for _ in range(OBJECTS):
        spec = {name: tenant.value() for name in tenant.chance.sample(SECTIONS, 3)}
        found = timed(lambda one: slo_settings.read(node_slo.read({"spec": one})), spec)
        assert isinstance(found, slo_settings.strategy_settings.Strategies | ValueError)


def test_no_memory_is_kept_of_what_tenants_write(tenant):
    def write():
        for _ in range(200):
            text = tenant.text()
            for reader in ("cpuBurst", "memoryQOS", "resource-status", "blkioQOS", "networkQOS"):
                test_annotations.read(reader, conftest.Placed(), text)

    write()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(3):
        write()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Five readers remember 256 Ki characters each, with what they stand for.
    assert after - before < 12 << 20
