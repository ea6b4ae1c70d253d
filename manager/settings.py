"""Settings of the manager."""

from typing import Literal

import pydantic

from api import names
from process.configuration import settings

BY_NODE = ("nodemetric", "nodeslo", "noderesource")
CONTROLLERS = (
    *BY_NODE,
    "scheduleexplanation",
    "registration",
    "admission",
    "quotaprofile",
    "quotastatus",
    "quotadefaults",
    "devicestatus",
    "colocationprofile",
    "profilestatus",
    "recommendation",
    "reservation",
    "topologystatus",
    "nodetopology",
    "podgroup",
    "dailysums",
)
"""The controllers there are, by the names that settings use."""


class LeaderElectionSettings(settings.Settings):
    """Which of several replicas works; all the others stand by."""

    enabled: bool = True
    """Compete for the lease; a single replica may go without."""
    name: str = "koordinator-manager"
    """Name of the lease; replicas that share it take turns."""
    namespace: str = names.NAMESPACE
    """Namespace of the lease."""
    identity: str = ""
    """Who we are in the lease; the host name and a random part when empty."""
    lease_seconds: float = pydantic.Field(default=15.0, gt=0)
    """How long a lease holds after its last renewal; the longest pause when a leader dies."""
    renew_seconds: float = pydantic.Field(default=10.0, gt=0)
    """How long a leader tries to renew before it steps down by itself."""
    retry_seconds: float = pydantic.Field(default=2.0, gt=0)
    """How long everyone waits between tries."""


class AdmissionSettings(settings.Settings):
    """The admission webhook, as the controllers registration and admission look after it."""

    configuration: str = "koord-webhook"
    """Name of both webhook configuration objects."""
    withdraw: bool = True
    """Take the webhooks out of the API server's way while no endpoint answers, and put them back;
    off where another program, such as a GitOps tool, owns the configuration objects."""
    probe_url: str = ""
    """Where to ask whether a webhook answers; empty asks where the API server asks."""
    probe_seconds: float = pydantic.Field(default=3.0, gt=0)
    """How long a probe waits for its answer."""
    period_seconds: float = pydantic.Field(default=3.0, gt=0)
    """Pause between two probes."""
    away_seconds: float = pydantic.Field(default=10.0, gt=0)
    """How long no webhook must answer before the webhooks are withdrawn."""
    back_seconds: float = pydantic.Field(default=10.0, gt=0)
    """How long a webhook must answer before they are put back; doubled each time within an hour."""


class ColocationProfileSettings(settings.Settings):
    """Applying profiles to pods that exist already; behind the gate ColocationProfileController."""

    by_default: bool = False
    """Follow every profile, not only those with the label controller-managed."""
    interval_seconds: float = pydantic.Field(default=30.0, gt=0)
    """Pause between two rounds through the waiting pods of a profile."""
    again_seconds: float = pydantic.Field(default=300.0, gt=0)
    """How long a pod is left alone after it was dealt with."""
    per_second: float = pydantic.Field(default=10.0, gt=0)
    """Pods changed per second, after the first burst."""
    burst: int = pydantic.Field(default=100, ge=1)
    """Pods changed at once."""


class RecommendationSettings(settings.Settings):
    """What is recommended to workloads."""

    period_seconds: float = pydantic.Field(default=30.0, gt=0)
    """How often the reports are looked through; half the interval of the reports misses none."""
    cpu_percentile: float = pydantic.Field(default=90.0, gt=0, le=100)
    """Which percentile of the use of cpu is recommended."""
    memory_percentile: float = pydantic.Field(default=90.0, gt=0, le=100)
    """Which percentile of the daily peaks of memory is recommended."""
    margin_percent: float = pydantic.Field(default=0.0, ge=0)
    """What is added to the recommended requests; 15 is what the vertical pod autoscaler adds."""
    least_cpu_milli: int = pydantic.Field(default=0, ge=0)
    """The smallest request of cpu that is recommended, in thousandths of a core."""
    least_memory_bytes: int = pydantic.Field(default=0, ge=0)
    """The smallest request of memory that is recommended."""


Mode = Literal["enforce", "observe", "off"]


