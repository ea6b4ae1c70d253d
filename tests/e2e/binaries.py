"""Build the real control plane once per version and keep it in the user's cache folder.

Only a Go toolchain and a Go module proxy are needed. `KUBEBUILDER_ASSETS` names a folder that
already holds the binaries and skips the build.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

DEFAULT_VERSION = "1.36.3"
ETCD_VERSION = "3.6.16"
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
NAMES = ("etcd", *CONTROL_PLANE)

STAGING = re.compile(r"^\s*(?:replace\s+)?(k8s\.io/\S+)\s+=>\s+\./staging/", re.MULTILINE)
GO_LINE = re.compile(r"^go\s+(\S+)", re.MULTILINE)


class BuildError(RuntimeError):
    """A binary could not be built; the message carries the end of the tool's own output."""


def version() -> str:
    """The Kubernetes version under test, from `K8S_VERSION`."""
    return os.environ.get("K8S_VERSION", DEFAULT_VERSION).removeprefix("v")


def cache(release: str) -> pathlib.Path:
    """The folder where the binaries of one release are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "koord" / "control-plane" / release


def find(release: str) -> pathlib.Path | None:
    """The folder with every binary, or None when they have to be built."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in (pathlib.Path(assets) if assets else None, cache(release)):
        if folder is not None and all((folder / name).is_file() for name in NAMES):
            return folder
    return None


def can_build() -> bool:
    """Whether this machine has the Go toolchain that a build needs."""
    return shutil.which("go") is not None


def build(release: str) -> pathlib.Path:
    """Build etcd and the control plane of one release; returns the folder they are in."""
    found = find(release)
    if found is not None:
        return found
    target = cache(release)
    target.mkdir(parents=True, exist_ok=True)
    _build_etcd(target)
    _build_kubernetes(release, target)
    return target


def _build_etcd(target: pathlib.Path) -> None:
    source = target / "src-etcd"
    source.mkdir(exist_ok=True)
    module = "go.etcd.io/etcd/server/v3"
    (source / "go.mod").write_text(
        f"module etcd\n\ngo 1.24.0\n\nrequire {module} v{ETCD_VERSION}\n"
    )
    _go(source, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(target / "etcd"), module)


def _build_kubernetes(release: str, target: pathlib.Path) -> None:
    source = target / "src-kubernetes"
    source.mkdir(exist_ok=True)
    (source / "go.mod").write_text("module probe\n")
    answer = _go(source, "mod", "download", "-json", f"k8s.io/kubernetes@v{release}")
    upstream = pathlib.Path(json.loads(answer)["GoMod"]).read_text()
    line = GO_LINE.search(upstream)
    if line is None:
        raise BuildError(f"the go.mod of Kubernetes {release} names no Go version")
    staged = release.replace("1.", "0.", 1)
    replaces = "".join(f"\t{name} => {name} v{staged}\n" for name in STAGING.findall(upstream))
    (source / "go.mod").write_text(
        f"module control-plane\n\ngo {line.group(1)}\n\n"
        f"require k8s.io/kubernetes v{release}\n\nreplace (\n{replaces})\n"
    )
    minor = release.split(".")[1]
    stamp = "k8s.io/component-base/version"
    flags = (
        f"-s -w -X {stamp}.gitVersion=v{release} -X {stamp}.gitMajor=1 -X {stamp}.gitMinor={minor}"
    )
    packages = [f"k8s.io/kubernetes/cmd/{name}" for name in CONTROL_PLANE]
    _go(source, "build", "-trimpath", "-ldflags", flags, "-o", f"{target}/", *packages)


def _go(folder: pathlib.Path, *arguments: str) -> str:
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    print(f"go {arguments[0]} in {folder}", file=sys.stderr, flush=True)
    done = subprocess.run(
        ["go", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"go {' '.join(arguments)} failed:\n{done.stderr[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    if find(version()) is None and not can_build():
        sys.exit(
            "There are no control plane binaries and no Go to build them: install Go, or name a "
            "folder that holds them in KUBEBUILDER_ASSETS."
        )
    # Some minutes the first time, which is more than a test may take.
    print(build(version()), flush=True)
