"""`koord doctor node` tells what a host can do, here and from the annotation of a Node."""

import asyncio
import json
import time

import pytest

from agent.model import capability_matrix
from agent.observe.node import capability_facts
from api import names, resources
from cli import main
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from simulator.kubelet import nodefs
from simulator.processes import credentials

GIB = 1 << 30


def doctor(*arguments):
    return main.main(["doctor", "node", *arguments])


def here(tmp_path, version=2):
    tree = nodefs.HostTree(tmp_path / "host", 4, 8 * GIB, version)
    return [f"--cgroup={tree.cgroup}", f"--proc={tree.proc}", f"--sys={tree.sys}"]


def test_this_host(tmp_path, capsys):
    assert doctor(*here(tmp_path)) == 0
    said = capsys.readouterr().out
    assert "this host: kernel" in said
    assert "cgroup v2, systemd" in said
    lines = {line.split()[0]: line for line in said.splitlines()[2:] if line[0] != " "}
    assert "works" in lines["cpu-suppress"]
    assert "UNAVAILABLE  resctrl is not mounted" in lines["cache"]


def test_for_programs(tmp_path, capsys):
    assert doctor("-o", "json", "--fail-on", "warning", *here(tmp_path, 1)) == 3
    found = json.loads(capsys.readouterr().out)
    assert {row["strategy"] for row in found["strategies"]} >= {"cpu-suppress", "memory-qos"}


def test_a_host_without_pods(tmp_path, capsys):
    assert doctor(f"--cgroup={tmp_path}") == 0
    told = capsys.readouterr().out
    assert told.count("no kubelet has run here") == 1, "one sentence about many stands once"
    for row in capability_matrix.matrix(capability_facts.facts(None, "/proc", "/sys")):
        assert row.strategy in told
        assert row.verdict is capability_matrix.Verdict.UNAVAILABLE


def test_of_several_roots_one_is_named(tmp_path, capsys):
    (tmp_path / "cgroup.controllers").write_text("cpu\n")
    for root in ("one", "other"):
        (tmp_path / root / "kubepods").mkdir(parents=True)
    assert doctor(f"--cgroup={tmp_path}") == 1
    assert "below one, other" in capsys.readouterr().err
    assert doctor(f"--cgroup={tmp_path}", "--kubelet-root=/other") == 0
    assert "cgroup v2, cgroupfs, below other, a runtime" in capsys.readouterr().out


def test_a_name_belongs_to_a_node(capsys):
    assert main.main(["doctor", "cluster", "worker"]) == 2
    assert "only koord doctor node takes a name" in capsys.readouterr().err


TABLE = capability_matrix.published(
    [capability_matrix.Row("cache", capability_matrix.Verdict.UNAVAILABLE, "no resctrl")]
)


@pytest.mark.parametrize(
    ("annotation", "code", "said"),
    [
        (TABLE, 0, "UNAVAILABLE  no resctrl"),
        (None, 1, "no agent has looked at it"),
        ("{", 1, "remove it, its agent writes it again"),
    ],
    ids=["a table", "none", "no table"],
)
async def test_a_node_by_its_name(tmp_path, capsys, annotation, code, said):
    async with apiserver.running(clock=ManualClock(float(int(time.time())))) as plane:
        notes = {} if annotation is None else {names.ANNOTATION_STRATEGIES: annotation}
        node = {"metadata": {"name": "worker", "annotations": notes}}
        plane.objects.create(resources.NODES, {"apiVersion": "v1", "kind": "Node", **node})
        login = tmp_path / "kubeconfig"
        entry = credentials.kubeconfig(plane.url, plane.ca, plane.token)
        login.write_text(json.dumps(entry))
        words = ["worker", f"--kubeconfig={login}"]
        assert await asyncio.to_thread(doctor, *words) == code
        told = capsys.readouterr()
        assert said in told.out + told.err
        assert await asyncio.to_thread(doctor, "nowhere", words[1]) == 1
        assert "nowhere" in capsys.readouterr().err
