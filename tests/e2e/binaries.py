"""The real control plane of one release, built once and kept in the user's cache folder.

Only a Go toolchain and a Go module proxy are needed. `KUBEBUILDER_ASSETS` names a folder that
already holds `etcd` and `kube-apiserver`, and perhaps more; only what it lacks is built.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

from tests.e2e import golang

# Of the releases in `releases.py`, CI builds one: the kubelet of the real node is of the same, and
# one module cache serves both. It is not the newest, since nodes run it a release behind.
DEFAULT_VERSION = "1.36.3"
ETCD_VERSION = "3.6.16"
ETCD = "go.etcd.io/etcd/server/v3"
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
NAMES = ("etcd", *CONTROL_PLANE)
ASSETS = ("etcd", "kube-apiserver")
RELEASE = re.compile(r"v(\d+\.\d+\.\d+)")


def version():
    """The Kubernetes release under test: `K8S_VERSION`, or what `KUBEBUILDER_ASSETS` holds."""
    asked = os.environ.get("K8S_VERSION", "").removeprefix("v")
    assets = _assets()
    if assets is None:
        return asked or DEFAULT_VERSION
    held = _release(assets / "kube-apiserver")
    if asked not in ("", held):
        raise golang.BuildError(
            f"KUBEBUILDER_ASSETS={assets} holds Kubernetes {held}, but K8S_VERSION asks for "
            f"{asked}; unset one of them"
        )
    return held


def cache(release):
    """The folder where the binaries of one release are kept."""
    return golang.cache("control-plane", release)


def find(release):
    """The folder with every binary, or None when some have to be built."""
    folder = cache(release)
    assets = _assets()
    if assets is not None:
        if _complete(assets):
            return assets
        folder = _linked(assets, folder)
    return folder if _complete(folder) else None


def build(release):
    """Build what is missing of one release; returns the folder with every binary."""
    target = cache(release)
    given = ASSETS if _assets() is not None else ()
    with golang.alone(target):
        found = find(release)
        if found is not None:
            return found
        missing = [n for n in NAMES if n not in given and not (target / n).is_file()]
        if "etcd" in missing:
            golang.install(ETCD, ETCD_VERSION, {"etcd": ETCD}, target)
        programs = {n: f"{golang.KUBERNETES}/cmd/{n}" for n in missing if n != "etcd"}
        if programs:
            golang.install(golang.KUBERNETES, release, programs, target)
        found = find(release)
        if found is None:
            raise golang.BuildError(f"{target} still lacks some of {', '.join(NAMES)}")
        return found


def tool(name, module, release, package):
    """Another Go program that tests use, such as helm; built once for each release of it."""
    target = golang.cache("tools", name, release)
    program = target / name
    with golang.alone(target):
        if not program.is_file():
            golang.install(module, release, {name: package}, target)
    return program


def kubectl():
    """The kubectl of `KUBEBUILDER_ASSETS` or of the search path, or None."""
    assets = _assets()
    if assets is not None and (assets / "kubectl").is_file():
        return assets / "kubectl"
    found = shutil.which("kubectl")
    return None if found is None else pathlib.Path(found)


def can_build():
    """Whether this machine has the Go toolchain that a build needs."""
    return golang.can_build()


def _assets():
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if not named:
        return None
    folder = pathlib.Path(named)
    missing = [name for name in ASSETS if not (folder / name).is_file()]
    if missing:
        raise golang.BuildError(
            f"KUBEBUILDER_ASSETS={named} lacks {', '.join(missing)}; name a folder that holds "
            f"{', '.join(ASSETS)}, or unset it to build them"
        )
    return folder


def _complete(folder):
    return all((folder / name).is_file() for name in NAMES)


def _linked(assets, built):
    """A folder with what the assets hold and, for the rest, what was built."""
    mark = hashlib.sha256(str(assets.resolve()).encode()).hexdigest()[:12]
    folder = built / f"with-assets-{mark}"
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        source = assets / name if (assets / name).is_file() else built / name
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(source.resolve())
    return folder


def _release(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = RELEASE.search(done.stdout)
    if found is None:
        raise golang.BuildError(f"{program} --version does not tell its release: {done.stdout}")
    return found.group(1)


def _main():
    try:
        release = version()
        if find(release) is None and not can_build():
            sys.exit(
                "There are no control plane binaries and no Go to build them: install Go, or name "
                "a folder that holds them in KUBEBUILDER_ASSETS."
            )
        # Some minutes the first time, which is more than a test may take.
        print(build(release), flush=True)
    except golang.BuildError as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    _main()
