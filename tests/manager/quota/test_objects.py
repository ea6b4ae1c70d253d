"""What is kept of pods is shared between those that are alike, and gone with them."""

import tracemalloc

import msgspec
import pytest

from api.kubernetes import core
from manager.quota import objects

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(**spec):
    container = {"name": "c", "resources": {"requests": spec.pop("requests", {})}}
    return msgspec.convert({"spec": {"containers": [container], **spec}}, core.Pod)


def affinity(values):
    expression = {"key": "pool", "operator": "In", "values": values}
    term = {"matchExpressions": [expression]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


LONG = {
    "requests": lambda n: {"requests": {f"example.com/{n}-{at}": "1" for at in range(3000)}},
    "gates": lambda n: {"schedulingGates": [{"name": f"x/{n}-{at}"} for at in range(3000)]},
    "selector": lambda n: {"nodeSelector": {f"x/{n}-{at}": "" for at in range(3000)}},
    "affinity": lambda n: {"affinity": affinity([f"{n}-{at}" for at in range(3000)])},
    "tolerations": lambda n: {"tolerations": [{"key": f"{n}-{at}"} for at in range(200)]},
}


PODS = 150
BYTES = {"requests": 16 << 20, "gates": 16 << 20}
"""At most, where names are interned: the interpreter's table of them may grow once, by what a whole
test process has used. What is kept of so many pods is 40 MiB and more, of tolerations 3 MiB."""
OTHER_BYTES = 1 << 20


@pytest.mark.parametrize("kind", LONG)
def test_nothing_is_kept_of_long_pods_that_are_gone(kind):
    shapes = objects.Shapes()
    shapes.pod(pod(**LONG[kind](0)))
    tracemalloc.start()
    try:
        for number in range(1, PODS):
            shapes.pod(pod(**LONG[kind](number)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < BYTES.get(kind, OTHER_BYTES)


def test_pods_that_are_alike_share_what_they_ask_for():
    shapes, spec = objects.Shapes(), {"requests": {"cpu": "2"}, "affinity": affinity(["a", "b"])}
    one, other = (shapes.pod(pod(**spec)) for _ in range(2))
    assert one.use.requests is other.use.requests
    assert one.requires is other.requires
