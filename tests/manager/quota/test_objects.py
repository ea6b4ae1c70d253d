"""What is kept of pods is shared between those that are alike, and gone with them."""

import msgspec
import pytest

from api.kubernetes import core
from manager.quota import objects
from tests import held_memory

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


PODS = 40
OF_NAMES = 60_000
"""Blocks at most of the names that are remembered by themselves, whatever pods there are."""
FEW = 3000
"""Blocks at most of all else. So many pods have 120,000 names, and 8,000 tolerations."""


@pytest.mark.parametrize("kind", LONG)
def test_nothing_is_kept_of_long_pods_that_are_gone(kind):
    shapes = objects.Shapes()
    held = held_memory.blocks(lambda number: shapes.pod(pod(**LONG[kind](number))), PODS)
    assert held < (OF_NAMES if kind == "requests" else FEW)


def test_pods_that_are_alike_share_what_they_ask_for():
    shapes, spec = objects.Shapes(), {"requests": {"cpu": "2"}, "affinity": affinity(["a", "b"])}
    one, other = (shapes.pod(pod(**spec)) for _ in range(2))
    assert one.use.requests is other.use.requests
    assert one.requires is other.requires
