"""Bodies that a kube-scheduler and its HTTP extender exchange."""

import re

import msgspec

from api.kubernetes import core, dns


class Body(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """Base of all bodies: field names are capitalised on this wire."""


class RawNodes(msgspec.Struct, frozen=True, gc=False):
    """A NodeList whose items stay undecoded, so that an answer returns them unchanged."""

    items: tuple[msgspec.Raw, ...] = ()
    kind: str = "NodeList"
    api_version: str = msgspec.field(name="apiVersion", default="v1")

    def decoded(self) -> tuple[core.Node, ...]:
        """Return the nodes with the fields that we read."""
        return tuple(_NODE.decode(item) for item in self.items)


class Args(Body, frozen=True, gc=False):
    """Request of filter and prioritize: names of live nodes, or full nodes as a what-if."""

    pod: core.Pod
    nodes: RawNodes | None = None
    node_names: tuple[str, ...] | None = None


class FilterResult(Body, frozen=True, gc=False):
    """Answer of filter, in the shape in which the question came."""

    nodes: RawNodes | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(Body, frozen=True, gc=False):
    """One element of the answer of prioritize."""

    host: str
    score: int


class BindingArgs(Body, frozen=True, gc=False):
    """Request of bind: names only."""

    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


def flaw(asked: BindingArgs) -> str:
    """Return what is wrong with the names of a bind call, empty where they can be names.

    They become parts of paths and keys of the state, so nothing else may stand in them.
    """
    if not dns.is_label(asked.pod_namespace):
        return f"PodNamespace {_shown(asked.pod_namespace)} is no DNS-1123 label"
    if not dns.is_subdomain(asked.pod_name):
        return f"PodName {_shown(asked.pod_name)} is no DNS-1123 subdomain"
    if not _UID.fullmatch(asked.pod_uid):
        return f"PodUID {_shown(asked.pod_uid)} is no uid: letters, digits, '.', '_' and '-'"
    if not dns.is_subdomain(asked.node):
        return f"Node {_shown(asked.node)} is no DNS-1123 subdomain"
    return ""


def _shown(written: str) -> str:
    return ascii(written[:64])


class BindingResult(Body, frozen=True, gc=False):
    """Answer of bind; a non-empty error means that nothing was bound."""

    error: str = ""


class Victims(Body, frozen=True, gc=False):
    """Pods that in-tree preemption would remove from a node."""

    pods: tuple[core.Pod, ...] | None = None
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


class MetaPod(Body, frozen=True, gc=False):
    """A pod by its identifier alone."""

    uid: str = msgspec.field(name="UID")


class MetaVictims(Body, frozen=True, gc=False):
    """Identifiers of pods that in-tree preemption would remove from a node."""

    pods: tuple[MetaPod, ...] | None = None
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


class PreemptionArgs(Body, frozen=True, gc=False):
    """Request of preempt, with full pods or with identifiers."""

    pod: core.Pod
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class PreemptionResult(Body, frozen=True, gc=False):
    """Answer of preempt: always identifiers."""

    node_name_to_meta_victims: dict[str, MetaVictims] = {}


_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_NODE = msgspec.json.Decoder(core.Node)
