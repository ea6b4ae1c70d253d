"""Everything a checkup knows about a cluster, as plain values."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import yaml

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import durations
from cli import reading
from domain.pods import profiles

MANAGER_LEASE: Final = "koordinator-manager"
OWN_CERTIFICATES: Final = "koord-webhook-certificates"
"""The Secret in which the webhook keeps what it issues itself."""

T = TypeVar("T")
Raw: TypeAlias = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that could not be learned, and why."""

    what: str
    reason: str
    remedy: str = (
        "make it readable for the account that runs this (permission, network), and run it again"
    )


class UnknownError(LookupError):
    """A check needs a fact that could not be learned."""

    def __init__(self, unknown: Unknown) -> None:
        self.unknown = unknown
        super().__init__(f"{unknown.what}: {unknown.reason}")


def given(answer: T | Unknown) -> T:
    """Return a fact, or end the check that needs it."""
    if isinstance(answer, Unknown):
        raise UnknownError(answer)
    return answer


Answer: TypeAlias = T | Unknown


@dataclasses.dataclass(frozen=True, slots=True)
class Version:
    """A Kubernetes version."""

    major: int
    minor: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Pod:
    """What matters of a pod."""

    namespace: str
    name: str
    node: str
    phase: str
    scheduler: str
    labels: Mapping[str, str]
    gates: tuple[str, ...]
    owner: tuple[str, str]
    """Kind and name of the controller."""
    is_batch: bool
    """Whether it asks for lent resources."""
    stored: profiles.Stored
    """What tells whether profiles were applied to it."""
    uid: str = ""
    quota_condition: bool = False
    """Whether it carries the condition koord.sh/QuotaAvailable ..."""
    has_quota: bool = False
    """... and that says that the quota had room."""

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more or will."""
        return self.phase in ("Succeeded", "Failed")


@dataclasses.dataclass(frozen=True, slots=True)
class Certificates:
    """The public part of what the Secret of the webhook holds."""

    secret: str
    leaf: bytes | None = None
    authorities: tuple[bytes, ...] = ()
    exists: bool = True
    """Whether there is such a Secret."""

    @property
    def is_foreign(self) -> bool:
        """Whether another issuer than the webhook fills the Secret."""
        return self.secret != OWN_CERTIFICATES


@dataclasses.dataclass(frozen=True, slots=True)
class Probe:
    """What the API server said to dry runs of pods."""

    namespace: str
    mutated: Answer[bool]
    """Whether the mutating webhook changed a pod that it has to change."""
    refused: Answer[bool]
    """Whether the validating webhook refused a pod that it has to refuse."""


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """A permission that an account needs, and whether it has it."""

    subject: str
    verb: str
    resource: str
    namespace: str
    allowed: bool


@dataclasses.dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """A KubeSchedulerConfiguration and where it was found."""

    source: str
    document: Answer[Raw]
    beside: bool
    """Whether it is that of our own scheduler Deployment, not of the cluster's scheduler."""
    replicas: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Clock:
    """Our clock and the API server's at one moment, in seconds since the epoch."""

    ours: float
    server: float


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """All facts; each may be unknown by itself."""

    namespace: str
    now: float
    """Seconds since the epoch, by the API server's clock where that is known."""
    clock: Answer[Clock]
    version: Answer[Version]
    crds: Answer[Mapping[str, Raw]]
    deployments: Answer[Sequence[Raw]]
    daemon_sets: Answer[Sequence[Raw]]
    pods: Answer[Sequence[Pod]]
    nodes: Answer[Sequence[Raw]]
    node_metrics: Answer[Sequence[Raw]]
    node_slos: Answer[Sequence[Raw]]
    config_maps: Answer[Mapping[str, Raw]]
    """Those in our namespace."""
    leases: Answer[Mapping[str, Raw]]
    """Those in our namespace."""
    certificates: Answer[Certificates]
    webhooks: Answer[Sequence[Raw]]
    """Every webhook configuration object."""
    endpoints: Answer[Sequence[Raw]]
    """EndpointSlices of the webhook's Service."""
    probe: Answer[Probe]
    scheduler_configs: Answer[Sequence[SchedulerConfig]]
    own_access: Answer[Sequence[Access]]
    service_access: Answer[Sequence[Access]]
    namespaces: Answer[Sequence[Raw]]
    profiles: Answer[Sequence[Raw]]
    """ClusterColocationProfiles."""
    quotas: Answer[Sequence[Raw]]
    """ResourceQuotas."""
    elastic_quotas: Answer[Sequence[Raw]]
    """ElasticQuotas of all three groups."""
    limit_ranges: Answer[Sequence[Raw]]
    horizontal: Answer[Sequence[Raw]]
    vertical: Answer[Sequence[Raw]]
    unreadable: Answer[Sequence[str]]
    """Objects of an unexpected shape, which are left out of all others."""
    devices: Answer[Sequence[Raw]] = ()
    resource_slices: Answer[Sequence[Raw]] = ()
    """What drivers of Dynamic Resource Allocation offer."""


