"""Build the image from the Dockerfile without a daemon: `python deploy/image/build.py --help`.

Buildah with chroot isolation builds it. Where no base image is named, one is made of Debian's
packages, so that no registry is needed. An image of the same content is built once.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from deploy.image import packages, sbom

ROOT = pathlib.Path(__file__).parents[2]
SUITE = "bookworm"
TOOLS = ("buildah", "mmdebstrap")
BASE_PACKAGES = (
    *("ca-certificates", "libpython3-stdlib", "libstdc++6", "python3-minimal", "python3-venv"),
)
"""What a slim image of Python has as well; numpy needs the library of C++."""
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
KEPT = ("/usr/share/doc/*/copyright",)
# The image says that it was made at this moment, so that equal sources make equal images.
EPOCH = 1_767_225_600
KEEP = 3
MOST_LAYERS = 200
FORMATS = {"docker": "docker-archive", "oci": "oci-archive"}


class BuildError(RuntimeError):
    """The image cannot be built here; the text says why."""


def obstacle() -> str:
    """Why this machine cannot build the image, empty when it can."""
    if os.geteuid() != 0:
        return "building without a daemon needs root, for chroot and mounts"
    if shutil.which("unshare") is None:
        return "there is no unshare (package util-linux)"
    return packages.obstacle()


def sources(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """What the image is made of, in a fixed order: what .dockerignore lets through."""
    lines = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    chosen = [root / line[1:] for line in lines if line.startswith("!")]
    return [root / "Dockerfile", *sorted(_files(chosen))]


def _files(chosen: Sequence[pathlib.Path]) -> Iterator[pathlib.Path]:
    for path in chosen:
        if path.is_dir():
            for found in path.rglob("*"):
                if found.is_file() and "__pycache__" not in found.parts and found.suffix != ".pyc":
                    yield found
        elif path.is_file():
            yield path


def digest(base: str, root: pathlib.Path = ROOT) -> str:
    """What tells one content of the image from another."""
    state = hashlib.sha256(f"{base} {SUITE} {BASE_PACKAGES} {EPOCH}".encode())
    state.update(pathlib.Path(__file__).read_bytes())
    for path in sources(root):
        state.update(f"{path.relative_to(root)}\0{path.stat().st_mode & 0o111:o}\0".encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def version(root: pathlib.Path = ROOT) -> str:
    """The version of the product."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def image(base: str = "", name: str = "localhost/koord", kind: str = "docker") -> pathlib.Path:
    """Return an archive of the image; its tag is the first twelve digits of its content."""
    reason = obstacle()
    if reason:
        raise BuildError(reason)
    content = digest(f"{base} {name} {kind}")
    place = packages.cache("image")
    target = place / f"koord-{content[:12]}.{kind}.tar"
    with packages.alone(place):
        if not target.is_file():
            fresh = place / "new.tar"
            fresh.unlink(missing_ok=True)
            _build(base or _debian(), f"{name}:{content[:12]}", f"{FORMATS[kind]}:{fresh}")
            fresh.rename(target)
        target.touch()
        kept = sorted(place.glob("koord-*.tar"), key=lambda f: -f.stat().st_mtime)
        for old in kept[KEEP:]:
            old.unlink()
    return target


def reference(archive: pathlib.Path, name: str = "localhost/koord") -> str:
    """What an image that `image` returned is called."""
    return f"{name}:{archive.name.split('.')[0].removeprefix('koord-')}"


def _recipe() -> str:
    """Return the name of the base that is made of Debian's packages."""
    recipe = f"{SUITE} {BASE_PACKAGES} {LEFT_OUT} {KEPT}"
    return f"{SUITE}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def _debian() -> pathlib.Path:
    """Make a root of Debian with Python, once."""
    target = packages.cache("image", "base") / f"{_recipe()}.tar"
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    tools = packages.unpacked(TOOLS)
    listed = target.with_suffix(".list")
    listed.write_text(packages.sources(SUITE), encoding="utf-8")
    fresh = target.with_suffix(".new")
    options = [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT]
    options += [f"--dpkgopt=path-include={path}" for path in KEPT]
    say(f"making a base of Debian {SUITE}")
    packages.run(
        [
            *("perl", str(tools / "usr/bin/mmdebstrap"), "--mode=root", "--format=tar"),
            *("--variant=essential", f"--include={','.join(BASE_PACKAGES)}"),
            *(*options, '--aptopt=APT::Sandbox::User "root"'),
            *(SUITE, str(fresh), str(listed)),
        ],
        environment={
            "PATH": f"{tools / 'usr/bin'}:{os.environ['PATH']}:/usr/sbin:/sbin",
            "SOURCE_DATE_EPOCH": str(EPOCH),
            # Made by root, used by everybody in the image.
            "TMPDIR": str(_scratch("debian")),
        },
    )
    fresh.rename(target)
    return target


