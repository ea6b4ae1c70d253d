"""Building Go programs from the module proxy, each release once, kept in the user's cache."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

STAGING = re.compile(r"^\s*(?:replace\s+)?(k8s\.io/\S+)\s+=>\s+\./staging/", re.MULTILINE)
GO_LINE = re.compile(r"^go\s+(\S+)", re.MULTILINE)
KUBERNETES = "k8s.io/kubernetes"


class BuildError(RuntimeError):
    """A program could not be built; the message carries the end of the tool's own output."""


def cache(*parts):
    """A folder below the one where this project keeps what it built."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base, "koord", *parts)


def can_build():
    """Whether this machine has the Go toolchain that a build needs."""
    return shutil.which("go") is not None


@contextlib.contextmanager
def alone(folder):
    """Let only one run build in this folder at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(module, release, programs, target):
    """Build the programs, package by name, of one module's release into the folder `target`."""
    if not can_build():
        raise BuildError(f"{', '.join(programs)} {release} is not built and there is no Go here")
    source = target / "source" / module.replace("/", "-")
    source.mkdir(parents=True, exist_ok=True)
    (source / "go.mod").write_text("module probe\n")
    answer = _go(source, "mod", "download", "-json", f"{module}@v{release}")
    upstream = pathlib.Path(json.loads(answer)["GoMod"]).read_text()
    (source / "go.mod").write_text(_module(module, release, upstream))
    flags = ("-trimpath", "-ldflags", _flags(module, release))
    for name, package in programs.items():
        _go(source, "build", *flags, "-o", str(target / name), package)


def _module(module, release, upstream):
    line = GO_LINE.search(upstream)
    if line is None:
        raise BuildError(f"the go.mod of {module} {release} names no Go version")
    staged = release.replace("1.", "0.", 1)
    replaces = "".join(f"\t{name} => {name} v{staged}\n" for name in STAGING.findall(upstream))
    text = f"module built\n\ngo {line.group(1)}\n\nrequire {module} v{release}\n"
    return f"{text}\nreplace (\n{replaces})\n" if replaces else text


def _flags(module, release):
    if module != KUBERNETES:
        return "-s -w"
    # Without these, clients and webhooks see a version 0.0.0.
    stamp = "k8s.io/component-base/version"
    major, minor = release.split(".")[:2]
    given = {"gitVersion": f"v{release}", "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {stamp}.{key}={value}" for key, value in given.items())])


def _go(folder, *arguments):
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    print(f"go {arguments[0]} in {folder}", file=sys.stderr, flush=True)
    done = subprocess.run(
        ["go", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"go {' '.join(arguments)} failed:\n{done.stderr[-4000:]}")
    return done.stdout
