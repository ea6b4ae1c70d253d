"""Builds what others read a node with, once, from the module proxy: node_exporter, cAdvisor."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.e2e import golang

SOURCES = Path(__file__).parents[1]
_MODULES = {
    "node_exporter": "github.com/prometheus/node_exporter v1.9.1",
    "cadvisor": "github.com/google/cadvisor v0.56.2",
}
"""cAdvisor is taken as kubelets embed it: its module has no program of its own."""


def program(name: str) -> Path | None:
    """Return a built program, None where it cannot be built; the reason is printed."""
    module = _MODULES[name]
    source = SOURCES / "node" / name / "main.go"
    text = module + (source.read_text(encoding="utf-8") if source.exists() else "")
    folder = golang.cache("benchmarks", "peers")
    target = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if target.is_file():
        return target
    if not golang.can_build():
        print(f"{name}: left out, there is no Go to build it")
        return None
    work = folder / f"src-{name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "go.mod").write_text(f"module peers\n\ngo 1.24.0\n\nrequire {module}\n")
    package = module.split()[0]
    if source.exists():
        shutil.copy(source, work)
        package = "."
    print(f"building {name}", file=sys.stderr, flush=True)
    done = subprocess.run(
        ["go", "build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o", str(target), package],
        cwd=work,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{name}: left out, it cannot be built: {done.stderr[-400:]}")
        return None
    return target
