"""Debian packages unpacked into a private folder: nothing is installed on this machine.

`apt-get` runs with its own state, so that neither stale lists nor a missing `apt-get update`
of this machine matter, and only asks Debian for what this machine does not have already.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence

KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
MIRROR = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
TAIL = 4000


class PackagesError(RuntimeError):
    """Packages cannot be had; the text says why."""


class UnreachableError(PackagesError):
    """Debian's packages cannot be downloaded from here."""


def cache(*parts: str) -> pathlib.Path:
    """A folder below the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base, "koord", *parts)


def obstacle() -> str:
    """Why this machine cannot unpack packages of Debian, empty when it can."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            return f"there is no {tool}: this is no Debian"
    if not KEYRING.is_file():
        return f"{KEYRING} is missing, so packages cannot be verified"
    if not release():
        return "/etc/os-release names no Debian release"
    return ""


def release() -> str:
    """The code name of the Debian release that this machine runs, empty where it is none."""
    fields: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            fields[name] = value.strip('"')
    return fields.get("VERSION_CODENAME", "") if fields.get("ID") == "debian" else ""


def sources(suite: str) -> str:
    """The apt sources of one Debian release."""
    signed = f"[signed-by={KEYRING}]"
    return "".join(
        f"deb {signed} {place} {name} main\n"
        for place, name in (
            (MIRROR, suite),
            (MIRROR, f"{suite}-updates"),
            (SECURITY, f"{suite}-security"),
        )
    )


@contextlib.contextmanager
def alone(folder: pathlib.Path) -> Iterator[None]:
    """Keep others from filling the same cache folder at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unpacked(names: Sequence[str]) -> pathlib.Path:
    """Return a folder with these packages and what they depend on beyond this machine's own."""
    reason = obstacle()
    if reason:
        raise PackagesError(f"{', '.join(names)}: {reason}")
    key = hashlib.sha256(f"{release()} {sorted(names)} {_installed()}".encode()).hexdigest()[:16]
    place = cache("debian")
    with alone(place):
        target = place / key
        if not target.is_dir():
            fresh = place / f"{key}.new"
            shutil.rmtree(fresh, ignore_errors=True)
            _unpack(_download(names, place / "apt"), fresh)
            fresh.rename(target)
    return target


def _installed() -> str:
    """What tells one state of this machine's packages from another."""
    return hashlib.sha256(pathlib.Path("/var/lib/dpkg/status").read_bytes()).hexdigest()


def _download(names: Sequence[str], state: pathlib.Path) -> list[pathlib.Path]:
    archives = state / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    for folder in (archives / "partial", state / "lists" / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    listed = state / "sources.list"
    listed.write_text(sources(release()), encoding="utf-8")
    options = {
        "Dir::Etc::sourcelist": listed,
        "Dir::Etc::sourceparts": "-",
        "Dir::State": state,
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": state,
        "Debug::NoLocking": "true",
        "APT::Sandbox::User": "root",
        "Acquire::Retries": "3",
    }
    apt = ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]
    install = ("--yes", "--no-install-recommends", "--download-only", "install", *names)
    try:
        run([*apt, "update"])
        run([*apt, *install])
    except PackagesError as error:
        raise UnreachableError(str(error)) from error
    return sorted(archives.glob("*.deb"))


def _unpack(files: Sequence[pathlib.Path], root: pathlib.Path) -> None:
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc").mkdir()
    for file in files:
        run(["dpkg-deb", "--extract", str(file), str(root)])


def run(command: Sequence[str], *, environment: dict[str, str] | None = None) -> None:
    """Run a command to its end; an error carries the end of what it said."""
    done = subprocess.run(
        command,
        env={**os.environ, "LC_ALL": "C", **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PackagesError(
            f"{' '.join(command[:8])} failed ({done.returncode}):\n{done.stdout[-TAIL:]}"
        )
