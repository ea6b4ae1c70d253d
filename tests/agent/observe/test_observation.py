"""Readings of a generated host become figures."""

import os
import shutil

import msgspec
import pytest

from agent.host import files
from agent.model import state
from agent.observe import observation
from agent.observe.cgroups import cgroup_files
from api.kubernetes import core
from simulator.kubelet import nodefs

GIB = 1 << 30


def group_of(host, uid):
    names = [p for p in host.tree.cgroup.rglob("*") if p.is_dir() and uid in p.name]
    return [path for path in names if "cri-containerd" not in path.name and path.name != f"c-{uid}"]


def test_usage_is_what_the_host_was_given(any_host):
    any_host.add("p1", "Burstable", 1500, 3 * GIB)
    any_host.add("p2", "BestEffort", 500, GIB)
    any_host.add("p3", "Guaranteed", 1000, 2 * GIB)
    any_host.tree.set_load(nodefs.SYSTEM, 250, GIB)
    first = any_host.step()
    assert first.usage.cpu is None
    assert first.usage.memory == 7 * GIB
    picture = any_host.step(1.0)
    assert picture.usage.cpu == pytest.approx(3.25, abs=0.011)
    assert [pod.usage.cpu for pod in picture.pods] == pytest.approx([1.5, 0.5, 1.0])
    assert [pod.usage.memory for pod in picture.pods] == [3 * GIB, GIB, 2 * GIB]
    assert picture.system.cpu == pytest.approx(0.25, abs=0.011)
    assert picture.system.memory == GIB
    assert picture.problems == {}
    assert len(picture.processors) == 8


def test_containers_are_measured(any_host):
    any_host.add("p1", "Burstable", 1500, 3 * GIB)
    any_host.step()
    any_host.step()
    samples, at = any_host.observer.samples, any_host.at
    assert samples.newest(("container", "p1", "app", "cpu"), at) == pytest.approx(1.5)
    assert samples.newest(("container", "p1", "app", "memory"), at) == 3 * GIB


def test_the_groups_of_best_effort_are_read_when_somebody_asks(any_host):
    any_host.add("be", "BestEffort", 500)
    assert any_host.step().best_effort is None
    any_host.know(thresholds=state.Thresholds(True))
    any_host.batch_file("cpuset.cpus").write_text("0-3\n")
    best_effort = any_host.step().best_effort
    assert best_effort is not None
    assert [group.depth for group in best_effort.groups] == [0, 1, 2]
    assert best_effort.quota_us == -1
    assert any_host.step().best_effort.cpus == frozenset(range(4))


def test_a_group_that_vanishes_costs_only_its_own_figures(any_host):
    any_host.add("p1", "Burstable", 1000)
    any_host.add("p2", "Burstable", 1000)
    any_host.step()
    any_host.observer.close()
    for path in group_of(any_host, "p1"):
        shutil.rmtree(path)
    picture = any_host.look()
    any_host.tree._pods.pop("p1")
    assert picture.problems == {}
    picture = any_host.step()
    assert picture.pods[0].usage.cpu is None
    assert picture.pods[1].usage.cpu == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "missing|no number"),
        (b"garbage\xff\xfe\n", "missing|no number"),
        (b"usage_usec -5\n", "no number"),
        (b"usage_usec " + b"9" * 400, "no number"),
        (b"1" * (files.LIMIT + 10), "larger than"),
    ],
    ids=["empty", "garbage", "negative", "absurd", "huge"],
)
def test_garbage_costs_only_its_own_figures(host, text, reason):
    host.add("p1", "Burstable", 1000)
    host.add("p2", "Burstable", 1000)
    host.step()
    name = "cpuacct.usage" if host.tree.version == 1 else "cpu.stat"
    folder = next(p for p in group_of(host, "p1") if (p / name).exists())
    host.tree.advance(1)
    host.at += 1
    (folder / name).write_bytes(text)
    picture = host.look()
    assert picture.usage.cpu is not None
    assert picture.pods[1].usage.cpu == pytest.approx(1.0)
    assert len(picture.problems) == 1
    (problem,) = picture.problems.values()
    assert any(part in problem for part in reason.split("|")), problem


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("meminfo", "MemTotal: 5 kB\n", "lacks MemAvailable"),
        ("meminfo", "MemTotal: x kB\n", "no number for MemTotal"),
        ("stat", "intr 5\n", "does not begin"),
        ("stat", "cpu  1 2\n", "does not begin"),
    ],
)
def test_an_unreadable_node_is_named(host, name, text, expected):
    (host.tree.proc / name).write_text(text)
    assert expected in host.look().problems["proc"]


