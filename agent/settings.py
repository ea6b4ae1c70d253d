"""Settings of the agent."""

from pathlib import Path
from typing import Literal, Self

import pydantic

from api import names
from process.configuration import settings


class HostSettings(settings.Settings):
    """Where the files of the host lie."""

    proc: Path = Path("/proc")
    """Where processor, memory and boot are read; a pod's own /proc tells them of the whole host."""
    sys: Path = Path("/sys")
    """Where the processors are read; a pod's own /sys tells them of the whole host."""
    cgroup: Path = Path("/sys/fs/cgroup")
    """The root of the host's control groups; version and driver are found out."""
    kubelet_root: str = ""
    """The group that holds those of pods, where the kubelet has a `--cgroup-root` other than the
    root; found out where there is only one."""
    state: Path = Path("/var/run/koord-agent")
    """Folder of the journal that says how the host was before, and of what is remembered; must
    survive a restart of the agent. One of the host it need not survive: then peaks are learned
    anew, which takes a day."""
    lasting: Path | None = None
    """Folder that survives a reboot of the host, for what must not be learned anew then: how the
    kubelet is known. `state` when absent."""
    terway_qos: Path | None = None
    """Folder of the files by which Terway shapes traffic, `/var/lib/terway/qos` on its hosts; the
    strategy `terway-qos` writes nothing while it is absent."""
    mount_resctrl: bool = False
    """Whether resctrl is mounted below `sys` where the cache could be divided and it is not; takes
    CAP_SYS_ADMIN."""


class KubeletSettings(settings.Settings):
    """How the kubelet of this node is asked for its pods."""

    pods_from: Literal["kubelet", "apiServer"] = "kubelet"
    """Who tells the pods of this node: the `kubelet`, or the `apiServer` by a watch of the pods
    that are bound to it. With `apiServer` the kubelet is asked for nothing but what
    `measure.network: kubelet` counts, so that the agent needs no other permission on kubelets; it
    then learns how the kubelet hands out cpus from `folder` alone."""
    url: str = "https://127.0.0.1:10250"
    """Base address; `/pods` is appended."""
    token_file: Path | None = None
    """File with the bearer token, usually the service account's; none for a read-only port."""
    ca_file: Path | None = None
    """PEM bundle that the kubelet's certificate must be signed by; the one that the API server's is
    checked with when absent."""
    verify: Literal["auto", "signed", "off"] = "auto"
    """What the kubelet's certificate is checked for before the token is sent: `signed` by `caFile`
    or the cluster's authority for the address in `url`; `auto` also takes one that no known
    authority has signed, as long as it is the one first seen (unless `caFile` is set); `off` checks
    nothing. Over
    plain HTTP the token is sent with `off` only."""
    interval_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time between two requests; new pods are measured only after the next one."""
    timeout_seconds: float = pydantic.Field(default=3.0, gt=0)
    """How long one request may take."""
    fall_back: bool = True
    """Whether the pods are read from the API server while the kubelet does not answer."""
    fall_back_seconds: float = pydantic.Field(default=30.0, gt=0)
    """How long the kubelet is silent before that; every agent adds up to as much by chance."""
    configuration: bool = True
    """Whether the kubelet is asked for its configuration, which says how it hands out cpus; without
    an answer no shared cpus are given out. `false` where it hands out none, or cannot be asked."""
    folder: Path | None = None
    """The kubelet's own folder (`/var/lib/kubelet` of the host), where it notes which cpus it gave
    to single pods; needed where its cpu manager is `static`."""


class ReportSettings(settings.Settings):
    """Overrides of what the NodeMetric object asks for."""

    interval_seconds: float | None = pydantic.Field(default=None, gt=0)
    """Time between two reports; the object's own interval, or 60, when absent."""
    aggregate_seconds: float | None = pydantic.Field(default=None, gt=0)
    """Window of averages; the object's own window, or 300, when absent."""
    numa: bool = True
    """Whether the use of every NUMA node is measured, every five seconds, and reported."""


class HistorySettings(settings.Settings):
    """What is remembered of the samples."""

    keep_seconds: float = pydantic.Field(default=120.0, gt=0)
    """Time between two writes of all samples to the state folder; a killed agent loses what came
    after the last one."""
    store: Literal["memory", "disk"] = "memory"
    """Where samples are: all in `memory`, long windows in steps of several seconds; or the latest
    in memory and the others on `disk`, each as it was taken."""
    disk_folder: Path | None = None
    """Folder on a disk for the store `disk`; the state folder when absent, which is memory where it
    lies below /run."""
    disk_mebibytes: int = pydantic.Field(default=256, ge=16)
    """Samples on disk, at most; beyond it the oldest go."""


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


