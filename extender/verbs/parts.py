"""What the verbs work on."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import msgspec

from api.kubernetes import extender as wire
from extender.explain import explanations
from extender.framework import cycle, pipeline, views
from extender.preemption import in_flight
from extender.requeue import unschedulable_pods
from extender.scoring import decider as deciding
from extender.state import cluster_state, records
from extender.verbs import request_codec
from process.configuration import switches

BAD_INPUT = (msgspec.MsgspecError, RecursionError, ValueError)
"""What reading a body raises that is not what it should be."""
NODES = msgspec.json.Decoder(wire.RawNodes)
ENCODER = msgspec.json.Encoder()


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """What one filter call refused, for counting, logging and events."""

    request: views.PodInfo
    explanation: explanations.Explanation
    by_plugin: Mapping[tuple[str, str], int]
    is_new: bool


@dataclasses.dataclass(slots=True)
class Offers:
    """Passes on which nodes kube-scheduler offers a gang member, before filters judge them."""

    take: Callable[[str, Sequence[str], bool], str] = lambda _uid, _nodes, _volumes: ""
    """Takes the uid, the nodes, and whether the pod has volumes of claims.

    Returns the only node that its plan lets it have, empty where there is none.
    """


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """The cluster state, the plug-ins and what is remembered of calls."""

    cluster: cluster_state.ClusterState
    plugins: pipeline.Pipeline
    projector: records.Projector
    switches: switches.Switches
    explanations: explanations.Explanations
    tell: Callable[[Refused], None]
    reader: request_codec.Reader
    writer: request_codec.Scores = dataclasses.field(default_factory=request_codec.Scores)
    waits: unschedulable_pods.UnschedulablePods = dataclasses.field(
        default_factory=unschedulable_pods.UnschedulablePods
    )
    cycles: cycle.Cycles = dataclasses.field(default_factory=cycle.Cycles)
    decider: deciding.Decider | None = None
    """Chooses nodes where the scheduler's whole total can be computed; None never does."""
    preemptions: in_flight.Preemptions = dataclasses.field(default_factory=in_flight.Preemptions)
    offers: Offers = dataclasses.field(default_factory=Offers)

    def overlay(self, nodes: wire.RawNodes) -> tuple[views.View, request_codec.Candidates]:
        """Return the view of a what-if with full nodes; it leaves no trace."""
        found = [self.projector.node(node) for node in nodes.decoded()]
        unique = {record.name: record for record in found}
        view = self.cluster.what_if(unique.values()).view()
        names = [record.name for record in found]
        return view, request_codec.Candidates(names, request_codec.look_up(names, view.rows))
