"""Make a release: `python deploy/release/build.py --help`."""

import argparse
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from deploy.image import build as images
from deploy.image import packages, sbom
from deploy.release import archives, documents, wheel
from deploy.site import build as sites

ROOT = pathlib.Path(__file__).parents[2]
ADDRESS = "https://releases.invalid/koord"
"""Where nobody can fetch by mistake what was not published: people name their own."""


def files(root: pathlib.Path, target: pathlib.Path, address: str) -> None:
    """Write everything but the image, its documents and what names all files."""
    version = images.version(root)
    made = wheel.build(root, target)
    said, packed = documents.chart(root)
    name = f"{said['name']}-{said['version']}.tgz"
    (target / name).write_bytes(packed)
    (target / "index.yaml").write_text(documents.index(said, name, packed), encoding="utf-8")
    plugin = archives.packed(
        {
            "kubectl-koord": documents.shim(made.name),
            made.name: made.read_bytes(),
            "LICENSE": (root / "LICENSE").read_bytes(),
        },
        frozenset({"kubectl-koord"}),
    )
    name = f"kubectl-koord-{version}.tar.gz"
    (target / name).write_bytes(plugin)
    manifest = documents.krew(version, address, name, plugin)
    (target / "koord.yaml").write_text(manifest, encoding="utf-8")
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    bill = documents.bill(lock, version)
    (target / f"koord-{version}.cdx.json").write_text(bill, encoding="utf-8")
    for lock_name in ("requirements.lock", "requirements-gpu.lock"):
        shutil.copyfile(root / lock_name, target / lock_name)


def manual(target: pathlib.Path) -> None:
    """Add the manual as a site: its version, and what versions share."""
    with tempfile.TemporaryDirectory() as scratch:
        site = pathlib.Path(scratch)
        version = sites.build(site)
        packed = archives.packed(archives.folder(site, "koord-manual"))
        (target / f"koord-manual-{version}.tar.gz").write_bytes(packed)


def image(target: pathlib.Path) -> str:
    """Add the image where this machine can build it; else return why it cannot."""
    try:
        archive = images.image(kind="oci")
    except (images.BuildError, packages.PackagesError) as error:
        return str(error)
    version = images.version()
    place = target / f"koord-image-{version}.oci.tar"
    shutil.copyfile(archive, place)
    bill = sbom.bill(place, "koord", version)
    place.with_suffix(".cdx.json").write_text(bill, encoding="utf-8")
    return ""


def named(root: pathlib.Path, target: pathlib.Path) -> None:
    """Write what names all files: provenance, checksums and the commands that sign."""
    found = {path.name: sbom.digest(path) for path in sorted(target.iterdir())}
    said = documents.provenance(root, found)
    (target / "provenance.intoto.json").write_text(said, encoding="utf-8")
    found["provenance.intoto.json"] = sbom.digest(target / "provenance.intoto.json")
    (target / "SHA256SUMS").write_text(documents.checksums(found), encoding="utf-8")
    (target / "cosign.sh").write_text(documents.cosign(["SHA256SUMS", *found]), encoding="utf-8")


def main() -> int:
    """Make a release in an empty folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0] + ".")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--address", default=ADDRESS, help="where the files will be published")
    parser.add_argument("--no-image", action="store_true", help="leave the image out")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        target = pathlib.Path(scratch) / "release"
        target.mkdir()
        files(ROOT, target, chosen.address)
        manual(target)
        missing = "it was left out" if chosen.no_image else image(target)
        named(ROOT, target)
        shutil.rmtree(chosen.output, ignore_errors=True)
        shutil.copytree(target, chosen.output)
    for path in sorted(chosen.output.iterdir()):
        print(f"{path.stat().st_size:>12}  {path}")
    if missing:
        print(f"there is no image in it: {missing}", file=sys.stderr)
    return 1 if missing and not chosen.no_image else 0


if __name__ == "__main__":
    sys.exit(main())
