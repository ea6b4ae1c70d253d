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
    """Folder of the journal that says how the host was before; must survive a restart of the
    agent, need not survive one of the host."""


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
    health: HealthServer = HealthServer()
    """Where /healthz, /readyz, /metrics and /debug/audit are served."""
    feature_gates: dict[str, bool] = pydantic.Field(default={})
    """Feature gates by name."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged and how."""
