"""Settings of the agent."""

from pathlib import Path
from typing import Literal

import pydantic

from process import settings


class HostSettings(settings.Settings):
    """Where the files of the host lie."""

    proc: Path = Path("/proc")
    """Where processor, memory and boot are read; a pod's own /proc tells them of the whole host."""
    sys: Path = Path("/sys")
    """Where the processors are read; a pod's own /sys tells them of the whole host."""
    cgroup: Path = Path("/sys/fs/cgroup")
    """The root of the host's control groups; version and driver are found out."""
    state: Path = Path("/var/run/koord-agent")
    """Folder of the journal that says how the host was before, and of what is remembered; must
    survive a restart of the agent. One of the host it need not survive: then peaks are learned
    anew, which takes a day."""


class KubeletSettings(settings.Settings):
    """How the kubelet of this node is asked for its pods."""

    url: str = "https://127.0.0.1:10250"
    """Base address; `/pods` is appended."""
    token_file: Path | None = None
    """File with the bearer token, usually the service account's; none for a read-only port."""
    ca_file: Path | None = None
    """PEM bundle that the kubelet's certificate must be signed by; unverified when absent, since
    kubelets sign their own unless told otherwise."""
    interval_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time between two requests; new pods are measured only after the next one."""
    timeout_seconds: float = pydantic.Field(default=3.0, gt=0)
    """How long one request may take."""


class ReportSettings(settings.Settings):
    """Overrides of what the NodeMetric object asks for."""

    interval_seconds: float | None = pydantic.Field(default=None, gt=0)
    """Time between two reports; the object's own interval, or 60, when absent."""
    aggregate_seconds: float | None = pydantic.Field(default=None, gt=0)
    """Window of averages; the object's own window, or 300, when absent."""


class HistorySettings(settings.Settings):
    """What is remembered of the samples."""

    keep_seconds: float = pydantic.Field(default=120.0, gt=0)
    """Time between two writes of all samples to the state folder; a killed agent loses what came
    after the last one."""


class PredictionSettings(settings.Settings):
    """How the peaks of pods are learned from what they use."""

    training_seconds: float = pydantic.Field(default=60.0, gt=0)
    """Time between two lessons; each takes in the 90th percentile of that time."""
    safety_margin_percent: float = pydantic.Field(default=10.0, ge=0)
    """What is added to a predicted peak before the rest counts as unused."""
    cold_start_seconds: float = pydantic.Field(default=86_400.0, ge=0)
    """Pods younger than this are taken for what they request."""
    cpu_half_life_seconds: float = pydantic.Field(default=43_200.0, gt=0)
    """Age at which a figure of cpu counts half."""
    memory_half_life_seconds: float = pydantic.Field(default=86_400.0, gt=0)
    """Age at which a figure of memory counts half."""
    expiry_seconds: float = pydantic.Field(default=1800.0, gt=0)
    """A pod without figures for so long is forgotten, on disk as well."""


class PressureSettings(settings.Settings):
    """A trigger beside usage: best effort gives way when online tasks wait (PSI of groups)."""

    enable: bool = False
    """Whether best effort gives way."""
    cpu_percent: float = pydantic.Field(default=40.0, gt=0, le=100)
    """Share of ten seconds in which online tasks wait for cpu before best effort is shrunk."""
    memory_percent: float = pydantic.Field(default=20.0, gt=0, le=100)
    """Share of ten seconds in which online tasks wait for memory before a batch pod is evicted."""
    suppress_step_percent: int = pydantic.Field(default=10, ge=1, le=100)
    """How much of the node's cpu best effort loses with each tick under pressure."""


Mode = Literal["off", "observe", "enforce"]
Name = Literal[
    "cpu-suppress",
    "cpuset",
    "core-sched",
    "group-identity",
    "batch-resources",
    "cpu-burst",
    "cpu-normalization",
    "memory-qos",
    "block-io",
    "cache",
    "system",
    "oom-score",
    "cpu-evict",
    "memory-evict",
]


class StrategySettings(settings.Settings):
    """How far the strategies beside cpu suppression go; what `mode` forbids none of them does."""

    mode: Mode = "observe"
    """`observe` records what a strategy would have done, `enforce` does it, `off` decides nothing
    and puts back what was set."""
    modes: dict[Name, Mode] = pydantic.Field(default={})
    """The same for single strategies, by name."""
    observed_namespaces: tuple[str, ...] = ()
    """Namespaces for whose pods every strategy but `cpu-suppress` only observes."""
    observed_classes: tuple[Literal["LSE", "LSR", "LS", "BE", "SYSTEM"], ...] = ()
    """QoS classes for whose pods every strategy but `cpu-suppress` only observes."""
    enforcing_percent_of_nodes: int = pydantic.Field(default=100, ge=0, le=100)
    """Share of all nodes on which strategies enforce; the rest, told by their names, observe."""
    pressure: PressureSettings = PressureSettings()
    """A trigger beside usage."""


class EvictionSettings(settings.Settings):
    """How fast pods may be evicted from this node, whoever asks for it."""

    burst: int = pydantic.Field(default=5, ge=1)
    """How many at once."""
    per_minute: float = pydantic.Field(default=10.0, gt=0)
    """How many in the long run."""


class HealthServer(settings.ServerSettings):
    """The listener for probes and scrapers, which come from outside the pod."""

    host: str = "0.0.0.0"  # noqa: S104 - see above
    """Address to listen on; `127.0.0.1` for this machine only."""
    port: int = pydantic.Field(default=9316, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class Settings(settings.Settings):
    """Node agent: measures, reports, and keeps best-effort work in its place."""

    node_name: str = pydantic.Field(min_length=1)
    """Name of the Node this agent runs on; the manifest sets it from `spec.nodeName`."""
    mode: Literal["enforce", "observe"] = "enforce"
    """`observe` writes nothing to the host and records what it would have written."""
    tick_seconds: float = pydantic.Field(default=1.0, ge=0.1, le=60)
    """Time between two looks at the node; each is followed by its decisions."""
    host: HostSettings = HostSettings()
    """Where the files of the host lie."""
    kubelet: KubeletSettings = KubeletSettings()
    """How the kubelet is asked for its pods."""
    report: ReportSettings = ReportSettings()
    """Overrides of what the NodeMetric object asks for."""
    history: HistorySettings = HistorySettings()
    """What is remembered of the samples."""
    prediction: PredictionSettings = PredictionSettings()
    """How the peaks of pods are learned."""
    strategies: StrategySettings = StrategySettings()
    """How far the strategies go."""
    evictions: EvictionSettings = EvictionSettings()
    """How fast pods may be evicted."""
    health: HealthServer = HealthServer()
    """Where /healthz, /readyz, /metrics and /debug/audit are served."""
    feature_gates: dict[str, bool] = pydantic.Field(default={})
    """Feature gates by name."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged and how."""