class QuotaGatesSettings(settings.Settings):
    """Opening the gates of pods that wait for elastic quota."""

    mode: Mode = "enforce"
    """`enforce`: pods wait until their quota has room. `observe` and `off` open every gate at once;
    `observe` counts who would have waited. The live switch `quota-gates` overrules it."""
    overtakes: int = pydantic.Field(default=100, ge=-1)
    """How many pods behind one that does not fit may take what it lacks before their quota drains
    for it; 0 is a strict line, -1 sets no bound, so that a large pod may wait for ever."""
    retry_seconds: float = pydantic.Field(default=30.0, gt=0)
    """While the scheduler finds no node for a pod, how long until another one like it may try."""
    per_second: float = pydantic.Field(default=200.0, gt=0)
    """Gates opened per second, after the first burst."""
    burst: int = pydantic.Field(default=400, ge=1)
    """Gates opened at once."""
    in_flight: int = pydantic.Field(default=32, ge=1)
    """Writes under way at the same time."""
    conditions_per_second: float = pydantic.Field(default=20.0, gt=0)
    """Conditions written on waiting pods per second, of all pods together, after the first 100;
    gates that open count against it, but a tenth of it always remains."""


class QuotaReclaimSettings(settings.Settings):
    """Evicting borrowers for pods that their quota is entitled to run."""

    mode: Mode = "enforce"
    """`observe` logs and counts who would be evicted; the live switch `quota-reclaim` overrules it.
    How long a quota may use too much first is `delayEvictTime` in the arguments of ElasticQuota."""
    per_second: float = pydantic.Field(default=10.0, gt=0)
    """Evictions per second, after the first burst."""
    burst: int = pydantic.Field(default=20, ge=1)
    """Evictions at once."""


class QuotaSettings(settings.Settings):
    """Elastic quota: opening gates, reclaim, and the status of quotas."""

    gates: QuotaGatesSettings = QuotaGatesSettings()
    """Opening the gates of pods that wait."""
    reclaim: QuotaReclaimSettings = QuotaReclaimSettings()
    """Evicting borrowers."""

    status_per_second: float = pydantic.Field(default=20.0, gt=0)
    """Writes of a quota's status per second, of all quotas together, after the first burst; gates
    that open count against it, but a fifth of it always remains."""
    status_burst: int = pydantic.Field(default=200, ge=1)
    """Writes of status at once."""


class DeviceSettings(settings.Settings):
    """The status of Devices."""

    status_per_second: float = pydantic.Field(default=10.0, gt=0)
    """Writes of a Device's status per second, of all nodes together, after the first burst."""
    status_burst: int = pydantic.Field(default=100, ge=1)
    """Writes of status at once."""


class ReservationSettings(settings.Settings):
    """Reservations: the pods that stand in for them while they are placed, and their status."""

    schedulers: tuple[str, ...] = ()
    """Schedulers that call the extender; the first one places templates that name none. Empty:
    those that the annotation koord.sh/schedulers of ConfigMap koord-scheduler-config lists, which
    the chart writes, else koord-scheduler."""
    tries: int = pydantic.Field(default=12, ge=1)
    """How many stand-ins of one Reservation may end without a node before it has to be changed;
    one that waits in the scheduler for a node does not end."""
    stand_ins_per_second: float = pydantic.Field(default=10.0, gt=0)
    """Stand-ins created per second, after the first burst; each one that is placed is an error in
    the metrics of the scheduler, and lets pods that wait try again."""
    stand_ins_burst: int = pydantic.Field(default=40, ge=1)
    """Stand-ins created at once."""
    status_per_second: float = pydantic.Field(default=20.0, gt=0)
    """Writes of a Reservation's status per second, of all together, after the first burst."""
    status_burst: int = pydantic.Field(default=50, ge=1)
    """Writes of status at once."""
    uses_per_second: float = pydantic.Field(default=10.0, gt=0)
    """Further writes per second that only tell which pods use a Reservation and how much of it;
    while many owners are bound, each write takes time from the binding of others."""


class GangSettings(settings.Settings):
    """Gangs: the status of PodGroups, and the repair of gangs that fall below their minimum."""

    repair: Mode = "enforce"
    """`enforce`: a gang with the annotation `koord.sh/gang-repair: restart` that falls below its
    minimum is evicted as a whole, at most every 10 minutes. `observe` says which gangs would be;
    the live switch `gang-repair` overrules it."""
    evictions_per_second: float = pydantic.Field(default=50.0, gt=0)
    """Pods of such gangs evicted per second, of all gangs together, after the first burst."""
    evictions_burst: int = pydantic.Field(default=100, ge=1)
    """Pods evicted at once."""
    status_per_second: float = pydantic.Field(default=20.0, gt=0)
    """Writes of a PodGroup's status per second, of all together, after the first burst."""
    status_burst: int = pydantic.Field(default=200, ge=1)
    """Writes of status at once."""


