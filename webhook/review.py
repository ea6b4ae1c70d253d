"""Review in, Decision out: the vocabulary of every admission rule."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from api import names
from api.koordinator import colocation
from api.kubernetes.webhooks import admission
from domain.pods import namespace_limits, profile_effects, required_labels
from domain.quota.tree import quota_trees

JSON = Any
Pod = Mapping[str, JSON]

BAD_REQUEST = 400
FORBIDDEN = 403
EXISTS = 409
FAILED = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Review:
    """One admission request, as far as rules look at it."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    namespace: str
    object: Pod
    old: Pod | None = None
    name: str = ""
    user: str = ""
    """Name of the user who asks."""
    groups: tuple[str, ...] = ()
    """Groups of the user who asks."""
    dry_run: bool = False
    """Whether the object is tried only and will not be stored."""
    resource: tuple[str, str] = ("", "pods")
    """Group and plural of what the object is."""
    subresource: str = ""
    """The part of the resource that is written, such as status; empty for the object itself."""
    bound: Pod | None = None
    """The stored pod that a binding is about, where it was asked for and found."""
    pods: tuple[str, ...] = ()
    """Pods that were asked for and found, ``namespace/name`` each."""
    quotas: Mapping[str, Sequence[quota_trees.Member]] = dataclasses.field(default_factory=dict)
    """Quotas by the name that was asked for; names that could not be looked up are left out."""
    over_quota: str = ""
    """Why the quota of the pod was not charged, where it was asked and has no room."""


class PodQuery(NamedTuple):
    """A selection of pods that have not finished."""

    labels: str
    """Label selector."""
    namespace: str = ""
    """All namespaces when empty."""


class Charge(NamedTuple):
    """A pod that its quota has to have room for; cpu in milli, the rest in whole units."""

    quota: quota_trees.Member
    requests: Mapping[str, int]
    writes: bool = True
    """Whether the quota is charged, and not only asked."""


class Needs(NamedTuple):
    """What a review has to know that no watch keeps; it is read before the decision."""

    bound: bool = False
    """The stored pod of a binding."""
    pods: tuple[PodQuery, ...] = ()
    """A few pods of each selection."""
    quotas: tuple[str, ...] = ()
    """The quotas with these names, in every group and namespace."""
    charge: Charge | None = None
    """What the quota of a pod is charged with, if it has room."""


NO_NEEDS: Final = Needs()


def of(asked: admission.Request) -> Review:
    """Return the question that a request puts to rules."""
    body = asked.object or {}
    if asked.operation == "DELETE":
        body = asked.old_object or {}
    metadata = section(body, "metadata")
    namespace = asked.namespace or metadata.get("namespace")
    return Review(
        asked.operation,
        namespace if isinstance(namespace, str) else "",
        body,
        asked.old_object,
        name=asked.name,
        user=asked.user_info.username,
        groups=tuple(asked.user_info.groups),
        dry_run=bool(asked.dry_run),
        resource=(asked.resource.group, asked.resource.resource),
        subresource=asked.sub_resource,
    )


def section(body: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    """Return a nested object, an empty one where it is missing or none."""
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


PriorityClass = profile_effects.PriorityClass
Effect = profile_effects.Effect


@dataclasses.dataclass(frozen=True, slots=True)
class Binding:
    """Who may bind pods to nodes, and where that is asked."""

    users: tuple[str, ...] = ()
    """Parts of user names; no user is refused while it is empty."""
    namespaces: tuple[str, ...] = ("*",)
    """Namespaces that are looked at; * stands for all."""
    excluded: tuple[str, ...] = ()
    """Namespaces that are not looked at."""
    labels: tuple[str, ...] = (names.LABEL_BINDING_ADMISSION_BYPASS,)
    """A pod with one of these labels may be bound by anybody."""
    annotations: tuple[str, ...] = ()
    """A pod with one of these annotations may be bound by anybody."""


@dataclasses.dataclass(frozen=True, slots=True)
class Writers:
    """Who may write what schedulers and admission write on pods."""

    accounts: frozenset[str] = frozenset()
    """Full user names."""
    groups: frozenset[str] = frozenset()
    """Groups of users."""


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """The part of the cluster that admission decides on; nothing changes it while a rule looks."""

    profiles: Sequence[colocation.ClusterColocationProfile]
    namespaces: Mapping[str, Mapping[str, str]]
    """Namespace name to its labels."""
    priority_classes: Mapping[str, PriorityClass]
    draw: Callable[[str], int]
    """A number in [0, 100) for the profile of this name; a random source is the caller's."""
    gates: frozenset[str] = frozenset()
    """The feature gates that are on."""
    trees: quota_trees.Trees = quota_trees.NONE
    """Quotas and the nodes of their trees."""
    opens_gates: bool = False
    """Whether pods of a quota wait behind a gate, because a controller opens it."""
    plans_gangs: bool = False
    """Whether members of gangs wait behind a gate, because the extender opens it."""
    gang_backlog: bool = False
    """Whether kube-scheduler is so far behind with members of gangs that small ones are complete
    before it tries their first member: then they need no gate."""
    gang_schedulers: frozenset[str] = frozenset()
    """Schedulers whose extender places gangs as a whole."""
    charges_quotas: bool = False
    """Whether pods are refused that their quota has no room for."""
    limits: Mapping[str, Sequence[tuple[str, namespace_limits.Limits]]] | None = None
    """What LimitRanges and ResourceQuotas demand, by namespace; None while that is not known."""
    namespace: str = names.NAMESPACE
    """Our own namespace."""
    nodes: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """Node name to its labels."""
    settings: Mapping[str, str] | None = None
    """The cluster settings, as they are written."""
    names_required: bool = False
    """Whether entries of the cluster settings need a name of their own."""
    demanded: Sequence[required_labels.Rule] = ()
    """Labels that every pod has to carry."""
    binding: Binding = Binding()
    """Who may bind pods."""
    writers: Writers = Writers()
    """Who may write protected fields of pods."""

    def but(self, **parts: Any) -> "Picture":
        """Return a picture with some parts replaced."""
        return dataclasses.replace(self, **parts)


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: one of a fixed set of groups and a sentence per fault."""

    group: str
    reasons: tuple[str, ...]
    code: int = BAD_REQUEST
    causes: tuple[str, ...] = ()
    """The reasons as constant words, in the same order, where a rule has words for them."""

    @property
    def message(self) -> str:
        """One sentence for the person who sees the answer."""
        if len(self.reasons) == 1:
            return self.reasons[0]
        return f"[{', '.join(self.reasons)}]"


class Fault(NamedTuple):
    """One thing that is wrong with an object."""

    reason: str
    """One of few constant words."""
    text: str
    """The sentence for the person who sees the answer: the field, what is wrong, the remedy."""


class Findings(NamedTuple):
    """What is wrong and what is doubtful with an object, a sentence each."""

    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """The answer to one review."""

    refusal: Refusal | None = None
    object: Pod | None = None
    """The object to store instead of the one sent; None leaves it as it is."""
    warnings: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    """Which field was changed by whom, from what to what."""
    note: str = ""
    """The decision in one word, where there are several ways to the same answer."""
