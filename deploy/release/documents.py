"""What goes with the files of a release: index, krew manifest, bill, provenance, checksums."""

import hashlib
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import packageurl
import yaml
from cyclonedx.model import HashAlgorithm, HashType, component

from deploy.image import sbom
from deploy.release import archives

_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
CREATED: Final = "2026-01-01T00:00:00Z"
BUILD_TYPE: Final = "https://koord.sh/release/make/v1"
PLATFORMS: Final = (
    ("linux", "amd64"),
    ("linux", "arm64"),
    ("darwin", "amd64"),
    ("darwin", "arm64"),
)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def index(chart: Mapping[str, Any], name: str, data: bytes) -> str:
    """Return the index of a Helm repository that holds one chart; its address is relative."""
    entry = {**chart, "created": CREATED, "digest": sha256(data), "urls": [name]}
    body = {"apiVersion": "v1", "entries": {chart["name"]: [entry]}, "generated": CREATED}
    return yaml.safe_dump(body, sort_keys=True)


def krew(version: str, address: str, name: str, data: bytes) -> str:
    """Return the manifest by which krew installs `kubectl koord`."""
    platforms = [
        {
            "selector": {"matchLabels": {"os": system, "arch": machine}},
            "uri": f"{address}/{name}",
            "sha256": sha256(data),
            "bin": "kubectl-koord",
        }
        for system, machine in PLATFORMS
    ]
    spec = {
        "version": f"v{version}",
        "homepage": address,
        "shortDescription": "Look at and try out colocation of services and batch work",
        "description": "Shows what nodes lend to batch work, why pods wait and what a change of "
        "quotas, pods or gangs would do.\n",
        "caveats": "Needs Python 3.11 or newer, and pipx unless `koord` is installed already.\n",
        "platforms": platforms,
    }
    body = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "koord"},
        "spec": spec,
    }
    return yaml.safe_dump(body, sort_keys=False)


def shim(wheel: str) -> bytes:
    """Return the program that krew installs: the `koord` of this machine, else that of pipx."""
    lines = (
        "#!/bin/sh",
        "# kubectl runs this as `kubectl koord`.",
        'if command -v koord >/dev/null 2>&1; then exec koord "$@"; fi',
        'self=$0; [ -L "$self" ] && self=$(readlink "$self")',
        'here=$(cd "$(dirname "$self")" && pwd)',
        "if command -v pipx >/dev/null 2>&1; then",
        f'  exec pipx run --spec "$here/{wheel}" koord "$@"',
        "fi",
        f'echo "kubectl koord: install pipx, or run: pip install $here/{wheel}" >&2',
        "exit 1",
        "",
    )
    return "\n".join(lines).encode()


def bill(lock: str, version: str) -> str:
    """Return what the wheel needs as CycloneDX, with the hashes of the lock."""
    found = []
    pins = list(_PIN.finditer(lock))
    for pin, after in zip(pins, [*pins[1:], None], strict=True):
        text = lock[pin.start() : after.start() if after else len(lock)]
        url = packageurl.PackageURL("pypi", None, pin[1].lower().replace("_", "-"), pin[2])
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=one) for one in _HASH.findall(text)]
        found.append(
            component.Component(
                type=component.ComponentType.LIBRARY,
                name=url.name,
                version=pin[2],
                purl=url,
                bom_ref=url.to_string(),
                hashes=hashes,
            )
        )
    product = component.Component(
        type=component.ComponentType.APPLICATION, name="koord", version=version, bom_ref="koord"
    )
    return sbom.written(product, found)


def provenance(root: pathlib.Path, files: Mapping[str, str]) -> str:
    """Return how the files, named with their SHA-256, were made: in-toto, SLSA provenance v1."""
    subjects = [{"name": name, "digest": {"sha256": one}} for name, one in sorted(files.items())]
    inputs = ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock")
    made = sbom.Build(BUILD_TYPE, "https://koord.sh/release/make-release", inputs)
    return sbom.statement(root, subjects, made, {"target": "release"})


def checksums(files: Mapping[str, str]) -> str:
    """Return what `sha256sum --check` reads."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))


def chart(root: pathlib.Path) -> tuple[dict[str, Any], bytes]:
    """Return what the chart says of itself, and the packed chart."""
    place = root / "deploy" / "helm" / "koord"
    said: dict[str, Any] = yaml.safe_load((place / "Chart.yaml").read_text(encoding="utf-8"))
    return said, archives.packed(archives.folder(place, str(said["name"])))


def cosign(files: Sequence[str]) -> str:
    """Return the commands that sign a release; keys belong to whoever publishes it."""
    return "".join(
        f"cosign sign-blob --yes --bundle {name}.sigstore.json {name}\n" for name in sorted(files)
    )
