"""Built-in Kubernetes kinds as lean structs: only the fields that the system reads."""

from typing import Any

import msgspec

Quantity = str | int | float
ResourceList = dict[str, Quantity]


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of everything decoded from the API server; unknown fields are skipped."""


class OwnerReference(Wire, frozen=True, gc=False):
    """Who owns an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Wire, frozen=True, gc=False):
    """What every object carries."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> str:
        """Return ``namespace/name``, or the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """Return the owner that controls this object."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ResourceRequirements(Wire, frozen=True, gc=False):
    """Requests and limits of a container or a pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(Wire, frozen=True, gc=False):
    """A port of a container; only one with a host port takes something of its node."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(Wire, frozen=True, gc=False):
    """One container of a pod; ``restart_policy`` is set on sidecar init containers."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class Toleration(Wire, frozen=True, gc=False):
    """A taint that a pod tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class SchedulingGate(Wire, frozen=True, gc=False):
    """A gate that keeps a pod out of the scheduling queue."""

    name: str


class SchedulingGroup(Wire, frozen=True, gc=False):
    """spec.schedulingGroup: the PodGroup of scheduling.k8s.io that a pod is a member of."""

    pod_group_name: str = ""


class PodSpec(Wire, frozen=True, gc=False):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    node_selector: dict[str, str] = {}
    affinity: dict[str, Any] | None = None
    tolerations: tuple[Toleration, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    restart_policy: str = "Always"
    runtime_class_name: str = ""
    service_account_name: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    host_network: bool = False
    scheduling_group: SchedulingGroup | None = None
    topology_spread_constraints: tuple[dict[str, Any], ...] = ()
    resource_claims: tuple[dict[str, Any], ...] = ()


class Condition(Wire, frozen=True, gc=False):
    """One condition in a status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerStatus(Wire, frozen=True, gc=False):
    """How one container of a pod is doing."""

    name: str = ""
    container_id: str = msgspec.field(name="containerID", default="")
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: dict[str, Any] = {}
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    """What the runtime enforces at present; differs from the spec while a resize is under way."""


class PodStatus(Wire, frozen=True, gc=False):
    """How a pod is doing."""

    phase: str = ""
    reason: str = ""
    qos_class: str = ""
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    start_time: str | None = None
    pod_ip: str = msgspec.field(name="podIP", default="")

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this type."""
        for item in self.conditions:
            if item.type == kind:
                return item
        return None

    @property
    def unschedulable(self) -> bool:
        """Tell whether kube-scheduler found no node for the pod when it tried last."""
        found = self.condition("PodScheduled")
        return found is not None and found.status == "False" and found.reason == "Unschedulable"


class Pod(Wire, frozen=True, gc=False):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Tell whether the pod has ended and holds no resources any more."""
        return self.status.phase in {"Succeeded", "Failed"}


class PodList(Wire, frozen=True, gc=False):
    """A list of pods, as the kubelet answers on ``/pods``."""

    items: tuple[Pod, ...] = ()


class Taint(Wire, frozen=True, gc=False):
    """What keeps pods away from a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire, frozen=True, gc=False):
    """What an administrator says about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_cidr: str = msgspec.field(name="podCIDR", default="")
    provider_id: str = msgspec.field(name="providerID", default="")


class NodeAddress(Wire, frozen=True, gc=False):
    """One address of a node."""

    type: str = ""
    address: str = ""


class NodeStatus(Wire, frozen=True, gc=False):
    """What a node offers and how it is doing."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this type."""
        for item in self.conditions:
            if item.type == kind:
                return item
        return None


class Node(Wire, frozen=True, gc=False):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Tell whether the node says that it can run pods."""
        condition = self.status.condition("Ready")
        return condition is not None and condition.status == "True"


class Namespace(Wire, frozen=True, gc=False):
    """A namespace; only its labels matter to us."""

    metadata: ObjectMeta = ObjectMeta()


class ConfigMap(Wire, frozen=True, gc=False):
    """A configuration map."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


class PriorityClass(Wire, frozen=True, gc=False):
    """What a priority class name stands for."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class PodDisruptionBudgetSpec(Wire, frozen=True, gc=False):
    """What a disruption budget demands."""

    selector: dict[str, Any] | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True, gc=False):
    """What a disruption budget currently allows."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class PodDisruptionBudget(Wire, frozen=True, gc=False):
    """A disruption budget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
