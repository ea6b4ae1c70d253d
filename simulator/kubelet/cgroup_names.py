"""What kubelets and container runtimes call the control groups that they make."""

import dataclasses
from typing import Final, Literal

QOS_FOLDERS: Final = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
_SCOPES: Final = {"containerd": "cri-containerd", "cri-o": "crio", "docker": "docker"}


@dataclasses.dataclass(frozen=True, slots=True)
class Naming:
    """How one node names its groups."""

    driver: Literal["systemd", "cgroupfs"] = "systemd"
    runtime: Literal["containerd", "cri-o", "docker"] = "containerd"
    kubelet_root: str = ""
    """The kubelet's `--cgroup-root`, without the slash it begins with."""

    def above(self) -> list[str]:
        """The groups above those of pods, the highest first."""
        parts = self.kubelet_root.split("/") if self.kubelet_root else []
        found, path = [], ""
        for count in range(1, len(parts) + 1):
            name = parts[count - 1]
            if self.driver == "systemd":
                name = "-".join(part.replace("-", "_") for part in parts[:count]) + ".slice"
            path = f"{path}/{name}" if path else name
            found.append(path)
        return found

    def qos_folder(self, qos_class: str) -> str:
        """The group that holds the pods of a kubelet QoS class."""
        part = QOS_FOLDERS[qos_class]
        if self.driver == "cgroupfs":
            names = ["kubepods", part]
        else:
            names = [
                f"{self._kubepods()}.slice",
                f"{self._kubepods()}-{part}.slice" if part else "",
            ]
        return "/".join(filter(None, [*self.above()[-1:], *names]))

    def pod_folder(self, uid: str, qos_class: str) -> str:
        """The group of a pod."""
        above = self.qos_folder(qos_class)
        if self.driver == "cgroupfs":
            return f"{above}/pod{uid}"
        prefix = "-".join(filter(None, [self._kubepods(), QOS_FOLDERS[qos_class]]))
        return f"{above}/{prefix}-pod{uid.replace('-', '_')}.slice"

    def scope(self, container: str) -> str:
        """The last part of a container's group."""
        if self.driver == "systemd":
            return f"{_SCOPES[self.runtime]}-{container}.scope"
        return f"crio-{container}" if self.runtime == "cri-o" else container

    def _kubepods(self) -> str:
        parts = [part.replace("-", "_") for part in self.kubelet_root.split("/") if part]
        return "-".join([*parts, "kubepods"])
