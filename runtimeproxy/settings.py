"""Settings of the CRI proxy."""

from pathlib import Path
from typing import Final, Literal

import pydantic

from api import names
from process.configuration import settings

CONTAINERD: Final = "/var/run/containerd/containerd.sock"
CRI_DOCKERD: Final = "/var/run/cri-dockerd.sock"
_UNIX: Final = "unix://"


class HealthServer(settings.ServerSettings):
    """The listener for probes and scrapers of this host."""

    port: int = pydantic.Field(default=9319, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class Settings(settings.Settings):
    """CRI proxy between kubelet and container runtime: hook servers adjust pods."""

    version: Literal["v1"] = "v1"
    """Version of the configuration file."""
    koord_runtimeproxy_endpoint: str = "/var/run/koord-runtimeproxy/runtimeproxy.sock"
    """Unix socket that the kubelet connects with (`containerRuntimeEndpoint`)."""
    remote_runtime_service_endpoint: str = ""
    """Unix socket of the container runtime, for both of its services; empty is that of containerd
    or, in mode Docker, of cri-dockerd."""
    backend_runtime_mode: Literal["Containerd", "Docker"] = "Containerd"
    """`Containerd` is any runtime that serves CRI, CRI-O too; `Docker` is Docker behind
    cri-dockerd, which serves CRI as well."""
    runtime_hook_server_key: str = names.LABEL_SKIP_HOOK_SERVER
    """Label of pods about which no hook server is asked."""
    runtime_hook_server_val: str = "true"
    """Value that this label has to have."""
    hook_server_folder: Path = Path("/etc/runtime/hookserver.d")
    """Folder in which hook servers register, each by a file that ends in `json`."""
    scan_seconds: float = pydantic.Field(default=1.0, gt=0)
    """How often that folder is looked at."""
    hook_seconds: float = pydantic.Field(default=2.0, gt=0)
    """How long a call waits for a hook server before it counts as failed."""
    health: HealthServer = HealthServer()
    """Where /healthz, /readyz and /metrics are served."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged and how."""

    @property
    def listen(self) -> str:
        """The path to listen on."""
        return self.koord_runtimeproxy_endpoint.removeprefix(_UNIX)

    @property
    def runtime(self) -> str:
        """The path of the container runtime."""
        default = CRI_DOCKERD if self.backend_runtime_mode == "Docker" else CONTAINERD
        return self.remote_runtime_service_endpoint.removeprefix(_UNIX) or default

    @pydantic.field_validator("koord_runtimeproxy_endpoint", "remote_runtime_service_endpoint")
    @classmethod
    def _is_a_path(cls, value: str) -> str:
        if value and not value.removeprefix(_UNIX).startswith("/"):
            raise ValueError("name the path of a unix socket, from / on")
        return value

    @pydantic.model_validator(mode="after")
    def _are_two(self) -> "Settings":
        if self.listen == self.runtime:
            raise ValueError("koordRuntimeproxyEndpoint is the socket of the runtime itself")
        return self
