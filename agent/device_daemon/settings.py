"""Settings of the device daemon."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

import pydantic

from agent.device_daemon.hardware import registry
from api.wire import durations
from process.configuration import settings


class ToolSettings(settings.Settings):
    """How the tools of vendors are run."""

    root: Path | None = None
    """Where the host's root is mounted: tools run inside it (chroot). Absent runs those that this
    machine or image has."""
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    """Folders in which tools are looked for, as in PATH."""
    seconds: float = pydantic.Field(default=10.0, gt=0, le=300)
    """How long one call of a tool may take before it is killed."""
    most_bytes: int = pydantic.Field(default=1024 * 1024, ge=1024)
    """How much one call of a tool may print before it is killed."""


class HealthServer(settings.ServerSettings):
    """The listener for probes and scrapers, which come from outside the pod."""

    host: str = "0.0.0.0"  # noqa: S104 - see above
    """Address to listen on; `127.0.0.1` for this machine only."""
    port: int = pydantic.Field(default=9318, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class Settings(settings.Settings):
    """Device daemon: discovers devices, writes them into a file and labels the node."""

    other_paths: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {("flags", "kdd"): ()}
    """Koordinator's device daemon keeps its settings in `flags.kdd` of its file."""

    version: Literal["v1"] = "v1"
    """Version of the configuration file."""
    oneshot: bool = False
    """Whether the daemon looks once, writes, and ends."""
    no_timestamp: bool = False
    """Whether what is written carries no moment of the look."""
    sleep_interval: str = "900s"
    """Pause between two looks, as `90s` or `15m`."""
    prints_output_file: str = "/var/run/koord-agent/xpu-device-infos/ic-device"
    """File of accelerators, from which the node agent makes entries of the Device; `-` is standard
    output, empty writes none."""
    labels_file: Path | None = None
    """File of labels in the form of node-feature-discovery's features.d; absent writes none."""
    node_name: str = ""
    """Name of the Node that is labelled; empty labels none, and no API server is asked."""
    hardware: tuple[str, ...] = tuple(registry.HARDWARE)
    """Hardware types that are looked for, by name."""
    look_seconds: float = pydantic.Field(default=120.0, gt=0)
    """How long one look at one hardware type may take before it is given up and named."""
    remove_on_stop: bool = False
    """Whether the files go when the daemon is stopped. Kept, the devices of the node outlive a
    restart; the folder of the default is emptied by a reboot."""
    sys: Path = Path("/sys")
    """Where PCI devices are read."""
    dev: Path = Path("/dev")
    """Where device files are listed."""
    tools: ToolSettings = ToolSettings()
    """How the tools of vendors are run."""
    health: HealthServer = HealthServer()
    """Where /healthz, /readyz and /metrics are served, unless `oneshot`."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged and how."""

    @property
    def interval(self) -> float:
        """Pause between two looks, in seconds."""
        return durations.seconds(self.sleep_interval)

    @pydantic.field_validator("sleep_interval")
    @classmethod
    def _is_a_pause(cls, value: str) -> str:
        if durations.seconds(value) < 1:
            raise ValueError("the pause is at least 1s")
        return value

    @pydantic.field_validator("hardware")
    @classmethod
    def _is_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in registry.HARDWARE:
                raise ValueError(f"{name} is none of {', '.join(registry.HARDWARE)}")
        return value
