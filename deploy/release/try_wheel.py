"""Install the wheel away from the sources, and run `koord dev` from it until it is ready."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from deploy.image import sbom
from deploy.release import wheel

ROOT = pathlib.Path(__file__).parents[2]
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
        programs = install(first, place / "venv")
        for program in ("koord", "kubectl-koord"):
            run(programs / program, "version", "--client", place=place)
        return dev(programs / "koord", place)


def install(made: pathlib.Path, venv: pathlib.Path) -> pathlib.Path:
    """Install with the pinned dependencies, as pipx does into a venv of its own."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    pip.append("--disable-pip-version-check")
    lock = str(ROOT / "requirements.lock")
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=True)
    subprocess.run([*pip, "--no-deps", str(made)], check=True)
    return venv / "bin"


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