class MeasureSettings(settings.Settings):
    """What is measured beside cpu and memory; most of it is switched on by feature gates."""

    pressure_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time between two looks at how long tasks wait (gate `PSICollector`)."""
    throttling_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time between two looks at how often containers are throttled (gate `ThrottlingCollector`)."""
    performance_seconds: float = pydantic.Field(default=60.0, gt=0)
    """Time between two counts of cycles and instructions (gate `CPICollector`)."""
    performance_window_seconds: float = pydantic.Field(default=10.0, gt=0)
    """How long cycles and instructions are counted each time."""
    performance_descriptors: int = pydantic.Field(default=2048, ge=2)
    """How many files that may take at once, at most what others leave of the process's limit; two
    for each container and cpu, and containers take turns where that is more."""
    disks: bool = False
    """Whether bytes and operations of disks are measured, of the node and of pods."""
    disks_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time between two looks at disks, and at which volume lies on which (gate
    `BlkIOReconcile`)."""
    network: Literal["none", "processes", "kubelet"] = "none"
    """What counts what pods and the node send and receive: nothing; the kernel, seen through
    `processes`, which takes the host's process ids; or the `kubelet`, which is asked for
    `stats/summary` and counts bytes only."""
    network_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time between two looks at network interfaces."""
    cold_pages_seconds: float = pydantic.Field(default=5.0, gt=0)
    """Time between two looks at memory that is not touched (gate `ColdPageCollector`)."""
    cache_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time between two looks at the use of caches and memory bandwidth (gate
    `ResctrlCollector`)."""
    koordlet_names: bool = False
    """Whether figures are also told under the names that Koordinator's agent gives them."""


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


class ReclaimSettings(settings.Settings):
    """Background reclaim of batch containers, which a kernel with watermarks does itself.

    The agent asks for it (`memory.reclaim`, cgroup v2) where `memory-qos` sets a ratio.
    """

    enable: bool = False
    """Whether memory is taken back."""
    interval_seconds: float = pydantic.Field(default=10.0, ge=1)
    """Time between two looks."""
    most_mebibytes: int = pydantic.Field(default=64, ge=1)
    """How much is taken back in one look, of all containers of the node together."""
    pressure_percent: float = pydantic.Field(default=5.0, gt=0, le=100)
    """A container whose tasks wait for memory this share of ten seconds is left alone for a
    minute, then for longer."""


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
    "network-qos",
    "terway-qos",
    "cold-pages",
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
    reclaim: ReclaimSettings = ReclaimSettings()
    """Background reclaim of batch containers."""


class EvictionSettings(settings.Settings):
    """How fast pods may be evicted from this node, by all strategies together."""

    burst: int = pydantic.Field(default=5, ge=1)
    """How many at once."""
    per_minute: float = pydantic.Field(default=10.0, gt=0)
    """How many in the long run."""
    patience_seconds: float = pydantic.Field(default=30.0, gt=0)
    """How long what an evicted pod still uses counts as given back. A pod whose grace period is
    longer counts as using until it has left, and others leave meanwhile."""
    longest_grace_seconds: int | None = pydantic.Field(default=None, ge=0)
    """Grace period of evicted pods, at most; absent leaves it to each pod."""
    kill_at_memory_percent: int | None = pydantic.Field(default=None, ge=50, le=100)
    """While the API server does not answer and the node uses so much of its memory, containers of
    pods that would be evicted for memory are killed (cgroup.kill, or SIGKILL, which takes hostPID);
    disruption budgets cannot be asked then. Absent kills nothing."""


class DeviceSettings(settings.Settings):
    """How accelerators and adapters are found; the gates `Accelerators` and `RDMADevices` ask."""

    folder: Path | None = None
    """Folder of files that describe accelerators; `xpu-device-infos` below the state folder when
    absent. Where it describes any, no driver is asked."""
    only_files: bool = False
    """Whether the driver of GPUs (NVML) is never asked."""
    interval_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time between two looks at what there is and how it is; the use of GPUs is read every
    second."""


class NriSettings(settings.Settings):
    """How the container runtime asks the agent before it starts a container (NRI).

    Values are then set before the first instruction; the loop of the agent sets what a runtime
    cannot, and everything where the runtime does not ask.
    """

    enable: bool = True
    """Whether the agent registers as a plug-in where the runtime's socket is."""
    socket: Path = Path("/var/run/nri/nri.sock")
    """Socket at which the runtime takes plug-ins; while it is absent the agent goes on without."""
    plugin_name: str = pydantic.Field(default="koord", pattern=r"^[A-Za-z0-9_.-]{1,63}$")
    """Name under which the agent registers."""
    plugin_index: str = pydantic.Field(default="00", pattern=r"^[0-9]{2}$")
    """Two digits: the runtime asks plug-ins in this order."""


