"""The cluster at one moment, which a round decides on. It does not change meanwhile."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from descheduler.model import fragments as pieces
from descheduler.model import nodeinfo, objects, podinfo

_NO_PODS: Final[Sequence[podinfo.Pod]] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """Everything that plug-ins and filters may look at."""

    now: float
    """Seconds since the epoch."""
    nodes: Mapping[str, nodeinfo.Node]
    pods: Mapping[str, podinfo.Pod]
    """By uid."""
    on_node: Mapping[str, Sequence[podinfo.Pod]]
    """By node, of pods that have one, those that have ended included."""
    alike: Mapping[podinfo.Likeness, Sequence[podinfo.Pod]] = dataclasses.field(compare=False)
    """The pods that have a node and have not ended, those together that are alike."""
    usage: Mapping[str, nodeinfo.Usage] = dataclasses.field(default_factory=dict)
    """By node, however old it is."""
    workloads: Mapping[str, objects.Workload] = dataclasses.field(default_factory=dict)
    """By uid."""
    by_controller: Mapping[str, Sequence[podinfo.Pod]] = dataclasses.field(default_factory=dict)
    """By uid of the controlling owner, of all pods."""
    budgets: Sequence[objects.Budget] = ()
    jobs: Mapping[str, objects.Job] = dataclasses.field(default_factory=dict)
    """By name."""
    namespaces: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """Labels by name of the namespace."""
    exempt_namespaces: Collection[str] = frozenset()
    """Namespaces that are annotated so that their pods stay."""
    priorities: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Values of PriorityClasses by name."""
    gangs: Mapping[str, objects.Gang] = dataclasses.field(default_factory=dict)
    """By key, of gangs whose quorum is known; of any other all members count."""
    fragments: Mapping[str, pieces.Fragments] = dataclasses.field(default_factory=dict)
    """By node, of nodes that report devices or a CPU topology."""
    memo: dict[object, Any] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What follows from this picture alone, worked out once: it saves work, no answer changes."""

    def running_on(self, node: str) -> Sequence[podinfo.Pod]:
        """Return the pods of a node, without those that have ended."""
        return [pod for pod in self.on_node.get(node, _NO_PODS) if not pod.has_ended]