def _scratch(name: str) -> pathlib.Path:
    folder = packages.cache("image", "scratch", name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _build(base: str | pathlib.Path, tag: str, destination: str) -> None:
    tools = packages.unpacked(TOOLS)
    storage = _storage(base)
    labels = {
        "org.opencontainers.image.title": "koord",
        "org.opencontainers.image.description": "Colocation beside an unmodified kube-scheduler",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version(),
        "org.opencontainers.image.base.name": str(base)
        if isinstance(base, str)
        else f"debian:{SUITE}",
    }
    environment = {
        **os.environ,
        "TOOLS": str(tools),
        "STORAGE": str(storage),
        "BASE": str(base),
        "TAG": tag,
        "CONTEXT": str(ROOT),
        "DESTINATION": destination,
        "EPOCH": str(EPOCH),
        "LABELS": "\n".join(f"{name}={value}" for name, value in labels.items()),
        # Caches that RUN --mount=type=cache fills are kept below.
        "TMPDIR": str(_scratch("tmp")),
    }
    script = pathlib.Path(__file__).parent / "buildah.sh"
    say(f"building {tag}")
    # A mount namespace of its own: what the script mounts is gone with it, whatever happens.
    command = ["unshare", "--mount", "--propagation=private", "bash", str(script)]
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        # Whatever is left half-made must not hinder the next one.
        shutil.rmtree(storage, ignore_errors=True)
        said = f"{done.stdout}\n{done.stderr}"[-packages.TAIL :]
        raise BuildError(f"buildah failed ({done.returncode}):\n{said}")


def _storage(base: str | pathlib.Path) -> pathlib.Path:
    """The folder of layers, kept while what rarely changes stays the same, and not for ever."""
    state = hashlib.sha256(str(base).encode())
    locks = ("requirements.lock", "requirements-gpu.lock", "requirements-dev.lock")
    for name in ("Dockerfile", *locks):
        state.update((ROOT / name).read_bytes())
    place = _scratch("storage")
    chosen = place / state.hexdigest()[:12]
    for folder in place.iterdir():
        used = len(list(folder.glob("overlay/*"))) if folder == chosen else MOST_LAYERS
        if used >= MOST_LAYERS:
            shutil.rmtree(folder, ignore_errors=True)
    chosen.mkdir(exist_ok=True)
    return chosen


def say(text: str) -> None:
    """Wake the callers that wait."""
    print(text, file=sys.stderr, flush=True)


def describe(archive: pathlib.Path) -> str:
    """The layers of a docker archive and their sizes, for people."""
    listing = subprocess.run(
        ["tar", "--extract", "--to-stdout", "--file", str(archive), "manifest.json"],
        capture_output=True,
        check=True,
    )
    layers = json.loads(listing.stdout)[0]["Layers"]
    return f"{archive.stat().st_size / 1e6:.0f} MB unpacked in {len(layers)} layers"


def main() -> int:
    """Build the image and put the archive where it was asked for."""
    parser = argparse.ArgumentParser(description="Build the image without a daemon.")
    parser.add_argument("--base", default="", help="base image of a registry; Debian if absent")
    parser.add_argument("--name", default="localhost/koord", help="name of the image")
    parser.add_argument("--format", choices=tuple(FORMATS), default="docker")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "koord-image.tar")
    chosen = parser.parse_args()
    try:
        archive = image(chosen.base, chosen.name, chosen.format)
    except (BuildError, packages.PackagesError) as error:
        say(f"the image was not built: {error}")
        return 1
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.unlink(missing_ok=True)
    shutil.copyfile(archive, chosen.output)
    bill = chosen.output.with_suffix(".cdx.json")
    bill.write_text(sbom.bill(chosen.output, chosen.name, version()))
    said = chosen.output.with_suffix(".provenance.json")
    parameters = {"base": chosen.base, "name": chosen.name, "format": chosen.format}
    said.write_text(sbom.provenance(chosen.output, ROOT, parameters, chosen.base or _recipe()))
    print(f"{bill}  what is in it (CycloneDX)\n{said}  how it was built (in-toto, SLSA provenance)")
    size = describe(archive) if chosen.format == "docker" else ""
    print(f"{chosen.output}  {reference(archive, chosen.name)}  {size}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