class HookServerSettings(settings.Settings):
    """How a CRI proxy asks the agent before pods and containers start, for runtimes without NRI."""

    enable: bool = False
    """Whether the agent serves the hook API `runtime.v1alpha1`; NRI has to be off then."""
    socket: Path = Path("/var/run/koordlet/koordlet.sock")
    """Socket to listen on."""
    host_socket: str = "/var/run/koordlet/koordlet.sock"
    """The same socket as the host sees it; it is what proxies read."""
    folder: Path = Path("/etc/runtime/hookserver.d")
    """Folder in which hook servers register."""
    failure_policy: Literal["Fail", "Ignore"] = "Ignore"
    """What a proxy does while the agent does not answer: let pods fail, or start them without."""
    plugin_failure_policy: Literal["Fail", "Ignore"] = "Ignore"
    """What a hook that can give nothing means: an error for the proxy, or an answer without it."""
    disable_stages: tuple[str, ...] = ()
    """Stages that are not registered, such as `PreCreateContainer`."""
    runtime: Literal["containerd", "cri-o", "docker"] = "containerd"
    """The container runtime behind the proxy, by which cgroups of containers are named."""


class PodResourcesSettings(settings.Settings):
    """How other programs ask which pod holds which device (gate `PodResourcesProxy`).

    The agent serves the kubelet's PodResources API, with the devices that the scheduler allocated.
    """

    kubelet_socket: Path = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    """Socket at which the kubelet serves the API; while it is absent calls are answered with an
    error."""
    socket: Path = Path("/var/run/koordlet/pod-resources/kubelet.sock")
    """Socket to listen on. Programs that ask mount its folder as `/var/lib/kubelet/pod-resources`,
    or are told its path."""

    @pydantic.model_validator(mode="after")
    def _two_sockets(self) -> Self:
        if self.socket == self.kubelet_socket:
            raise ValueError("podResources.socket is that of the kubelet")
        return self


class AuditSettings(settings.Settings):
    """What is kept of what the agent did, for the page `/events`."""

    folder: Path | None = None
    """Folder of the audit; `audit` below the state folder when absent."""
    most_mebibytes: int = pydantic.Field(default=20, ge=4)
    """Room for it; beyond it the oldest file of 2 MiB goes."""
    most_events: int = pydantic.Field(default=2048, ge=1)
    """Largest `size` that `/events` takes."""


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
    namespace: str = names.NAMESPACE
    """Namespace of the live switches."""
    configmap_name: str = ""
    """Name of a ConfigMap whose key `settings.yaml` holds settings; empty reads none. It is read at
    the start; the file, the environment and flags win over it."""
    configmap_namespace: str = ""
    """Namespace of that ConfigMap; `namespace` when empty."""
    mode: Literal["enforce", "observe"] = "enforce"
    """`observe` writes nothing to the host and records what it would have written. The key `agent`
    of the ConfigMap koord-switches can only restrict it."""
    on_stop: Literal["ask", "hand-over", "put-back"] = "ask"
    """What becomes of the node when the agent is stopped: `ask` reads the DaemonSet and puts the
    node back only where no agent will follow, `hand-over` leaves every value standing for the next
    agent, `put-back` puts the node back. A crash always hands over."""
    daemon_set: str = "koord-agent"
    """Name of the DaemonSet that this agent belongs to, in `namespace`."""
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
    measure: MeasureSettings = MeasureSettings()
    """What is measured beside cpu and memory."""
    prediction: PredictionSettings = PredictionSettings()
    """How the peaks of pods are learned."""
    strategies: StrategySettings = StrategySettings()
    """How far the strategies go."""
    evictions: EvictionSettings = EvictionSettings()
    """How fast pods may be evicted."""
    devices: DeviceSettings = DeviceSettings()
    """How accelerators and adapters are found."""
    nri: NriSettings = NriSettings()
    """How the container runtime asks before it starts a container."""
    hook_server: HookServerSettings = HookServerSettings()
    """How a CRI proxy asks before it lets a container start."""
    pod_resources: PodResourcesSettings = PodResourcesSettings()
    """How other programs ask which pod holds which device."""
    controllers: tuple[str, ...] = ()
    """Controllers of other installed packages that run beside the agent's own parts, by the names
    of their entry points in the group `koord.agent.controllers`."""
    audit: AuditSettings = AuditSettings()
    """What is kept of what the agent did."""
    health: HealthServer = HealthServer()
    """Where /healthz, /readyz, /metrics and /debug/audit are served."""
    feature_gates: dict[str, bool] = pydantic.Field(default={})
    """Feature gates by name."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged and how."""

    @pydantic.model_validator(mode="after")
    def _one_asks(self) -> Self:
        if self.hook_server.enable and self.nri.enable:
            raise ValueError("hookServer.enable needs nri.enable=false: one of the two asks")
        return self
