"""What an image is made of and how it was built: CycloneDX and in-toto documents beside it.

The packages are read out of the finished archive, not out of the locks, so that the documents name
what is really in the image.
"""

import dataclasses
import datetime
import email.parser
import hashlib
import json
import pathlib
import subprocess
import tarfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Final, NamedTuple

import packageurl
from cyclonedx.model import bom as cyclonedx
from cyclonedx.model import component as components
from cyclonedx.output import json as cyclonedx_json

DPKG: Final = "var/lib/dpkg/status"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = "https://koord.sh/image/buildah/v1"
# The moment at which everything in a release says that it was made.
_MADE: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_CHUNK: Final = 1 << 20


class SbomError(RuntimeError):
    """An archive that cannot be read; the text says what is missing."""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Package:
    """One package in an image."""

    kind: str
    """`deb` or `pypi`, the type of its package URL."""
    name: str
    version: str
    architecture: str = ""

    @property
    def url(self) -> packageurl.PackageURL:
        """The package URL (purl)."""
        place = "debian" if self.kind == "deb" else None
        qualifiers = {"arch": self.architecture} if self.architecture else None
        return packageurl.PackageURL(self.kind, place, self.name, self.version, qualifiers)


def packages(archive: pathlib.Path) -> list[Package]:
    """Return the Debian and Python packages in the archive of an image, sorted."""
    files = _files(archive)
    found = {package for name, text in files.items() for package in _read(name, text)}
    if not any(package.kind == "pypi" for package in found):
        raise SbomError(f"{archive} holds no Python packages; is it an image of this project?")
    return sorted(found)


def _read(name: str, text: str) -> Iterator[Package]:
    if name.startswith(DPKG):
        for block in text.split("\n\n"):
            fields = email.parser.Parser().parsestr(block)
            if fields["Package"] and "installed" in (fields["Status"] or "installed").split():
                yield Package("deb", fields["Package"], fields["Version"], fields["Architecture"])
    else:
        fields = email.parser.Parser().parsestr(text, headersonly=True)
        yield Package("pypi", fields["Name"].lower().replace("_", "-"), fields["Version"])


def _files(archive: pathlib.Path) -> dict[str, str]:
    """Return the files that name packages, as the last layer that has them says."""
    found: dict[str, str] = {}
    with tarfile.open(archive) as outer:
        for layer in _layers(outer):
            with tarfile.open(fileobj=_member(outer, layer)) as inner:
                for one in inner:
                    name = one.name.removeprefix("./")
                    if _names_packages(name) and (file := inner.extractfile(one)) is not None:
                        found[name] = file.read().decode("utf-8", "replace")
    return found


def _layers(outer: tarfile.TarFile) -> list[str]:
    """Return the layers of a docker or OCI archive, the lowest first."""
    if "manifest.json" in outer.getnames():
        return list(json.load(_member(outer, "manifest.json"))[0]["Layers"])
    (image,) = json.load(_member(outer, "index.json"))["manifests"]
    return [_blob(one) for one in json.load(_member(outer, _blob(image)))["layers"]]


def _blob(described: Mapping[str, str]) -> str:
    return f"blobs/{described['digest'].replace(':', '/')}"


def _member(outer: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        file = outer.extractfile(name)
    except KeyError:
        file = None
    if file is None:
        raise SbomError(f"{outer.name!s} is no archive of an image: it has no {name}")
    return file


def _names_packages(name: str) -> bool:
    if name == DPKG or (name.startswith(f"{DPKG}.d/") and not name.endswith(".md5sums")):
        return True
    return name.endswith(".dist-info/METADATA") and "/site-packages/" in name


def bill(archive: pathlib.Path, name: str, version: str) -> str:
    """Return the software bill of materials of an image as CycloneDX 1.6 JSON."""
    product = components.Component(
        type=components.ComponentType.CONTAINER, name=name, version=version, bom_ref=name
    )
    found = [
        components.Component(
            type=components.ComponentType.LIBRARY,
            name=package.name,
            version=package.version,
            purl=package.url,
            bom_ref=package.url.to_string(),
        )
        for package in packages(archive)
    ]
    return written(product, found)


def written(product: components.Component, found: Sequence[components.Component]) -> str:
    """Return a bill as JSON; equal parts make an equal text."""
    document = cyclonedx.Bom(components=found)
    parts = "\n".join(sorted(str(one.bom_ref.value) for one in found))
    document.serial_number = uuid.uuid5(
        uuid.NAMESPACE_URL, f"{product.name} {product.version} {parts}"
    )
    document.metadata.timestamp = _MADE
    document.metadata.component = product
    document.register_dependency(product, document.components)
    text: str = cyclonedx_json.JsonV1Dot6(document).output_as_string(indent=1)
    return text


def provenance(
    archive: pathlib.Path, root: pathlib.Path, parameters: Mapping[str, str], base: str
) -> str:
    """Return how an archive was built as an in-toto statement with SLSA provenance v1."""
    subjects = [{"name": archive.name, "digest": {"sha256": digest(archive)}}]
    made = Build(
        BUILD_TYPE,
        "https://koord.sh/image/make-image",
        ("Dockerfile", "requirements.lock"),
        f"base:{base}",
    )
    return statement(root, subjects, made, parameters)


class Build(NamedTuple):
    """How something is built: its type, who builds, and of which files."""

    kind: str
    builder: str
    inputs: Sequence[str]
    base: str = ""


def statement(
    root: pathlib.Path,
    subjects: Sequence[Mapping[str, object]],
    build: Build,
    parameters: Mapping[str, str],
) -> str:
    """Return an in-toto statement with SLSA provenance v1 about these subjects."""
    commit, dirty = _commit(root)
    predicate = {
        "buildDefinition": {
            "buildType": build.kind,
            "externalParameters": dict(parameters),
            "internalParameters": {"uncommittedChanges": dirty},
            "resolvedDependencies": [
                {"uri": "git+.", "digest": {"gitCommit": commit}},
                *([{"uri": build.base}] if build.base else []),
                *(_input(root, name) for name in build.inputs),
            ],
        },
        "runDetails": {"builder": {"id": build.builder}},
    }
    said = {
        "_type": STATEMENT,
        "subject": list(subjects),
        "predicateType": PREDICATE,
        "predicate": predicate,
    }
    return json.dumps(said, indent=1) + "\n"


def digest(path: pathlib.Path) -> str:
    """Return the SHA-256 of a file."""
    state = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            state.update(chunk)
    return state.hexdigest()


def _input(root: pathlib.Path, name: str) -> dict[str, object]:
    return {"uri": f"file:{name}", "digest": {"sha256": digest(root / name)}}


def _commit(root: pathlib.Path) -> tuple[str, bool]:
    """Return the commit of the sources, and whether they differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    return git("rev-parse", "HEAD") or "unknown", bool(git("status", "--porcelain"))
