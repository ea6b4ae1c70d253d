"""The extension points of the scheduling framework: what a plug-in implements.

A plug-in is built from its settings, keeps nothing between requests and changes nothing it is
shown: arrays are read-only, records are frozen, and what should happen is returned as a value.
It implements PreFilter and as many of the other points as it needs. What PreFilter returns is
handed to all of them, so the pod is read once; a plug-in that has nothing to say about a pod
returns None there and is not asked again.

`rows` are the candidate nodes, as rows of the view. Arrays that are returned have one entry per
candidate, in their order; what is said of a row that has no node is ignored. Every row is judged
by itself: what other nodes are like must not change what is said of one. Ranker alone compares.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from extender.framework import claim_index, page_protocols, verdicts, views
from extender.framework.nodes import hints


@runtime_checkable
class PreFilter(Protocol):
    """Reads the pod once per scheduling cycle."""

    name: str

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> Any | verdicts.Status | None:
        """Return what the other points need of the pod, frozen and hashable.

        None: the plug-in has nothing to say about this pod. A Status refuses it on every node.
        Everything that a verdict depends on besides the view and the time must be in it: pods
        whose values are equal are judged once.
        """


@runtime_checkable
class Filter(Protocol):
    """Says which nodes may not take a pod, as vectors over the candidates."""

    name: str

    def filter(
        self, prepared: Any, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict | None:
        """Judge the candidates; None if all pass."""


@runtime_checkable
class Prescreen(Protocol):
    """Tells at little cost that every node passes a filter; optional, for plug-ins that filter."""

    name: str

    def passes_all(self, prepared: Any, view: views.View, now: float) -> bool:
        """Whether every node certainly passes; False where that takes a look at each of them.

        `view.lowest` bounds the figures of all nodes from below.
        """


@runtime_checkable
class NodeFilter(Protocol):
    """Judges what no vector can say, one node after the other; only nodes that passed vectors."""

    name: str

    def filter_node(self, prepared: Any, view: views.View, row: int) -> verdicts.Status | None:
        """Refuse one node, or None if it passes."""


@runtime_checkable
class Diagnoser(Protocol):
    """Explains the refusals of a filter to people."""

    name: str

    def shortage(
        self, prepared: Any, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say what share of what the pod needs is lacking on each candidate.

        Only those that the plug-in refused count; the smallest is the nearest miss.
        """

    def diagnose(self, prepared: Any, view: views.View, row: int, now: float) -> verdicts.Diagnosis:
        """Return the figures behind the verdict on one node and what would change it."""


