"""The documents beside the archive of an image, read out of generated archives."""

import io
import json
import pathlib
import tarfile

import pytest

from deploy.image import sbom

STATUS = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u10

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""
METADATA = "Metadata-Version: 2.1\nName: Typing_Extensions\nVersion: {}\n\nText: Name: no\n"
SITE = "opt/koord/lib/python3.11/site-packages"


def tar(files):
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return written.getvalue()


LAYERS = {
    "one/layer.tar": {"var/lib/dpkg/status": STATUS.encode(), "etc/passwd": b"x"},
    "two/layer.tar": {f"./{SITE}/t-1.dist-info/METADATA": METADATA.format("4.12").encode()},
}


def docker(layers):
    manifest = [{"Layers": list(layers)}]
    return {
        "manifest.json": json.dumps(manifest).encode(),
        **{n: tar(f) for n, f in layers.items()},
    }


def oci(layers):
    blobs = {f"blobs/sha256/{n}": tar(files) for n, files in enumerate(layers.values())}
    described = [{"digest": name[6:].replace("/", ":")} for name in blobs]
    manifest = {"layers": described}
    blobs["blobs/sha256/m"] = json.dumps(manifest).encode()
    index = {"manifests": [{"digest": "sha256:m"}]}
    return {"index.json": json.dumps(index).encode(), **blobs}


@pytest.fixture
def written(tmp_path):
    def write(files):
        path = tmp_path / "image.tar"
        path.write_bytes(tar(files))
        return path

    return write


@pytest.mark.parametrize("form", [docker, oci])
def test_the_packages_of_an_image_are_those_in_its_layers(written, form):
    found = sbom.packages(written(form(LAYERS)))
    assert found == [
        sbom.Package("deb", "libc6", "2.36-9+deb12u10", "amd64"),
        sbom.Package("pypi", "typing-extensions", "4.12"),
    ]


def test_a_later_layer_wins(written):
    status = STATUS.replace("u10", "u11").encode()
    layers = {**LAYERS, "three/layer.tar": {"var/lib/dpkg/status": status}}
    assert sbom.packages(written(docker(layers)))[0].version == "2.36-9+deb12u11"


def test_the_bill_is_cyclonedx_and_names_each_package_by_its_url(written):
    bill = json.loads(sbom.bill(written(docker(LAYERS)), "registry.example.com/koord", "1.2"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "registry.example.com/koord"
    assert {one["purl"] for one in bill["components"]} == {
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64",
        "pkg:pypi/typing-extensions@4.12",
    }


def test_the_provenance_names_the_archive_the_commit_and_the_locks(written):
    path = written(docker(LAYERS))
    root = pathlib.Path(__file__).parents[2]
    said = json.loads(sbom.provenance(path, root, {"base": ""}, "bookworm"))
    assert said["predicateType"] == "https://slsa.dev/provenance/v1"
    assert said["subject"] == [{"name": "image.tar", "digest": {"sha256": sbom.digest(path)}}]
    inputs = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    lock = {one["uri"]: one.get("digest") for one in inputs}["file:requirements.lock"]
    assert lock == {"sha256": sbom.digest(root / "requirements.lock")}


@pytest.mark.parametrize(
    "files", [{"x": b""}, docker({"one/layer.tar": {"etc/passwd": b""}})], ids=["no image", "empty"]
)
def test_what_is_no_image_of_ours_is_refused(written, files):
    with pytest.raises(sbom.SbomError, match=r"image\.tar"):
        sbom.packages(written(files))


def test_the_base_of_the_dockerfile_is_named_by_its_digest():
    text = (pathlib.Path(__file__).parents[2] / "Dockerfile").read_text()
    (base,) = [line for line in text.splitlines() if line.startswith("ARG BASE=")]
    assert "@sha256:" in base
