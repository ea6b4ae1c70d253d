"""Odd files and snapshots: `koord simulate` says what is wrong with them, or leaves it out."""

import gzip
import json

import pytest
import yaml

from cli import main
from cli.snapshot import format as formats
from tests.cli.simulation import test_settings as small_clusters

NAMED = {"name": "odd", "namespace": "default"}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": NAMED, "spec": {"containers": []}}
QUOTA = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota"}
LOAD = ("load", "--day-curve", "--hours", "1", "--step", "1h")


@pytest.fixture
def simulate(tmp_path, capsys):
    """Run a command on a small cluster; `changed` edits the document of its snapshot."""

    def run(*words, file=None, changed=None):
        snapshot = small_clusters.small(small_clusters.batch("b1", 1))
        document = json.loads(gzip.decompress(formats.encode(snapshot)))
        if changed is not None:
            changed(document)
        path = tmp_path / "file.snapshot"
        path.write_bytes(gzip.compress(json.dumps(document).encode()))
        if file is not None:
            written = tmp_path / "file.yaml"
            written.write_text(yaml.safe_dump(file))
            words = (*words, "-f", str(written))
        code = main.main(["simulate", *words, f"--snapshot={path}"])
        return code, capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        pytest.param(("pod",), {**POD, "metadata": ["odd"]}, "no Pod that can be read", id="pod"),
        pytest.param(("pod",), {**POD, "spec": 1.5}, "no Pod that can be read", id="spec of a pod"),
        pytest.param(("quota",), {**QUOTA, "metadata": "odd"}, "metadata", id="quota"),
    ],
)
def test_a_file_of_an_odd_shape_is_named(simulate, words, file, said):
    code, told = simulate(*words, file=file)
    assert code == 2
    assert said in told


@pytest.mark.parametrize("moment", ["", "yesterday", "2026-13-01T00:00:00Z"])
@pytest.mark.parametrize(
    "words", [("rebalance",), ("settings", "--nodes", "1", "--like", "n1"), LOAD]
)
def test_a_snapshot_of_no_moment_is_named(simulate, words, moment):
    code, told = simulate(*words, changed=lambda document: document.update(takenAt=moment))
    assert code == 1
    assert "takenAt" in told


def replacing(kind, **parts):
    def changed(document):
        for one in document["objects"][kind]:
            one.update(parts)

    return changed


def adding(kind, *objects):
    def changed(document):
        document["objects"][kind] += objects

    return changed


NAMELESS = {**QUOTA, "metadata": {**NAMED, "name": ""}, "spec": {"min": {"cpu": "1"}}}
CONTAINER = {"name": {}, "resources": {"requests": {"cpu": "1"}}}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(replacing("nodes", status={"capacity": "much"}), id="capacity"),
        pytest.param(replacing("nodes", status={"allocatable": {"cpu": "much"}}), id="quantity"),
        pytest.param(replacing("configmaps", data={"colocation-config": True}), id="setting"),
        pytest.param(
            adding(
                "configmaps", {"metadata": {"name": "koord-extender"}, "data": {"settings.yaml": 5}}
            ),
            id="settings of the extender",
        ),
        pytest.param(adding("elasticquotas.scheduling.sigs.k8s.io", NAMELESS), id="no name"),
        pytest.param(adding("pods", {"metadata": {**NAMED, "uid": "u"}}), id="pod without a spec"),
        pytest.param(
            adding(
                "pods", {"metadata": {**NAMED, "uid": "u"}, "spec": {"containers": [CONTAINER]}}
            ),
            id="container",
        ),
    ],
)
@pytest.mark.parametrize("words", [("settings", "--nodes", "1", "--like", "n1"), LOAD])
def test_an_object_of_an_odd_shape_is_left_out(simulate, words, changed):
    code, told = simulate(*words, changed=changed)
    assert code in (0, 1, 2)
    assert code == 0 or told.startswith("koord simulate: ")


def test_a_moment_after_which_no_hours_come_is_named(simulate):
    late = "9999-12-31T23:00:00Z"
    words = ("load", "--day-curve", "--hours", "2", "--step", "1h")
    code, told = simulate(*words, changed=lambda document: document.update(takenAt=late))
    assert code == 2
    assert late in told
    code, told = simulate("load", "--day-curve", "--hours", "1e8", "--step", "100000h")
    assert code == 2
    assert "--hours" in told