@runtime_checkable
class Scorer(Protocol):
    """Says which nodes are better than others."""

    name: str

    def score(
        self, prepared: Any, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score | None:
        """Judge the candidates; None if this plug-in has no preference for the pod."""


@runtime_checkable
class Ranker(Protocol):
    """Puts candidates in order: what it says of one depends on which others passed.

    The exception to the rule above: `rows` are the candidates and no others. It is weighed as
    Scorer is, and says nothing of one node alone.
    """

    name: str

    def rank(
        self, prepared: Any, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score | None:
        """Judge the candidates; None if this plug-in has no preference for the pod."""


@runtime_checkable
class HintProvider(Protocol):
    """Allocates what is tied to NUMA nodes; the framework aligns all providers.

    Whether that succeeds depends on what PreFilter prepared, the figures and the sparse values of
    the node, and on nothing else: the framework tries a node again only after it has changed.
    """

    name: str

    def hints(
        self, prepared: Any, view: views.View, row: int
    ) -> Mapping[str, tuple[verdicts.NumaHint, ...] | None]:
        """Return by resource which NUMA nodes could give the pod what it needs.

        None: any of them will do. Empty: none of them can.
        """

    def allocate(
        self, prepared: Any, view: views.View, row: int, mask: int
    ) -> msgspec.Struct | verdicts.Status | None:
        """Allocate from the NUMA nodes of the mask; None if the pod takes nothing here.

        Where no topology policy restricts them the mask is -1.
        """


@runtime_checkable
class TopologySource(Protocol):
    """Knows which NUMA nodes a node has and its policy; the first that is enabled is asked."""

    name: str

    def topology(self, prepared: Any | None, view: views.View, row: int) -> hints.Topology:
        """Return the policy and the NUMA nodes of one node, for a pod.

        `prepared` is what this plug-in prepared of the pod, None where that is nothing.
        """


@runtime_checkable
class TrialScreen(Protocol):
    """Tells where an allocation cannot fail; optional, for hint providers.

    Filter tries an allocation on every candidate unless all providers that a pod concerns tell.
    """

    name: str

    def needs_trial(
        self, prepared: Any, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags | None:
        """Return for each candidate that passed its filter whether `allocate` may yet refuse it.

        None: it refuses none of them.
        """


@runtime_checkable
class Nominator(Protocol):
    """Knows which claims of a node keep capacity for a pod; one plug-in at most, the first."""

    name: str

    def allocating(
        self, prepared: Any, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags | None:
        """Return on which candidates a claim that the pod may use holds CPUs or devices.

        None: no claim of any node does.
        """

    def serving(self, prepared: Any, view: views.View, rows: verdicts.Rows) -> verdicts.Flags:
        """Return on which candidates a claim keeps capacity that the pod may use."""

    def ranks(self, prepared: Any, view: views.View, rows: verdicts.Rows) -> verdicts.Column | None:
        """Return how early the claims of these come by their order, 0 where none has one.

        None: no claim of any node has one.
        """

    def nominees(self, prepared: Any, view: views.View, row: int) -> Iterable[verdicts.Nominee]:
        """Return what a pod may use on a node, the best first; nothing: it is no owner there.

        What is free on the node is among them if the pod may do with that.
        """


@runtime_checkable
class NodeClasses(Protocol):
    """Tells on which nodes a trial ends alike; optional, for hint providers and topology sources.

    A pod is tried once for all candidates that everybody calls alike.
    """

    name: str

    def alike(self, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return a number for each candidate: digests of all that a trial of any pod depends on."""


@runtime_checkable
class Reserver(Protocol):
    """Grants what a pod takes from a node beyond its plain requests."""

    name: str

    def reserve(
        self,
        pod: views.PodInfo,
        prepared: Any,
        view: views.View,
        row: int,
        grants: Mapping[str, msgspec.Struct],
    ) -> verdicts.Grant | verdicts.Status | None:
        """Grant it, refuse it, or None if the pod takes nothing of that kind.

        `grants` holds what hint providers and earlier reservers allocated, by plug-in.
        """


@runtime_checkable
class Permit(Protocol):
    """Lets a pod that has its place wait for others."""

    name: str

    def permit(
        self, pod: views.PodInfo, prepared: Any, view: views.View, now: float
    ) -> verdicts.Permission:
        """Say whether the pod, counted on its node already, may be bound now.

        Asked again when its key is woken and every second; the first time that it named counts.
        """


@runtime_checkable
class VictimSelector(Protocol):
    """Names whose claims on a node hold what this plug-in refuses a pod there for.

    The framework chooses among them: those that may leave, as few and as unimportant as help.
    """

    name: str

    def victims(
        self, prepared: Any, view: views.View, row: int
    ) -> verdicts.Victims | verdicts.Status:
        """Return every such claim, whatever its priority, or why no victim would help."""


@runtime_checkable
class ClusterVictimSelector(Protocol):
    """Names who may leave for a pod that this plug-in refuses on every node.

    What it counts is freed wherever a victim is. The framework chooses among those that it names.
    """

    name: str

    def group(self, claim: views.Claim) -> Hashable:
        """Return the key under which a claim is found; it must not depend on arguments."""

    def potential(
        self, pod: views.PodInfo, view: views.View, groups: claim_index.Groups
    ) -> Iterable[views.Claim]:
        """Return every claim that may leave for the pod, those that leave anyway among them."""


@runtime_checkable
class VictimGuard(Protocol):
    """Protects pods from preemption, by us or by kube-scheduler."""

    name: str

    def protects(
        self, pod: views.PodInfo, view: views.View, victim: views.Claim
    ) -> verdicts.Status | None:
        """Return why a claim must not leave for a pod, None if it may."""


@runtime_checkable
class VictimCompanions(Protocol):
    """Says which pods are of no use without each other, so that they are preempted together."""

    name: str

    def companions(self, view: views.View, claim: views.Claim) -> Sequence[verdicts.Quorum]:
        """Return the quorums that fall together, that of the claim among them; empty: none."""


@runtime_checkable
class QueueingHints(Protocol):
    """Says which changes could end a refusal; without it refused pods are judged all the time."""

    name: str
    expires: bool
    """Whether a refusal may also end because time passes."""

    def could_help(self, prepared: Any | None, delta: views.Delta) -> bool:
        """Whether a node that this plug-in refuses to the pod might pass after the change.

        `prepared` is None where PreFilter refused the pod.
        """


@runtime_checkable
class QueueSort(Protocol):
    """Lines up waiting pods that compete for something of the cluster as a whole, such as quota."""

    name: str

    def line(self, pod: views.PodInfo, view: views.View) -> str:
        """Return what a pod competes for, empty where for nothing.

        Of the pods of one line that of the highest priority is woken first, then the oldest, and
        no more than could be bound: those that were woken count as nominated meanwhile.
        """

    def frees(self, delta: views.Delta) -> bool:
        """Whether pods of a line may pass after a change: they are looked at right away."""


@runtime_checkable
class PodReader(Protocol):
    """Names the labels and annotations of pods that PreFilter and the state tracker look at."""

    name: str
    pod_labels: tuple[str, ...]
    pod_annotations: tuple[str, ...]
    """Longer ones than `bounds.SHORT` are kept as absent."""


@runtime_checkable
class ObjectReader(Protocol):
    """Names the kinds of objects beyond claims and nodes that the state tracker counts.

    Kinds that cost something with every pod are counted only where a plug-in names them.
    """

    name: str
    kinds: tuple[str, ...]

    def needs(self, value: Any | None) -> bool:
        """Whether it needs them while its value of the cluster is this; None: not known yet."""


Inspectable = page_protocols.Inspectable
NodePage = page_protocols.NodePage
Pods = page_protocols.Pods
ClusterPage = page_protocols.ClusterPage
PodDiagnoser = page_protocols.PodDiagnoser
Measured = page_protocols.Measured
StateTracker = views.StateTracker
AllocationCodec = views.AllocationCodec

Plugin = (
    PreFilter
    | Filter
    | NodeFilter
    | Scorer
    | Ranker
    | HintProvider
    | TopologySource
    | Reserver
    | Permit
    | VictimSelector
    | ClusterVictimSelector
    | VictimGuard
    | StateTracker
    | AllocationCodec
    | Inspectable
)
"""What stands in the registry implements at least one of these."""
