"""Settings of the extender."""

from pathlib import Path
from typing import Literal

import pydantic

from api import names
from api.plugin_args import node
from domain.scheduler_settings import known_names, load_aware
from domain.usage import load
from process.configuration import settings


class LoadAwareSettings(node.LoadAwareSchedulingArgs):
    """Keep pods away from nodes that are busier than they look."""

    def arguments(self) -> load.Arguments:
        """Return the values with defaults filled in, as the arithmetic wants them."""
        return load_aware.arguments(self)


class PluginSettings(settings.Settings):
    """Which plug-ins are asked and with which arguments."""

    enabled: tuple[str, ...] = known_names.ENABLED
    """Plug-ins in the order in which they filter."""
    weights: dict[str, int] = pydantic.Field(
        default_factory=lambda: {
            "Coscheduling": 1,
            "LoadAware": 1,
            "Reservation": 1,
            "DeviceShare": 1,
        }
    )
    """How much each scorer counts; a scorer without a weight does not."""
    load_aware: LoadAwareSettings = LoadAwareSettings()
    """Arguments of LoadAware."""


class BindSettings(settings.Settings):
    """How a pod is bound."""

    deadline_seconds: float = pydantic.Field(default=25.0, gt=0)
    """Time for one bind call; keep it under the httpTimeout of the scheduler's bind entry."""
    start_seconds: float = pydantic.Field(default=5.0, gt=0)
    """Time from the check of a pod until its write must have left, else it is held back; keep it
    under the scheduler's lease, so that a process that stood still cannot bind after a takeover."""
    write_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time for one request to the API server before its outcome counts as unknown."""
    read_seconds: float = pydantic.Field(default=5.0, gt=0)
    """Time for asking the API server where a pod is; with the write it must fit the deadline."""
    promise_seconds: float = pydantic.Field(default=30.0, gt=0)
    """How long a placement counts that the watch has not confirmed; then the pod is read back."""
    captures_per_second: float = pydantic.Field(default=20.0, gt=0)
    """Reservations placed per second, after the first burst: to kube-scheduler each one is a bind
    that failed, which lets pods that wait try again."""
    captures_burst: int = pydantic.Field(default=50, ge=1)
    """Reservations placed at once."""


class FreshnessSettings(settings.Settings):
    """When the view of the cluster is trusted."""

    idle_seconds: float = pydantic.Field(default=10.0, gt=0)
    """After so long without a call the view is proven current before answering: the extender writes
    an annotation on its own pod (`namespace`, `instance`) and waits until its watch delivers it."""
    proof_seconds: float = pydantic.Field(default=1.5, gt=0)
    """Time for that proof; keep it under the httpTimeout of the scheduler's filter entry."""
    silence_seconds: float = pydantic.Field(default=65.0, gt=0)
    """A watch that tells nothing for longer is opened again; bookmarks come about every minute."""
    stale_seconds: float = pydantic.Field(default=60.0, gt=0)
    """After so long without a word while watches fail, nothing is answered but why not."""


class ExplanationSettings(settings.Settings):
    """ScheduleExplanations: why pods wait, written beside the calls."""

    write: bool = True
    """Answer ScheduleExplanations about pods that no node takes."""
    create: bool = True
    """Make one for such a pod where there is none; otherwise only what people ask is answered."""
    most: int = pydantic.Field(default=500, ge=0)
    """How many that were made here may exist; where few are left, namespaces share them evenly."""
    after_seconds: float = pydantic.Field(default=2.0, ge=0)
    """How long a pod has to wait before anything is written about it."""
    per_second: float = pydantic.Field(default=2.0, gt=0)
    """Answers written per second in the long run ..."""
    burst: int = pydantic.Field(default=20, ge=1)
    """... and at once."""
    refresh_seconds: float = pydantic.Field(default=60.0, gt=0)
    """After how long an answer that still holds is confirmed."""
    ttl_seconds: float = pydantic.Field(default=3600.0, ge=0)
    """Lifetime of what is made here after its last confirmation; 0 for ever."""


