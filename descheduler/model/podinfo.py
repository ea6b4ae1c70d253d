"""Pods as the descheduler sees them: owners, requests, state, and whether they may move."""

from collections.abc import Mapping
from typing import Final

import msgspec

from api import names
from api.koordinator.metadata import qos as qos_classes
from api.kubernetes import core
from domain.quota import placement

Amounts = Mapping[str, int]
"""By resource: milli-cores of cpu, bytes of memory, counts of everything else."""
NOTHING: Final[Amounts] = {}
ENDED: Final = frozenset({"Succeeded", "Failed"})
"""Phases in which a pod holds nothing of its node any more."""
_BATCH, _PROD = qos_classes.Band.BATCH, qos_classes.Band.PROD
_ABOVE_BANDS: Final = qos_classes.RANGES[_PROD].stop
"""The lowest priority above those of all bands."""
Likeness = tuple[str, int, int]
"""What pods of one template share: namespace, and the identity of their labels and affinity."""


class Container(msgspec.Struct, frozen=True, gc=False):
    """One container of a pod and its status."""

    name: str
    image: str = ""
    kind: str = "main"
    """main, init or ephemeral."""
    restarts: int = 0
    state: str = ""
    """running, waiting or terminated; empty where the status says nothing."""
    reason: str = ""
    """Why it waits or has ended."""
    exit_code: int | None = None
    """Of a container that has terminated."""


class Condition(msgspec.Struct, frozen=True, gc=False):
    """One condition of a pod."""

    kind: str
    status: str
    reason: str = ""
    since: float = -1.0
    """When it last changed, in seconds since the epoch; negative: not said."""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """One pod that has not been removed; `Succeeded` and `Failed` pods are kept until they are."""

    key: str
    """namespace/name."""
    uid: str
    node: str = ""
    """Empty while it waits."""
    phase: str = ""
    reason: str = ""
    """Of its status, such as Evicted or NodeAffinity of a pod that has failed."""
    priority: int | None = None
    band: qos_classes.Band = qos_classes.Band.NONE
    """The priority class by label or value, derived from the QoS class where neither says it."""
    qos: qos_classes.QoS = qos_classes.QoS.NONE
    """The class by its label."""
    kubernetes_qos: str = ""
    """Guaranteed, Burstable or BestEffort."""
    scheduler_name: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    """Those that the descheduler reads, of bounded length."""
    owners: tuple[core.OwnerReference, ...] = ()
    requests: Amounts = NOTHING
    """What the scheduler counts: containers, init containers, overhead; one of `pods`."""
    wanted: placement.Requirements = placement.NONE
    """Node selector, required node affinity and tolerations."""
    created: float = -1.0
    """Seconds since the epoch; negative: not said."""
    started: float = -1.0
    leaves_at: float = -1.0
    """deletionTimestamp; negative: it is not terminating."""
    ready: bool = False
    restarts_cost_seconds: float = 0.0
    """How long its last start took, from its creation until it was ready; 0: not known."""
    containers: tuple[Container, ...] = ()
    conditions: tuple[Condition, ...] = ()
    is_mirror: bool = False
    """Whether it is a static pod of a kubelet."""
    has_local_storage: bool = False
    """Whether it has a volume of kind hostPath or emptyDir."""
    claims: tuple[str, ...] = ()
    """Names of its PersistentVolumeClaims."""
    has_resource_claims: bool = False
    spread: tuple[Mapping[str, object], ...] = ()
    """Its topologySpreadConstraints, as written."""
    affinity: Mapping[str, object] = {}
    """Its affinity and anti-affinity to pods, as written: podAffinity and podAntiAffinity."""
    preferred_nodes: tuple[Mapping[str, object], ...] = ()
    """Its preferred node affinity terms, as written."""
    gang: str = ""
    """namespace/name of its gang; empty where it is in none."""
    flaw: str = ""
    """What of it cannot be read; such a pod must stay, since nothing is known that forbids it."""

    @property
    def namespace(self) -> str:
        """Return the namespace."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """Return the name."""
        return self.key.partition("/")[2]

    @property
    def importance(self) -> qos_classes.Band:
        """Return the band that says how early it leaves.

        A priority above all bands counts as production, also where the pod requests nothing.
        """
        if (
            self.band is _BATCH
            and (self.priority or 0) >= _ABOVE_BANDS
            and names.LABEL_PRIORITY_CLASS not in self.labels
        ):
            return _PROD
        return self.band

    @property
    def controller(self) -> core.OwnerReference | None:
        """Return the owner that controls it."""
        for owner in self.owners:  # Asked several times of every pod: no generator.
            if owner.controller:
                return owner
        return None

    @property
    def has_ended(self) -> bool:
        """Whether it holds nothing of its node any more."""
        return self.phase in ENDED

    @property
    def is_active(self) -> bool:
        """Whether it has neither ended nor is terminating."""
        return not self.has_ended and self.leaves_at < 0


def likeness(pod: Pod) -> Likeness:
    """Return what a pod shares with those that are like it; valid while one of them is held."""
    return pod.namespace, id(pod.labels), id(pod.affinity)
