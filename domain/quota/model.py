"""Inputs and results of the ElasticQuota model: rules, pods, figures, refusals. Pure.

Amounts are integers: cpu in thousandths, everything else in base units; ``pods`` counts pods.
"""

import dataclasses
import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from api import names
from api.plugin_args import job
from api.wire import quantity

Amounts = Mapping[str, int]
Pairs = tuple[tuple[str, int], ...]

EMPTY: Final[Amounts] = MappingProxyType({})
PODS: Final = "pods"

_MOST_NAMED: Final = 8
_LONGEST_NAME: Final = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """How quotas are counted and enforced: the arguments of plug-in ElasticQuota and its gates."""

    runtime: bool = True
    """Limit by the runtime quota; by the cap otherwise."""
    check_parents: bool = False
    """Check every ancestor too."""
    scale_min: bool = True
    """Scale the minimum of siblings down where their parent has less than all of them."""
    guarantee: bool = False
    """What is allocated or guaranteed is not lent (gate ElasticQuotaGuaranteeUsage)."""
    multi_tree: bool = True
    """A tree identifier makes a tree with a total of its own (gate MultiQuotaTree)."""
    default_quota: bool = True
    """Pods without a quota count in the default quota (off: gate DisableDefaultQuota)."""
    half_life: float = 0.0
    """Half-life in seconds of what quotas have borrowed, which changes their weights; 0: off."""
    default_max: Amounts = dataclasses.field(default_factory=dict)
    """Cap of the default quota where no object says otherwise."""
    system_max: Amounts = dataclasses.field(default_factory=dict)
    """Cap of the system quota where no object says otherwise."""


def rules(args: job.ElasticQuotaArgs) -> Rules:
    """Read the rules from the arguments of the plug-in, its feature gates among them."""
    gates = args.feature_gates
    return Rules(
        guarantee=bool(gates.guarantee_usage),
        multi_tree=gates.multi_quota_tree is not False,
        default_quota=not gates.disable_default_quota,
        runtime=args.enable_runtime_quota,
        check_parents=args.enable_check_parent_quota,
        scale_min=args.enable_min_quota_scale,
        half_life=args.borrow_half_life,
        default_max=quantity.amounts(args.default_quota_group_max),
        system_max=quantity.amounts(args.system_quota_group_max),
    )


class PodUse(msgspec.Struct, frozen=True, gc=False):
    """What one pod means to its quota; `quota` is the label, empty where it has none.

    `assigned` pods count as used, all of them as requested. `requests` leaves out ``pods``.
    """

    uid: str
    quota: str
    namespace: str
    requests: Pairs
    assigned: bool
    preemptible: bool = True


class Bounds(NamedTuple):
    """What says how much room one quota has, by resource name; see `Figures`."""

    limit: Amounts
    minimum: Amounts
    scaled_minimum: Amounts
    used: Amounts
    non_preemptible_used: Amounts


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """All figures of one quota, by resource name."""

    cap: Amounts
    """The smaller of max and hard."""
    minimum: Amounts
    """What is guaranteed, as written."""
    scaled_minimum: Amounts
    """What is guaranteed after min scaling."""
    limit: Amounts
    """What its pods may use now: the runtime quota, or the cap."""
    runtime: Amounts
    """The runtime quota: its share by water filling."""
    request: Amounts
    """`child_request`, raised to the minimum where it is not lent."""
    child_request: Amounts
    """What its own pods and its children ask for."""
    limited_request: Amounts
    """`request` up to the cap: what its parent shares out by."""
    used: Amounts
    """Requests of assigned pods of it and its descendants."""
    non_preemptible_used: Amounts
    """The part of `used` that is never preempted."""
    non_preemptible_request: Amounts
    """Requests of pods that are never preempted."""
    self_used: Amounts
    """Requests of its own assigned pods."""
    self_request: Amounts
    """Requests of its own pods."""
    guaranteed: Amounts
    """The larger of `allocated` and the minimum."""
    allocated: Amounts
    """What is used; where nothing is lent, for a parent what its children guarantee."""