class NudgeSettings(settings.Settings):
    """Waking pods that a change of ours lets fit, since the scheduler does not see it."""

    enabled: bool = True
    """Wake them; otherwise they wait for an event of the scheduler's own, at most five minutes."""
    per_second: float = pydantic.Field(default=10.0, gt=0)
    """Pods woken per second in the long run ..."""
    burst: int = pydantic.Field(default=20, ge=1)
    """... and at once."""
    in_line_per_second: float = pydantic.Field(default=100.0, gt=0)
    """Pods woken per second for freed quota, no more than it has room for, in the long run ..."""
    in_line_burst: int = pydantic.Field(default=200, ge=1)
    """... and at once."""
    pause_seconds: float = pydantic.Field(default=2.0, ge=0)
    """How long after an attempt or a wake-up a pod is left alone; the scheduler's longest back-off
    (podMaxBackoffSeconds)."""
    most: int = pydantic.Field(default=5000, ge=0)
    """How many waiting pods are remembered, to be woken and explained; namespaces share them evenly
    where there are more."""


class OverlapSettings(settings.Settings):
    """What is done about allocations that two pods of one node hold at once."""

    evict: bool = True
    """Evict the pod that was bound later; otherwise it is only told."""
    per_second: float = pydantic.Field(default=0.2, gt=0)
    """Evictions per second in the long run ..."""
    burst: int = pydantic.Field(default=5, ge=1)
    """... and at once."""


class PreemptionSettings(settings.Settings):
    """Preemption for what kube-scheduler does not count, such as quota."""

    mode: Literal["enforce", "observe", "off"] = "enforce"
    """`observe` only says whom it would evict; the live switch `preemption` comes before this."""
    candidate_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Nodes are candidates for so long after kube-scheduler's own filters let the pod pass there;
    only an extender that was asked about the pod within that time evicts anybody for it."""
    hold_seconds: float = pydantic.Field(default=30.0, gt=0)
    """How long what was freed is kept for the pod after its victims have left."""
    longest_seconds: float = pydantic.Field(default=3600.0, gt=0)
    """Pods whose grace period is longer are never victims."""
    per_second: float = pydantic.Field(default=5.0, gt=0)
    """Pods for which victims are sought per second in the long run ..."""
    burst: int = pydantic.Field(default=20, ge=1)
    """... and at once."""
    cool_down_seconds: float = pydantic.Field(default=10.0, gt=0)
    """How long a pod is left alone after preempting in vain; twice as long each further time ..."""
    longest_cool_down_seconds: float = pydantic.Field(default=300.0, gt=0)
    """... up to this."""
    budget_seconds: float = pydantic.Field(default=60.0, gt=0)
    """How long a pod is no victim after a disruption budget has refused its eviction."""


class GangSettings(settings.Settings):
    """Gangs: planned as a whole, held as a whole, and opened together."""

    plan_seconds: float = pydantic.Field(default=60.0, gt=0)
    """How long the places of a plan are kept for its members, and ..."""
    member_seconds: float = pydantic.Field(default=0.05, ge=0)
    """... this for each of them besides: kube-scheduler takes them one after the other."""
    back_off_seconds: float = pydantic.Field(default=60.0, gt=0)
    """How long a gang that finds no room is left alone at most, where nothing is freed."""
    look_again_seconds: float = pydantic.Field(default=30.0, gt=0)
    """After how long it is planned anew in any case."""
    partial_seconds: float = pydantic.Field(default=8.0, gt=0)
    """How long members may be bound without their gang, after an interruption in the middle of its
    Bindings; then they are evicted, unless more of them are bound every other second or the gang is
    NonStrict. With the time that a restart takes, they have left within ten seconds."""
    backlog_members: int = pydantic.Field(default=16, ge=0)
    """With so many members that have a place and that kube-scheduler has not placed yet, members of
    new small gangs are admitted without a gate; 0: never."""
    writers: int = pydantic.Field(default=24, ge=1)
    """Gates that are opened at once, of all gangs together."""
    conditions_per_second: float = pydantic.Field(default=50.0, gt=0)
    """Conditions written on members per second in the long run ..."""
    conditions_burst: int = pydantic.Field(default=1000, ge=1)
    """... and at once."""


class VerbServer(settings.ServerSettings):
    """The listener for kube-scheduler, which runs beside us."""

    port: int = pydantic.Field(default=9211, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""
    max_connections: int = pydantic.Field(default=8192, ge=1)
    """Connections at the same time. kube-scheduler has one for each bind that is held, which are as
    many as a gang has members; where one of them gives way the member is tried again."""
    max_connections_by_address: int = pydantic.Field(default=8192, ge=1)
    """The same from one address: all calls of a kube-scheduler come from one."""


class HealthServer(settings.ServerSettings):
    """The listener for probes, scrapers and people."""

    port: int = pydantic.Field(default=9212, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class SchedulerSettings(settings.Settings):
    """The kube-scheduler that calls us: what filter has to know to choose a node as it would."""

    decide: Literal["auto", "never"] = "auto"
    """`auto` answers filter with the one node that kube-scheduler would choose, wherever its whole
    total can be computed here, which spares it all scoring; `never` leaves every choice to it."""
    config_file: Path | None = None
    """The KubeSchedulerConfiguration that kube-scheduler runs with: the same file or a copy. It
    names plug-ins, weights and strategies; without it nothing is decided."""
    version: str = ""
    """Version of kube-scheduler, such as 1.36 or v1.36.3, since scores differ between releases;
    without it nothing is decided."""
    arguments: tuple[str, ...] = ()
    """Other arguments on kube-scheduler's command line; feature gates change scores."""
    extender_url: str = ""
    """Where that configuration calls us; by default 127.0.0.1 and the port of `server`."""


