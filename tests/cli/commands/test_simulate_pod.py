"""`koord simulate pod`: from its arguments to its answer."""

import json

import pytest
import yaml

from cli import main
from cli.snapshot import reader
from tests import builders
from tests.cli.placement import clusters

OBJECTS = (
    builders.a_node("n1", extra={clusters.GPU: "2"}),
    builders.a_node("n2"),
    clusters.a_device(),
    clusters.holds_gpu(),
    builders.a_pod("waits", cpu="3"),
)


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the command on a snapshot and, where one is given, a file with some documents."""
    reader.save(tmp_path / "snapshot", clusters.snapshot(*OBJECTS))

    def tried(*words, documents=()):
        file = []
        if documents:
            (tmp_path / "pod.yaml").write_text(yaml.safe_dump_all(documents))
            file = ["-f", str(tmp_path / "pod.yaml")]
        where = f"--snapshot={tmp_path / 'snapshot'}"
        code = main.main(["simulate", "pod", where, *file, *words])
        return code, capsys.readouterr()

    return tried


def test_text_names_who_leaves_and_why(run):
    code, told = run(documents=[clusters.wants_gpu()])
    lines = told.out.splitlines()
    assert code == 0
    assert lines[0] == "Pod default/wanted (priority 1000) fits on none of 2 nodes as they are."
    assert lines[1].startswith("The extender would evict 1 pod on node n1: Insufficient GPU")
    assert lines[2].startswith("  default/low (priority 10): ")
    assert lines[2].endswith("; allocated by DeviceShare")
    assert "Refused:" in lines


def test_json_holds_the_whole_answer(run):
    code, told = run("-o", "json", documents=[clusters.wants_gpu()])
    found = json.loads(told.out)
    assert (code, found["outcome"], found["preemption"]["by"]) == (0, "evictions", "extender")
    assert [one["pod"] for one in found["preemption"]["victims"]] == ["default/low"]
    assert found["preemption"]["victims"][0]["requests"]["cpu"] == "1"
    assert {tuple(one["nodes"]) for one in found["refused"]} == {("n1",), ("n2",)}


@pytest.mark.parametrize(
    ("words", "documents", "subject"),
    [
        pytest.param(["waits"], [], "default/waits", id="a pod by name"),
        pytest.param(["default/waits"], [], "default/waits", id="by namespace and name"),
        pytest.param(["-n", "team"], [{
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
        }], "team/web", id="the template of a workload"),
    ],
)  # fmt: skip
def test_what_is_tried(run, words, documents, subject):
    code, told = run(*words, documents=documents)
    assert (code, told.err) == (0, "")
    first, *rest = told.out.splitlines()
    assert first.startswith(f"Pod {subject} (priority 0) fits on 2 of 2 nodes.")
    assert {line.split()[0] for line in rest[:2]} == {"n1", "n2"}


@pytest.mark.parametrize(
    ("words", "documents", "why"),
    [
        pytest.param([], [], "name either a pod that waits, or a file with -f", id="nothing"),
        pytest.param(["p"], [clusters.wanted()], "name either", id="both"),
        pytest.param([], [clusters.wanted()] * 2, "holds no single Pod", id="two pods"),
        pytest.param([], [{"kind": "Service"}], "holds no single Pod", id="no pod"),
        pytest.param(["none"], [], "there is no pod default/none", id="unknown"),
        pytest.param(["waits", "--plugin", "X"], [], "X does not exist", id="unknown plug-in"),
    ],
)
def test_bad_arguments_are_refused_with_the_remedy(run, words, documents, why):
    code, told = run(*words, documents=documents)
    assert code == 2
    assert told.err.startswith("koord simulate: ")
    assert why in told.err
