"""The trace: nodes, pods by workload, and what was published about it."""

import dataclasses
import functools
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("openb.json.gz")


@dataclasses.dataclass(frozen=True, slots=True)
class NodeShape:
    """Nodes that are alike."""

    cpu: int
    """In milli."""
    memory: int
    """In MiB."""
    gpus: int
    model: str
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class PodShape:
    """Pods that are alike."""

    cpu: int
    memory: int
    gpus: int
    milli: int
    """Thousandths of each GPU."""
    models: str
    """Those that will do, separated by bars; empty: any."""
    count: int

    @property
    def demand(self) -> int:
        """Return the thousandths of GPUs that it asks for in all."""
        return self.gpus * self.milli


@functools.cache
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(gzip.decompress(FILE.read_bytes()))
    return found


def nodes(count: int = 0) -> tuple[NodeShape, ...]:
    """Return the nodes of the cluster, or so many of them in the same proportions."""
    every = tuple(NodeShape(*one) for one in _document()["nodes"])
    return scaled(every, count) if count else every


def scaled(shapes: Sequence[NodeShape], count: int) -> tuple[NodeShape, ...]:
    """Return shapes of so many nodes in all, by the method of largest remainders."""
    total = sum(shape.count for shape in shapes)
    whole = [shape.count * count // total for shape in shapes]
    remainders = [shape.count * count % total for shape in shapes]
    largest = sorted(range(len(shapes)), key=lambda place: -remainders[place])
    for place in largest[: count - sum(whole)]:
        whole[place] += 1
    return tuple(
        dataclasses.replace(shape, count=number)
        for shape, number in zip(shapes, whole, strict=True)
        if number
    )


def names() -> tuple[str, ...]:
    """Return the workloads."""
    return tuple(sorted(_document()["workloads"]))


def pods(workload: str) -> tuple[PodShape, ...]:
    """Return the pods of a workload."""
    return tuple(PodShape(*one) for one in _document()["workloads"][workload])


def published(workload: str) -> Mapping[str, float]:
    """Return by policy the mean percentage of GPUs that was allocated."""
    return {policy: mean for policy, (mean, *_) in _document()["published"][workload].items()}