class TokenSettings(settings.Settings):
    """How the extender renews the token that it shows to the API server."""

    file: Path | None = None
    """File with the token, which the kubeconfig names as `tokenFile`; its folder must be writable.
    Only a static pod needs this: in all other pods the kubelet renews the token."""
    account: str = "koord-extender"
    """ServiceAccount that the token stands for."""
    secret: str = "koord-extender-login"  # noqa: S105 - the name of an object
    """Secret that every token is bound to; deleting it revokes them all."""
    seconds: int = pydantic.Field(default=30 * 24 * 3600, ge=3600)
    """Life of a token. It is renewed after a third of it, so the extender may be down for the
    rest; the API server may grant less."""


class Settings(settings.Settings):
    """Everything the extender can be told."""

    server: VerbServer = VerbServer()
    """Where kube-scheduler calls filter, prioritize, preempt and bind."""
    health: HealthServer = HealthServer()
    """Where /healthz, /readyz, /metrics and the debug pages are served."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged."""
    plugins: PluginSettings = PluginSettings()
    """Plug-ins and their arguments."""
    bind: BindSettings = BindSettings()
    """Binding."""
    freshness: FreshnessSettings = FreshnessSettings()
    """Trust in the view."""
    explanations: ExplanationSettings = ExplanationSettings()
    """What is written about pods that wait."""
    nudges: NudgeSettings = NudgeSettings()
    """Waking pods that wait."""
    scheduler: SchedulerSettings = SchedulerSettings()
    """The kube-scheduler that calls us."""
    overlap: OverlapSettings = OverlapSettings()
    """Allocations that overlap."""
    preemption: PreemptionSettings = PreemptionSettings()
    """Preemption for what only plug-ins count."""
    gangs: GangSettings = GangSettings()
    """Gangs."""
    token: TokenSettings = TokenSettings()
    """Renewal of the token, for an extender in place."""
    namespace: str = names.NAMESPACE
    """Namespace of the configuration and of the switches."""
    instance: str = "koord-extender"
    """Name of this replica in the events it writes, and of its own pod in `namespace`."""
    observe: bool = False
    """Only say what would be refused: everything passes and nothing is scored."""
