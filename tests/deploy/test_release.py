"""What `make release` writes beside the wheel and the image."""

import io
import json
import pathlib
import re
import subprocess
import tarfile
import tomllib

import pytest
import yaml

from deploy.release import archives, documents, try_wheel

ROOT = pathlib.Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_the_packed_chart_is_whole_and_the_same_every_time():
    said, packed = documents.chart(ROOT)
    assert documents.chart(ROOT) == (said, packed)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        names = archive.getnames()
        assert {member.mtime for member in archive} == {archives.EPOCH}
    assert "koord/Chart.yaml" in names
    assert "koord/files/crds/slo.koordinator.sh_nodeslos.yaml" in names
    index = yaml.safe_load(documents.index(said, "koord-0.1.0.tgz", packed))
    (entry,) = index["entries"]["koord"]
    assert entry["digest"] == documents.sha256(packed)
    assert entry["urls"] == ["koord-0.1.0.tgz"]
    assert entry["version"] == said["version"]


def test_every_locked_package_is_in_the_bill_with_its_hashes():
    text = documents.bill(LOCK, "1.2.3")
    assert documents.bill(LOCK, "1.2.3") == text
    found = json.loads(text)["components"]
    pins = re.findall(r"^([a-z0-9-]+)(?:\[.*\])?==", LOCK, re.MULTILINE)
    assert sorted(one["name"] for one in found) == sorted(pins)
    assert all(one["hashes"] and one["purl"].startswith("pkg:pypi/") for one in found)


def test_provenance_and_checksums_name_every_file():
    files = {"a.whl": "0" * 64, "b.tgz": "1" * 64}
    said = json.loads(documents.provenance(ROOT, files))
    assert {one["name"]: one["digest"]["sha256"] for one in said["subject"]} == files
    assert said["predicateType"] == "https://slsa.dev/provenance/v1"
    assert documents.checksums(files) == f"{'0' * 64}  a.whl\n{'1' * 64}  b.tgz\n"


def test_krew_is_told_what_to_fetch():
    made = yaml.safe_load(documents.krew("1.2.3", "https://x.example", "k.tar.gz", b"x"))
    assert made["spec"]["version"] == "v1.2.3"
    for platform in made["spec"]["platforms"]:
        assert platform["sha256"] == documents.sha256(b"x")
        assert platform["uri"] == "https://x.example/k.tar.gz"
    assert len(made["spec"]["shortDescription"]) <= 80


@pytest.mark.parametrize("program", ["koord", "pipx", ""])
def test_the_plugin_runs_koord_where_it_is(tmp_path, program):
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "kubectl-koord"
    shim.write_bytes(documents.shim("koord.whl"))
    if program:
        double = tmp_path / "bin" / program
        double.write_text(f'#!/bin/sh\necho {program} "$@"\n')
        double.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(shim), "status"],
        env={"PATH": f"{tmp_path / 'bin'}"} if program == "koord" else
        {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    spec = f"--spec {tmp_path / 'bin' / 'koord.whl'}"
    said = {"koord": "koord status\n", "pipx": f"pipx run {spec} koord status\n", "": ""}
    assert done.stdout == said[program]
    assert done.returncode == (0 if program else 1)


def test_the_wheel_takes_every_file_of_its_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tools = project["tool"]["setuptools"]
    assert project["project"]["scripts"]["kubectl-koord"] == "cli.main:main"
    packages = [one.removesuffix("*") for one in tools["packages"]["find"]["include"]]
    for package in packages:
        taken = {
            path
            for pattern in tools["package-data"].get(package, ())
            for path in (ROOT / package).glob(pattern)
        }
        other = {
            path
            for path in (ROOT / package).rglob("*")
            if path.is_file() and path.suffix not in (".py", ".pyc")
        }
        assert other <= taken, package
        for path in (ROOT / package).rglob("*.py"):
            assert (path.parent / "__init__.py").is_file(), path


def test_pipx_is_told_the_versions_of_the_lock_alone():
    lock = 'a[x,y]==1.2 ; python_version < "4" \\\n    --hash=sha256:00\n    # via b\nb==3 \\\n'
    assert try_wheel.pinned(lock) == 'a==1.2 ; python_version < "4"\nb==3\n'
