"""What an agent keeps on disk of the news it enforces by, and what becomes of damaged files."""

import os

import msgspec
import pytest

from agent.model.cpus import kubelet_cpu_manager
from agent.store import last_enforced, last_known
from api.kubernetes import core

BOOT = "boot"
NODE = msgspec.convert({"metadata": {"name": "n", "labels": {"a": "b"}}}, core.Node)
SLO = {
    "metadata": {"name": "n", "generation": 7, "managedFields": [{"manager": "x"}]},
    "spec": {"resourceUsedThresholdWithBE": {"enable": True}},
    "status": {"much": "more"},
}
PODS = tuple(msgspec.convert({"metadata": {"uid": f"u{n}"}}, core.Pod) for n in range(3))
KINDS = ("node", "nodeslo", "switches", "pods", "kubelet")


def kept(folder, boot=BOOT):
    return last_enforced.Remembered(folder, boot)


@pytest.fixture
def full(tmp_path):
    memory = kept(tmp_path)
    memory.keep_node(NODE)
    memory.keep_slo(SLO)
    memory.keep_switches({"agent": "off"})
    memory.keep_kubelet(kubelet_cpu_manager.Configuration(policy="static"))
    memory.keep_pods(PODS, 5.0)
    assert memory.problem is None
    return tmp_path


def test_the_next_agent_knows_what_the_last_one_knew(full):
    memory = kept(full)
    assert memory.node == NODE
    assert memory.slo == {"metadata": {"name": "n", "generation": 7}, "spec": SLO["spec"]}
    assert memory.switches == {"agent": "off"}
    assert memory.kubelet.policy == "static"
    assert memory.pods == PODS
    assert memory.problem is None


def test_pods_of_another_boot_are_no_pods_of_this_one(full):
    memory = kept(full, "another")
    assert memory.pods is None
    assert memory.slo is not None


def test_what_is_gone_is_not_known_any_more(full):
    memory = kept(full)
    memory.keep_slo(None)
    assert kept(full).slo is None
    memory.forget()
    assert [getattr(kept(full), name) for name in ("node", "switches", "pods", "kubelet")] == [
        None
    ] * 4


def cut(data):
    return data[:-1]


def flipped(data):
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


def empty(_data):
    return b""


def other_version(data):
    return data.replace(b"last-known-1", b"last-known-2")


def deep(_data):
    return last_known.sealed(b"[" * 50_000 + b"]" * 50_000)


def wrong_shape(_data):
    return last_known.sealed(b'[{"spec": 5}]')


@pytest.mark.parametrize("damage", [cut, flipped, empty, other_version, deep, wrong_shape])
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_put_aside_and_named(full, name, damage):
    path = full / last_known.FOLDER / name
    path.write_bytes(damaged := damage(path.read_bytes()))
    memory = kept(full)
    attribute = {"nodeslo": "slo"}.get(name, name)
    assert getattr(memory, attribute) is None
    assert str(path) in memory.problem
    assert not path.exists()
    assert path.with_name(name + last_known.DAMAGED).read_bytes() == damaged
    others = [kind for kind in KINDS if kind != name]
    assert all(getattr(memory, {"nodeslo": "slo"}.get(kind, kind)) is not None for kind in others)
    # The next good news takes its place.
    memory.keep_node(NODE)
    memory.keep_slo(SLO)
    memory.keep_switches({})
    memory.keep_kubelet(kubelet_cpu_manager.Configuration())
    memory.keep_pods(PODS, 99.0)
    assert path.exists()


def test_a_huge_file_is_not_read(full):
    path = full / last_known.FOLDER / "pods"
    os.truncate(path, last_known.MOST_BYTES + 1)
    memory = kept(full)
    assert memory.pods is None
    assert "larger than" in memory.problem


def test_news_that_are_too_long_are_not_kept_and_named(tmp_path):
    memory = kept(tmp_path)
    memory.keep_switches({"agent": "x" * last_known.MOST_BYTES})
    assert "more than" in memory.problem
    assert kept(tmp_path).switches is None


@pytest.mark.parametrize("how", ["too long", "no room"])
def test_news_that_cannot_be_kept_leave_no_older_ones_to_enforce_by(full, how):
    """A switch that was off and is on again would be off after the next restart in an outage."""
    memory = kept(full)
    if how == "no room":
        (full / last_known.FOLDER / "switches.tmp").mkdir()
    memory.keep_switches(
        {"agent": "enforce", "x": "x" * (how == "too long") * last_known.MOST_BYTES}
    )
    assert "switches not written" in memory.problem
    assert kept(full).switches is None
    assert kept(full).slo is not None


def test_a_folder_that_cannot_be_written_harms_nobody(tmp_path):
    (tmp_path / last_known.FOLDER).write_text("a file where the folder belongs")
    memory = kept(tmp_path)
    memory.keep_node(NODE)
    assert last_known.FOLDER in memory.problem


def test_what_did_not_change_is_not_written_again(full):
    path = full / last_known.FOLDER
    memory = kept(full)
    before = {one.name: one.stat().st_ino for one in path.iterdir()}
    memory.keep_node(NODE)
    memory.keep_slo(SLO)
    memory.keep_switches({"agent": "off"})
    memory.keep_pods(PODS, 100.0)
    assert {one.name: one.stat().st_ino for one in path.iterdir()} == before
    memory.keep_pods(PODS[:1], 105.0)
    assert kept(full).pods == PODS
    memory.keep_pods(PODS[:1], 110.0)
    assert kept(full).pods == PODS[:1]
