"""What a real node is made of: Go programs built once, and a few packages of Debian."""

import dataclasses
import os
import pathlib
import shutil
import sys

from deploy.image import build as images
from deploy.image import packages
from tests.e2e import binaries, golang
from tests.planes.install import chart

CONTAINERD = "github.com/containerd/containerd/v2"
CONTAINERD_RELEASE = "2.2.9"
CONTAINERD_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
DEBIAN = ("busybox-static", "containernetworking-plugins", "runc")
CGROUP = pathlib.Path("/sys/fs/cgroup")
HIERARCHIES = ("cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer", "blkio")
TOOLS = ("mount", "nsenter", "unshare")


@dataclasses.dataclass(frozen=True)
class Programs:
    """Where the programs of a node lie."""

    kubelet: pathlib.Path
    containerd: pathlib.Path
    """The folder of containerd, its shim and ctr."""
    runc: pathlib.Path
    busybox: pathlib.Path
    plugins: pathlib.Path
    """The folder of the CNI plug-ins."""


def obstacle():
    """Why no real node can run on this machine, empty when one can."""
    if os.geteuid() != 0:
        return "a real node needs root"
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"there is no {', '.join(missing)}"
    if (CGROUP / "cgroup.controllers").exists():
        return "this node is made for cgroup v1 and this machine has cgroup v2 only"
    if missing := [name for name in HIERARCHIES if not (CGROUP / name / "cgroup.procs").exists()]:
        return f"{CGROUP} lacks the v1 hierarchies {', '.join(missing)}"
    if not golang.can_build() and not _containerd().is_dir():
        return "there is no Go to build kubelet and containerd"
    if not all(_installed()) and (reason := packages.obstacle()):
        return reason
    if reason := images.obstacle():
        return reason
    try:
        packages.unpacked(images.TOOLS)
        if not all(_installed()):
            packages.unpacked(DEBIAN)
    except packages.UnreachableError as error:
        return f"packages of Debian cannot be had: {str(error).splitlines()[-1]}"
    return ""


def build(release):
    """Return the programs of a node of this Kubernetes release; minutes the first time."""
    kubelet = _built(
        golang.cache("tools", "kubelet", release),
        (golang.KUBERNETES, release),
        {"kubelet": f"{golang.KUBERNETES}/cmd/kubelet"},
    )
    programs = {name: f"{CONTAINERD}/cmd/{name}" for name in CONTAINERD_PROGRAMS}
    containerd = _built(_containerd(), (CONTAINERD, CONTAINERD_RELEASE), programs)
    runc, busybox, plugins = _installed()
    if not (runc and busybox and plugins):
        root = packages.unpacked(DEBIAN)
        runc, busybox, plugins = root / "usr/sbin/runc", root / "bin/busybox", root / "usr/lib/cni"
    return Programs(kubelet / "kubelet", containerd, runc, busybox, plugins)


def _containerd():
    return golang.cache("tools", "containerd", CONTAINERD_RELEASE)


def _built(folder, module, programs):
    with golang.alone(folder):
        missing = {n: p for n, p in programs.items() if not (folder / n).is_file()}
        if missing:
            golang.install(*module, missing, folder)
    return folder


def _installed():
    """What this machine has already: runc, a static busybox and the plug-ins, None for neither."""
    runc = shutil.which("runc")
    # Only the static one can be the whole content of an image.
    static = pathlib.Path("/var/lib/dpkg/info/busybox-static.list").is_file()
    busybox = shutil.which("busybox") if static else None
    plugins = pathlib.Path("/usr/lib/cni")
    return (
        pathlib.Path(runc) if runc else None,
        pathlib.Path(busybox) if busybox else None,
        plugins if (plugins / "ptp").is_file() else None,
    )


def main():
    """Build everything that the tests need, which takes longer than a test may."""
    reason = obstacle()
    if reason:
        print(f"not run: {reason}")
        return
    release = binaries.version()
    binaries.build(release)
    print(build(release).kubelet.parent, images.image(), sep="\n", flush=True)
    chart.helm("version")


if __name__ == "__main__":
    try:
        main()
    except (golang.BuildError, images.BuildError, packages.PackagesError) as error:
        sys.exit(str(error))