class Kind(enum.Enum):
    """Which bound a pod would exceed."""

    LIMIT = "limit"
    """The limit of its quota."""
    NON_PREEMPTIBLE = "non-preemptible"
    """The minimum, which bounds pods that are never preempted."""
    PARENT = "parent"
    """The limit of an ancestor."""


@dataclasses.dataclass(frozen=True, slots=True)
class Shortage:
    """Why a pod has to wait for quota."""

    quota: str
    kind: Kind
    limit: Amounts
    used: Amounts
    requested: Amounts
    exceeded: tuple[str, ...]
    path: tuple[str, ...] = ()
    """For an ancestor's limit: the quotas from the root to the pod's own."""

    def text(self) -> str:
        """Return one bounded sentence in the words that users of ElasticQuota know."""
        title, bound, used = _WORDS[self.kind]
        place = f"quotaName: {_short(self.quota)}"
        if self.path:
            place = f"quotaNameTopo: [{' '.join(_short(name) for name in _ends(self.path))}]"
        figures = ", ".join(
            f"{word}: {_listed(amounts, self.exceeded)}"
            for word, amounts in (
                (bound, self.limit),
                (used, self.used),
                ("pod's request", self.requested),
            )
        )
        over = " ".join(_short(name) for name in self.exceeded[:_MOST_NAMED])
        more = " …" if len(self.exceeded) > _MOST_NAMED else ""
        return f"Insufficient {title}, {place}, {figures}, exceedDimensions: [{over}{more}]"


_WORDS: Final[Mapping[Kind, tuple[str, str, str]]] = {
    Kind.LIMIT: ("quotas", "runtime", "used"),
    Kind.PARENT: ("quotas", "runtime", "used"),
    Kind.NON_PREEMPTIBLE: ("non-preemptible quotas", "min", "nonPreemptibleUsed"),
}


class Round(NamedTuple):
    """One round of sharing out among the quotas that want more than their minimum."""

    priority: int
    remaining: int
    """What was shared out in this round, among all."""
    weights: int
    """Sum of the weights of those who took part."""
    given: int
    """What this quota got."""
    returned: int
    """What this quota gave back, because it asked for less."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """How the runtime of one quota in one resource comes about, below one parent."""

    quota: str
    parent: str
    resource: str
    total: int
    """What the parent shares out."""
    minimum: int
    minimums: int
    """Sum of the minimums of all children of that parent."""
    scaled_minimum: int
    guaranteed: int
    """What is kept whatever others ask for: the scaled minimum, or with guarantee what is used."""
    request: int
    """The limited request."""
    weight: int
    lends: bool
    joined: bool
    """Whether it asks for more than is guaranteed and so takes part in the sharing."""
    remaining: int
    """What is left of the total once every child has its first part."""
    rounds: tuple[Round, ...]
    runtime: int


def amount_text(resource: str, value: int) -> str:
    """Write one amount as ``name:quantity``."""
    return f"{_short(resource)}:{quantity.text(resource, value)}"


def _listed(amounts: Amounts, first: tuple[str, ...]) -> str:
    chosen = [name for name in first if name in amounts][:_MOST_NAMED]
    chosen += [name for name in sorted(amounts) if name not in first][: _MOST_NAMED - len(chosen)]
    more = ",…" if len(amounts) > len(chosen) else ""
    return ",".join(amount_text(name, amounts[name]) for name in sorted(chosen)) + more


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _ends(path: tuple[str, ...]) -> tuple[str, ...]:
    half = _MOST_NAMED // 2
    return path if len(path) <= _MOST_NAMED else (*path[:half], "…", *path[-half:])


def positive(amounts: Amounts) -> dict[str, int]:
    """Return amounts without anything below zero, in the order of resource names."""
    return {name: max(0, amounts[name]) for name in sorted(amounts)}


def is_reserved(name: str) -> bool:
    """Whether a quota stands outside the tree, or is its root."""
    return name in names.RESERVED_QUOTAS