def test_a_counter_that_goes_back_is_no_figure(host):
    host.tree.set_load(nodefs.SYSTEM, 1000, 0)
    host.step(10)
    host.step(10)
    (host.tree.proc / "stat").write_text("cpu  1 0 0 0 0 0 0 0 0 0\n")
    host.at += 5
    host.look()
    samples = host.observer.samples.get(("node", "cpu"))
    assert list(samples.window(0, host.at)) == pytest.approx([1.0])


def test_a_pod_with_an_impossible_uid_is_named(host, new_pod):
    host.know(pods=(new_pod("../../etc"),))
    for _ in range(2):
        assert "cannot be the uid" in host.step().problems["pod default/name-../../etc"]


def test_a_container_that_cannot_be_is_named_until_its_pod_says_otherwise(host):
    pod = host.add("p1", "Burstable", 1000)
    status = pod.status.container_statuses[0]

    def named(identity):
        told = msgspec.structs.replace(status, container_id=identity)
        changed = msgspec.structs.replace(pod.status, container_statuses=(told,))
        host.know(pods=(msgspec.structs.replace(pod, status=changed),))

    named("punched-cards://1")
    for _ in range(2):
        picture = host.step()
        assert "begins with none of" in picture.problems[f"container {pod.metadata.key}/app"]
        assert picture.pods[0].containers == ()
    named(status.container_id)
    picture = host.step()
    assert picture.problems == {}
    assert [one.name for one in picture.pods[0].containers] == ["app"]


def test_a_host_without_pods_says_so(tmp_path):
    for folder in ("proc", "sys", "cgroup"):
        (tmp_path / folder).mkdir()
    roots = observation.Roots(*(str(tmp_path / name) for name in ("proc", "sys", "cgroup")))
    observer = observation.Observer(roots, 1.0)
    picture = observer.observe(observation.Known(), observation.Moment(0, 0))
    assert {"cgroup", "proc", "machine"} == set(picture.problems)


def test_page_cache_counts_where_asked(host):
    host.add("p1", "Burstable", 100, GIB)
    host.step()
    host.step()
    samples = host.observer.samples
    plain = samples.newest(("node", "memory"), 0)
    cached = samples.newest(("node", "memory+cache"), 0)
    assert plain == GIB
    assert cached == GIB + (15 * GIB // 1024 // 10) * 1024


def test_open_files_follow_the_pods(host):
    host.add("p1", "Burstable", 100)
    host.step()
    host.step()
    with_pod = len(host.observer._kept)
    assert with_pod == 7
    host.know(pods=())
    host.step()
    assert len(host.observer._kept) == 3


def test_a_pipe_does_not_stop_the_reader(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(files.ReadingError):
        files.Kept().read(str(tmp_path / "pipe"))


def test_more_files_than_may_be_kept_are_still_read(tmp_path):
    kept = files.Kept(most=1)
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    assert [kept.read(str(tmp_path / name)) for name in ("a", "b", "b")] == [b"a", b"b", b"b"]
    assert len(kept) == 1
    kept.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"max 100000\n", -1),
        (b"-1\n", -1),
        (b"50000 100000\n", 50_000),
        (b"50000 50000\n", 100_000),
        (b"25000\n", 25_000),
    ],
)
def test_quotas_of_both_versions(text, expected):
    assert cgroup_files.quota(text, "g") == expected


@pytest.mark.parametrize("text", [b"", b"1 2 3", b"x", b"1 0", b"1 x"])
def test_bad_quotas(text):
    with pytest.raises(files.ReadingError):
        cgroup_files.quota(text, "g")


def test_a_pod_that_cannot_be_read_hides_no_other(host):
    """Amounts that are none: no API server stores them, a file of a static pod may hold them."""
    host.add("good", "Burstable", 1000)
    odd = host.add("odd", "Burstable", 1000)
    host.step()
    assert {pod.pod.metadata.uid for pod in host.step().pods} == {"good", "odd"}
    broken = core.Container("app", resources=core.ResourceRequirements(requests={"cpu": "many"}))
    spec = msgspec.structs.replace(odd.spec, containers=(broken,))
    host.know(pods=(host.known.pods[0], msgspec.structs.replace(odd, spec=spec)))
    picture = host.step()
    # It stands as it was read last.
    assert {pod.pod.metadata.uid for pod in picture.pods} == {"good", "odd"}
    assert picture.pods[1].pod == odd
    assert "many" in picture.problems["pod default/name-odd"]
    newcomer = msgspec.structs.replace(
        odd, spec=spec, metadata=msgspec.structs.replace(odd.metadata, uid="new")
    )
    host.know(pods=(*host.known.pods[:1], newcomer))
    assert [pod.pod.metadata.uid for pod in host.step().pods] == ["good"]
