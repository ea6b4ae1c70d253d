"""What a DeschedulerConfiguration says besides its profiles."""

from typing import Annotated, Final, Literal, Self

import pydantic
from pydantic import Field

from api import names
from api.plugin_args.arguments import Arguments, Duration
from descheduler.configuration import addresses
from descheduler.configuration.arguments import parts

COMPONENT: Final = "koord-descheduler"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"


def _address(value: str) -> str:
    return str(addresses.parse(value))


Address = Annotated[str, pydantic.AfterValidator(_address)]


class LeaderElection(Arguments):
    """Which of several replicas works."""

    leader_elect: bool = True
    """Hold a Lease while working."""
    lease_duration: Annotated[Duration, Field(gt=0)] = 15.0
    """How long a replica that does not renew its lease is waited for."""
    renew_deadline: Annotated[Duration, Field(gt=0)] = 10.0
    """How long the leader tries to renew before it stops working."""
    retry_period: Annotated[Duration, Field(gt=0)] = 2.0
    """How often it is tried."""
    resource_lock: Literal["leases"] = "leases"
    """What is held: a Lease."""
    resource_name: parts.Name = COMPONENT
    """Name of the Lease."""
    resource_namespace: parts.Name = names.NAMESPACE
    """Namespace of the Lease."""

    @pydantic.model_validator(mode="after")
    def _times_are_ordered(self) -> Self:
        if not self.leader_elect:
            return self
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("leaseDuration: must be longer than renewDeadline; raise it")
        if self.renew_deadline <= 1.2 * self.retry_period:
            raise ValueError("renewDeadline: must be 1.2 times retryPeriod at least; raise it")
        return self


class ClientConnection(Arguments):
    """How the API server is called."""

    kubeconfig: str = ""
    """File to log in with; empty logs in as the pod does."""
    accept_content_types: str = f"{_PROTOBUF},application/json"
    """Kept for compatibility: pods are read in protobuf, other kinds in JSON."""
    content_type: str = _PROTOBUF
    """Kept for compatibility: objects are written in JSON."""
    qps: Annotated[float, Field(ge=0)] = 50.0
    """Requests per second."""
    burst: parts.Whole = 100
    """Requests at once after a pause."""


class HourlyLimits(Arguments):
    """How many pods are moved within an hour at most; this product's addition to the file."""

    node: parts.Whole | None = None
    """From one node; not limited when missing."""
    namespace: parts.Whole | None = None
    """Of one namespace."""
    workload: parts.Whole | None = None
    """Of one workload."""
    total: parts.Whole | None = None
    """Altogether."""


class Head(Arguments):
    """Everything but the profiles."""

    leader_election: LeaderElection = LeaderElection()
    """Which of several replicas works."""
    client_connection: ClientConnection = ClientConnection()
    """How the API server is called."""
    enable_profiling: bool = True
    """Serve profiles of the process under /debug."""
    enable_contention_profiling: bool = True
    """Kept for compatibility, without effect."""
    healthz_bind_address: Address = str(addresses.Address())
    """Where /healthz is served."""
    metrics_bind_address: Address = str(addresses.Address())
    """Where /metrics is served."""
    descheduling_interval: Duration = 0.0
    """How often a round runs; 0 runs one round after each start."""
    dry_run: bool = False
    """Plan and report, and move no pod."""
    node_selector: parts.LabelSelector | None = None
    """Nodes that are looked at; all when missing."""
    max_no_of_pods_to_evict_per_node: parts.Whole | None = None
    """Pods that one round moves from one node; not limited when missing."""
    max_no_of_pods_to_evict_per_namespace: parts.Whole | None = None
    """Pods of one namespace that one round moves."""
    max_no_of_pods_to_evict_per_workload: parts.Whole | None = None
    """Pods of one workload that one round moves; this product's addition to the file."""
    max_no_of_pods_to_evict_total: parts.Whole | None = None
    """Pods that one round moves altogether."""
    max_no_of_pods_to_evict_per_hour: HourlyLimits = HourlyLimits()
    """Pods that an hour moves; this product's addition to the file."""
    cool_down: Duration = 1800.0
    """How long the successor of a moved pod stays where it is; this product's addition."""
    move_whole_gangs: bool = False
    """Move all pods of a gang together where one alone would cost it its quorum; else they stay.
    This product's addition."""