class ConsoleServerSettings(settings.ServerSettings):
    """The listener of the web console, on the loopback interface of the pod.

    `kubectl port-forward` reaches it there; everything else needs another `host`.
    """

    port: int = pydantic.Field(default=8082, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""
    max_body_bytes: int = pydantic.Field(default=1024, ge=1024)
    """Largest request body; the console reads none."""
    max_connections: int = pydantic.Field(default=256, ge=1)
    """Connections at the same time; see the listener of the probes."""
    max_connections_by_address: int = pydantic.Field(default=128, ge=1)
    """Connections at the same time from one address."""
    max_pending_bytes: int = pydantic.Field(default=4 * 1024 * 1024, ge=1024)
    """Bytes of requests that are not complete, of all connections together."""


class ConsoleSettings(settings.Settings):
    """The web console, on every replica; it shows what the user's own token may list."""

    enabled: bool = False
    """Serve the console. The manager then keeps a little more of each pod, and needs to create
    TokenReviews and SubjectAccessReviews."""
    viewer: str = ""
    """User for whom requests without a token are taken, such as
    `system:serviceaccount:koordinator-system:koord-console-viewer`; empty: they are refused."""
    remember_seconds: float = pydantic.Field(default=10.0, gt=0, le=300)
    """How long the API server's answers hold: whose a token is, and what its user may read."""
    reviews_per_second: float = pydantic.Field(default=100.0, gt=0)
    """Reviews asked of the API server per second, after the first burst."""
    reviews_burst: int = pydantic.Field(default=400, ge=50)
    """Reviews asked at once."""
    server: ConsoleServerSettings = ConsoleServerSettings()
    """Where the console is served."""


class HealthSettings(settings.ServerSettings):
    """The listener for probes and scrapers, which come from outside the pod."""

    host: str = "0.0.0.0"  # noqa: S104 - see above
    """Address to listen on; `127.0.0.1` for this machine only."""
    port: int = pydantic.Field(default=8080, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class Settings(settings.Settings):
    """Everything that can be set for the manager."""

    config_namespace: str = names.NAMESPACE
    """Namespace of the configuration map of the cluster."""
    config_name: str = names.CONFIG_MAP_SLO
    """Name of the configuration map of the cluster."""
    controllers: tuple[str, ...] = ("*",)
    """Controllers to run: names, `*` for all that are not named, `-name` to leave one out."""
    workers: int = pydantic.Field(default=2, ge=1)
    """Objects that each controller works on at the same time."""
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    """Which replica works."""
    admission: AdmissionSettings = AdmissionSettings()
    """Looking after the admission webhook."""
    colocation_profile: ColocationProfileSettings = ColocationProfileSettings()
    """Applying profiles to pods that exist already."""
    recommendation: RecommendationSettings = RecommendationSettings()
    """What is recommended to workloads."""
    quota: QuotaSettings = QuotaSettings()
    """Elastic quota."""
    devices: DeviceSettings = DeviceSettings()
    """The status of Devices."""
    reservations: ReservationSettings = ReservationSettings()
    """Placing Reservations, and their status."""
    gangs: GangSettings = GangSettings()
    """The status of PodGroups, and the repair of gangs."""
    console: ConsoleSettings = ConsoleSettings()
    """The web console."""
    feature_gates: dict[str, bool] = pydantic.Field(default_factory=dict)
    """Features by name, switched on or off; an unknown name is an error."""
    health: HealthSettings = HealthSettings()
    """Where /healthz, /readyz and /metrics are served."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged and how."""

    @pydantic.field_validator("controllers")
    @classmethod
    def _known(cls, listed: tuple[str, ...]) -> tuple[str, ...]:
        for name in listed:
            if name != "*" and name.removeprefix("-") not in CONTROLLERS:
                known = ", ".join(CONTROLLERS)
                raise ValueError(f"{name} is no controller; use *, or any of {known}")
        return listed

    def is_on(self, controller: str) -> bool:
        """Whether a controller is to run: what names it counts before what means all."""
        for name in self.controllers:
            if name.removeprefix("-") == controller:
                return not name.startswith("-")
        return "*" in self.controllers
