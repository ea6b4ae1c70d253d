"""Builds what Koord is compared with, once, from the Go module proxy."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.e2e import golang

SOURCES = Path(__file__).parents[1]


class Peer(NamedTuple):
    """A program of others: the module, and the package to build of it."""

    module: str
    package: str
    is_main: bool = False
    """Whether it is built inside a copy of its module, whose go.mod replaces other modules."""


PEERS = {
    "node_exporter": Peer(
        "github.com/prometheus/node_exporter v1.9.1", "github.com/prometheus/node_exporter"
    ),
    # As kubelets embed it: its module has no program of its own.
    "cadvisor": Peer("github.com/google/cadvisor v0.56.2", "."),
    "koord-scheduler": Peer(
        "github.com/koordinator-sh/koordinator v1.8.0", "./cmd/koord-scheduler", is_main=True
    ),
}


class BuildError(RuntimeError):
    """A program could not be built; the message says why."""


def program(name: str) -> Path | None:
    """Return a built program, None where it cannot be built; the reason is printed."""
    try:
        return built(name)
    except BuildError as failure:
        print(f"{name}: left out, {failure}")
        return None


def built(name: str) -> Path:
    """Return a program from the user's cache, built if it is not there."""
    peer = PEERS[name]
    target = _target(name)
    if target.is_file():
        return target
    if not golang.can_build():
        raise BuildError("there is no Go to build it")
    with golang.alone(target.parent):
        work = target.parent / f"src-{name}"
        shutil.rmtree(work, ignore_errors=True)
        if peer.is_main:
            _copy(_downloaded(peer), work)
        else:
            work.mkdir(parents=True)
            text = f"module peers\n\ngo 1.24.0\n\nrequire {peer.module}\n"
            (work / "go.mod").write_text(text)
            if (source := _source(name)).exists():
                shutil.copy(source, work)
        print(f"building {name}", file=sys.stderr, flush=True)
        flags = ("-mod=mod", "-trimpath", "-ldflags", "-s -w")
        _go(work, "build", *flags, "-o", str(target), peer.package)
    return target


def definitions(name: str) -> list[Path]:
    """Return the files of the custom resource definitions that a program ships with."""
    return sorted((_downloaded(PEERS[name]) / "config" / "crd" / "bases").glob("*.yaml"))


def _target(name: str) -> Path:
    source = _source(name)
    text = PEERS[name].module + (source.read_text(encoding="utf-8") if source.exists() else "")
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return golang.cache("benchmarks", "peers") / f"{name}-{digest}"


def _source(name: str) -> Path:
    return SOURCES / "node" / name / "main.go"


def _downloaded(peer: Peer) -> Path:
    """Return the folder of a module in Go's own cache, downloaded if it is not there."""
    answer = _go(SOURCES, "mod", "download", "-json", peer.module.replace(" ", "@"))
    return Path(json.loads(answer)["Dir"])


def _copy(module: Path, work: Path) -> None:
    """Copy a module out of Go's cache, where nothing may be written."""
    shutil.copytree(module, work, copy_function=shutil.copyfile)
    for folder in (work, *(path for path in work.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def _go(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["go", *arguments],
        cwd=folder,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(f"it cannot be built: {(done.stderr or done.stdout)[-400:]}")
    return done.stdout


if __name__ == "__main__":
    for each in sys.argv[1:] or PEERS:
        print(program(each), flush=True)