def version_of(answer: Raw) -> Version:
    """Read what `/version` says; vendors append signs to the minor number."""
    text = str(answer.get("gitVersion", ""))
    minor = "".join(sign for sign in str(answer.get("minor", "")) if sign.isdigit())
    major = "".join(sign for sign in str(answer.get("major", "")) if sign.isdigit())
    if not minor or not major:
        parts = text.removeprefix("v").split(".")
        major, minor = (parts[0], parts[1]) if len(parts) > 1 else ("0", "0")
    return Version(int(major), int(minor), text)


def pod_of(pod: core.Pod) -> Pod:
    """Keep what matters of a pod."""
    owner = next((o for o in pod.metadata.owner_references if o.controller), None)
    asked = [
        name
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for name in (*container.resources.requests, *container.resources.limits)
    ]
    condition = pod.status.condition(names.CONDITION_QUOTA)
    return Pod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        node=pod.spec.node_name,
        phase=pod.status.phase,
        scheduler=pod.spec.scheduler_name,
        labels=pod.metadata.labels,
        gates=tuple(gate.name for gate in pod.spec.scheduling_gates),
        owner=(owner.kind, owner.name) if owner is not None else ("", ""),
        is_batch=any(name in BORROWED for name in asked),
        stored=profiles.Stored(
            pod.metadata.labels,
            {key: text for key, text in pod.metadata.annotations.items() if key != LAST_APPLIED},
            pod.spec.priority_class_name,
            pod.spec.scheduler_name,
            qos.band_of_pod(pod),
            names.CPU in asked or names.MEMORY in asked,
        ),
        uid=pod.metadata.uid,
        quota_condition=condition is not None,
        has_quota=condition is not None and condition.status == "True",
    )


BORROWED = frozenset((*names.BATCH_RESOURCES, *names.MID_RESOURCES))
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def pods_of(raw: Sequence[Raw]) -> tuple[Pod, ...]:
    """Read pods from their objects."""
    return tuple(pod_of(msgspec.convert(one, core.Pod)) for one in raw)


def meta(thing: Raw, part: str) -> Mapping[str, Any]:
    """Return the labels or the annotations of an object."""
    return (thing.get("metadata") or {}).get(part) or {}


def name(thing: Raw) -> str:
    """Return the name of an object."""
    return str((thing.get("metadata") or {}).get("name", ""))


def key(thing: Raw) -> str:
    """Return the namespace, where there is one, and the name of an object."""
    namespace = (thing.get("metadata") or {}).get("namespace")
    return f"{namespace}/{name(thing)}" if namespace else name(thing)


def is_ours(thing: Raw) -> bool:
    """Whether an object came with an installation of this product."""
    labels = meta(thing, "labels")
    return all(labels.get(label) == value for label, value in names.INSTALLED.items())


def component(thing: Raw) -> str:
    """Return which of our components an object belongs to."""
    return str(meta(thing, "labels").get(names.LABEL_COMPONENT, ""))


def stated(spec: Raw, word: str) -> Sequence[Any]:
    """Return a list in an object, empty where it is absent or null."""
    return tuple(spec.get(word) or ())


def pod_spec(workload: Raw) -> Raw:
    """Return the spec of the pods of a Deployment or DaemonSet."""
    return ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}


def containers(workload: Raw) -> Sequence[Raw]:
    """Return the containers of a Deployment or DaemonSet."""
    return stated(pod_spec(workload), "containers")


def images(workload: Raw) -> list[str]:
    """Return the images of a Deployment's or DaemonSet's containers."""
    return [str(container.get("image", "")) for container in containers(workload)]


def settings(config_maps: Mapping[str, Raw], process: str) -> Raw:
    """Return the settings of one of our processes, empty where none can be read."""
    data = (config_maps.get(f"koord-{process}") or {}).get("data") or {}
    try:
        written = yaml.safe_load(str(data.get("settings.yaml", "")))
    except (yaml.YAMLError, *reading.UNREADABLE):
        return {}
    return written if isinstance(written, Mapping) else {}


def section(settings: Raw, name: str) -> Raw:
    """Return a group of settings, empty where it is none."""
    group = settings.get(name)
    return group if isinstance(group, Mapping) else {}


def lease_age(lease: Raw, now: float) -> float | None:
    """Return for how many seconds a Lease was not renewed; None while it has no holder."""
    spec = lease.get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return None
    return now - durations.timestamp(str(spec["renewTime"]))


def leaderless(known: Facts) -> str:
    """Return why no manager leads, empty where one does."""
    where = f"{known.namespace}/{MANAGER_LEASE}"
    lease = given(known.leases).get(MANAGER_LEASE)
    if lease is None:
        return f"there is no Lease {where}"
    age = lease_age(lease, known.now)
    if age is None:
        return f"no process holds Lease {where}"
    spec = lease.get("spec") or {}
    if age > float(spec.get("leaseDurationSeconds") or 15):
        return f"{spec.get('holderIdentity')} renewed Lease {where} {age:.0f} s ago"
    return ""
