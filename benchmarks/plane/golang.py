"""Builds the Go programs of the benchmarks against the modules of one Kubernetes release, once."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from tests.e2e import binaries
from tests.e2e import golang as builds

SOURCES = pathlib.Path(__file__).parents[1]


class BuildError(RuntimeError):
    """A program could not be built; the message carries the end of the compiler's output."""


def program(name: str, release: str = "") -> pathlib.Path:
    """Return the built program of a folder of sources, from the user's cache if it is unchanged."""
    release = release or binaries.version()
    (source,) = SOURCES.glob(f"*/{name}/main.go")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    folder = binaries.cache(release).parents[1] / "benchmarks" / release
    target = folder / f"{name}-{digest}"
    if target.is_file():
        return target
    work = folder / f"src-{name}"
    work.mkdir(parents=True, exist_ok=True)
    (work / "go.mod").write_text(_modules(work, name, release))
    shutil.copy(source, work / "main.go")
    _go(work, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), ".")
    return target


def _modules(work: pathlib.Path, name: str, release: str) -> str:
    """Return a go.mod that resolves the parts of Kubernetes to that release."""
    (work / "go.mod").write_text("module probe\n")
    answer = _go(work, "mod", "download", "-json", f"k8s.io/kubernetes@v{release}")
    upstream = pathlib.Path(json.loads(answer)["GoMod"]).read_text()
    line = builds.GO_LINE.search(upstream)
    if line is None:
        raise BuildError(f"the go.mod of Kubernetes {release} names no Go version")
    staged = "v" + release.replace("1.", "0.", 1)
    replaces = "".join(
        f"\t{part} => {part} {staged}\n" for part in builds.STAGING.findall(upstream)
    )
    return (
        f"module {name}\n\ngo {line.group(1)}\n\n"
        f"require k8s.io/kubernetes v{release}\n\nreplace (\n{replaces})\n"
    )


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
    for each in sys.argv[1:] or ("goextender", "goclient"):
        print(program(each), flush=True)
