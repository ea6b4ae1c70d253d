"""Install the wheel with pipx away from the sources, and run `koord dev` until it is ready."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from deploy.image import sbom
from deploy.release import wheel

ROOT = pathlib.Path(__file__).parents[2]
PIPX = "pipx==1.18.4"
KEPT = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
"""Of the environment: how the package index is reached, and nothing of the sources."""
SECONDS = 180.0
READY = "ready after"


def main() -> int:
    """Build twice, compare, install, run; print what was seen."""
    with tempfile.TemporaryDirectory() as scratch:
        place = pathlib.Path(scratch)
        first = wheel.build(ROOT, place / "first")
        second = wheel.build(ROOT, place / "second")
        if sbom.digest(first) != sbom.digest(second):
            print("two builds of the wheel differ", file=sys.stderr)
            return 1
        print(f"{first.name}: two builds have the same bytes, {first.stat().st_size} of them")
        programs = install(first, place)
        for program in ("koord", "kubectl-koord"):
            run(programs / program, "version", "--client", place=place)
        return dev(programs / "koord", place)


def install(made: pathlib.Path, place: pathlib.Path) -> pathlib.Path:
    """Install with pipx of the package index, which has nothing but what people have: a Python.

    Dependencies have the versions of the lock, so that a release is tried as it was tested.
    """
    own = place / "pipx-itself"
    subprocess.run([sys.executable, "-m", "venv", str(own)], check=True)
    pip = [str(own / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", PIPX], check=True)
    versions = place / "constraints.txt"
    versions.write_text(pinned((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    outside = {name: value for name, value in os.environ.items() if name in KEPT or "PIP_" in name}
    programs = place / "bin"
    subprocess.run(
        [str(own / "bin" / "pipx"), "install", f"--pip-args=--constraint {versions}", str(made)],
        cwd=place,
        env={
            **outside,
            "HOME": str(place),
            "PIPX_HOME": str(place / "pipx"),
            "PIPX_BIN_DIR": str(programs),
            "PIPX_DEFAULT_PYTHON": sys.executable,
        },
        check=True,
    )
    return programs


def pinned(lock: str) -> str:
    """Return the versions of a lock as constraints, which may have neither hashes nor extras."""
    lines = (line.rstrip("\\ ") for line in lock.splitlines() if re.match(r"[a-z0-9]", line, re.I))
    return "".join(re.sub(r"\[[^]]*\]", "", line) + "\n" for line in lines)


def run(program: pathlib.Path, *words: str, place: pathlib.Path) -> None:
    """Run a command outside of the sources."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [str(program), *words],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    print(f"{program.name}: {done.stdout.strip()}")


def dev(program: pathlib.Path, place: pathlib.Path) -> int:
    """Run `koord dev` until it is ready, stop it as Ctrl-C does, and return its exit code."""
    with subprocess.Popen(
        [str(program), "dev", "--plain", "--nodes", "1", "--no-workload"],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        said: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line.startswith(READY):
                process.send_signal(signal.SIGINT)
        timer.cancel()
    if not any(line.startswith(READY) for line in said):
        print("".join(said), file=sys.stderr)
        print("koord dev did not become ready", file=sys.stderr)
        return 1
    print(f"koord dev: {next(line for line in said if line.startswith(READY)).strip()}, and ended")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
