"""`koord simulate quota`: what a change would do, beside what would happen anyway."""

import json

import pytest
import yaml

from api import names
from cli import main
from cli.snapshot import format as formats
from cli.snapshot import reader
from tests.cli.commands.test_get import PLAIN, QUOTA, a_pod, a_quota, a_snapshot, file

__all__ = ["file"]

GATE = names.GATE_QUOTA


def waiting(name, namespace, cpu, **more):
    return a_pod(name, namespace, cpu, "", gates=[GATE], **more)


def owned(pod, uid, phase="", finished=""):
    pod["metadata"]["ownerReferences"] = [{"controller": True, "kind": "Job", "uid": uid}]
    pod["status"]["startTime"] = "2026-07-01T12:30:00Z"
    if phase:
        pod["status"]["phase"] = phase
        ended = {"terminated": {"finishedAt": finished}}
        pod["status"]["containerStatuses"] = [{"name": "c", "state": ended}]
    return pod


TEAMS = a_snapshot(
    [
        a_quota("batch", "batch", minimum="10", most="20"),
        a_quota("web.eu", "web", QUOTA, minimum="10", most="50"),
    ],
    [
        owned(a_pod("b1", "batch", "18"), "job"),
        owned(a_pod("b0", "batch", "1"), "job", "Succeeded", "2026-07-01T13:10:00Z"),
        waiting("b2", "batch", "10"),
        waiting("w1", "web", "4"),
        waiting("w2", "web", "30"),
    ],
)


def run(file, capsys, *words, snapshot=TEAMS):
    code = main.main(["simulate", "quota", file(snapshot), "-o", "json", *words])
    told = capsys.readouterr()
    return json.loads(told.out) if code == 0 else (code, told.err)


def starts(found):
    return {one["pod"]: one["at"].removeprefix("2026-07-01T") for one in found["starts"]}


def figures(found, name, when="after"):
    return next(one for one in found["quotas"] if one["name"] == name)[when]


def test_without_a_change_it_says_what_happens_anyway(file, capsys):
    found = run(file, capsys)
    # b1 ran 30 of the 40 minutes that the finished pod of its job took.
    assert starts(found) == {"web/w1": "13:00:00Z", "batch/b2": "13:10:00Z"}
    assert found["starts"] == found["startsWithout"]


def test_a_larger_quota_lets_a_pod_start_at_once(file, capsys):
    found = run(file, capsys, "--set", "batch.max.cpu=30", "--set", "batch.priority=3")
    assert starts(found)["batch/b2"] == "13:00:00Z"
    assert found["changes"] == ["batch: max of cpu 20 → 30", "batch: priority 0 → 3"]
    assert figures(found, "batch", "before")["cap"]["cpu"] == "20"
    assert figures(found, "batch")["cap"]["cpu"] == "30"
    assert figures(found, "batch")["used"]["cpu"] == "28"


@pytest.mark.parametrize(
    ("words", "at"),
    [
        pytest.param(["--duration", "batch=1h"], "13:30:00Z", id="declared"),
        pytest.param(["--duration", "batch=24h", "--ahead", "1h"], None, id="beyond the horizon"),
    ],
)
def test_durations_may_be_declared(file, capsys, words, at):
    found = run(file, capsys, *words)
    assert starts(found).get("batch/b2") == at


def test_who_keeps_waiting_is_told_what_it_needs(file, capsys):
    found = run(file, capsys, "--set", "web.eu.max.cpu=20", "--duration", "batch=48h")
    assert {one["pod"]: (one["needs"], one["of"]) for one in found["waits"]} == {
        "batch/b2": ({"cpu": "8"}, "batch"), "web/w2": ({"cpu": "14"}, "web.eu"),
    }  # fmt: skip
    assert main.main(
        ["simulate", "quota", file(TEAMS), "--set", "web.eu.max.cpu=20", "--duration=batch=48h"]
    ) == 0  # fmt: skip
    text = capsys.readouterr().out
    assert "try: web.eu: max of cpu 50 → 20" in text
    assert "batch/b2 of batch, 1 of 1 in line: until 8 cores of quota batch become free" in text
    assert "web/w1 of web.eu at once" in text


def test_the_cluster_may_grow_and_shrink(file, capsys):
    found = run(file, capsys, "--set", "total.cpu=80")
    assert starts(found)["web/w2"] == "13:00:00Z"
    found = run(file, capsys, "--set", "total.cpu=20", "--duration=batch=48h")
    assert "web/w2" not in starts(found)


def test_changed_objects_come_from_a_file(file, capsys, tmp_path):
    path = tmp_path / "changed.yaml"
    changed = a_quota("batch", "batch", minimum="10", most="30", created=1)
    added = a_quota("new", "new", PLAIN)
    path.write_text(yaml.safe_dump_all([{"kind": "List", "items": [changed]}, added]))
    found = run(file, capsys, "-f", str(path), "--delete", "web.eu")
    assert found["changes"] == [
        "ElasticQuota batch/batch is changed", "ElasticQuota new/new is created",
        "ElasticQuota web/web.eu is deleted",
    ]  # fmt: skip
    assert figures(found, "batch")["cap"]["cpu"] == "30"
    assert figures(found, "new", "before") is None
    assert figures(found, "web.eu") is None


BAD = {
    "no value": (["--set", "batch.min.cpu"], "changes nothing: write it as team-a.min.cpu=50"),
    "no field": (["--set", "batch.cpu=1"], "is not understood"),
    "no resource": (["--set", "batch.min.=1"], "names no resource"),
    "no such quota": (["--set", "bach.min.cpu=1"], "there is no ElasticQuota 'bach'"),
    "no quantity": (["--set", "batch.min.cpu=many"], "many"),
    "negative": (["--set", "batch.min.cpu=-1"], "an amount is 0 or more"),
    "no priority": (["--set", "batch.priority=high"], "a priority is a whole number"),
    "deleted unknown": (["--delete", "x"], "there is no ElasticQuota 'x'"),
    "no time": (["--duration", "batch=soon"], "is no duration"),
    "time of nobody": (["--duration", "x=1h"], "there is no ElasticQuota x"),
    "backwards": (["--ahead=-1h"], "is no time to come"),
    "no file": (["-f", "/none"], "/none cannot be read"),
}


@pytest.mark.parametrize(("words", "why"), BAD.values(), ids=BAD)
def test_what_cannot_be_tried_is_refused_with_the_remedy(file, capsys, words, why):
    code, error = run(file, capsys, *words)
    assert code == 2
    assert error.startswith("koord simulate: ")
    assert why in error


@pytest.mark.parametrize("text", ["kind: Pod\nmetadata: {name: x}", "[1]", "a: [", "", "7"])
def test_a_file_of_something_else_is_refused(file, capsys, tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    code, error = run(file, capsys, "-f", str(path))
    assert code == 2
    assert error.startswith("koord simulate: ")


def test_the_state_that_was_read_can_be_kept(file, capsys, tmp_path):
    kept = tmp_path / "kept"
    run(file, capsys, "--save", str(kept))
    assert formats.encode(reader.load(kept)) == formats.encode(TEAMS)


def test_terminating_pods_end_after_their_grace_and_finished_ones_hold_nothing(file, capsys):
    leaving = a_pod("l", "batch", "18")
    leaving["metadata"]["deletionTimestamp"] = "2026-07-01T12:59:59Z"
    leaving["spec"]["terminationGracePeriodSeconds"] = 60
    snapshot = a_snapshot([a_quota("batch", "batch", most="20")],
                          [leaving, waiting("b", "batch", "9")])  # fmt: skip
    assert starts(run(file, capsys, snapshot=snapshot)) == {"batch/b": "13:01:00Z"}


def test_a_pod_of_higher_priority_preempts_in_its_own_quota_and_the_lost_work_is_told(file, capsys):
    pods = [
        owned(a_pod("low", "batch", "10", priority=1), "job"),
        owned(a_pod("mid", "batch", "10", priority=5), "job"),
        owned(a_pod("other", "web", "5", priority=0), "job"),
        waiting("high", "batch", "8", priority=9),
    ]
    quotas = [
        a_quota("batch", "batch", most="20"), a_quota("web.eu", "web", QUOTA),
    ]  # fmt: skip
    snapshot = a_snapshot(quotas, pods)
    found = run(file, capsys, snapshot=snapshot)
    assert [(one["pod"], one["by"], one["for"]) for one in found["evictions"]] == [
        ("batch/low", "preemption", "batch/high")
    ]
    assert found["evictions"][0]["lostHours"]["cpu"] == 5.0
    assert starts(found) == {"batch/high": "13:00:00Z"}
    larger = run(file, capsys, "--set", "batch.max.cpu=30", snapshot=snapshot)
    assert (larger["evictions"], starts(larger)) == ([], {"batch/high": "13:00:00Z"})
    assert main.main(["simulate", "quota", file(snapshot)]) == 0
    text = capsys.readouterr().out
    assert "batch/low of batch at once, by preemption for pod batch/high; lost: 5.0 core-" in text


@pytest.mark.parametrize(
    ("priority", "evicted"),
    [
        pytest.param(9, ["batch/low"], id="of higher priority"),
        pytest.param(1, [], id="of lower priority"),
    ],
)
def test_quota_is_kept_for_a_nominated_pod(file, capsys, priority, evicted):
    expected = a_pod("expected", "batch", "20", "", priority=priority)
    expected["status"]["nominatedNodeName"] = "n1"
    pods = [
        expected,
        a_pod("mid", "batch", "4", "", priority=5),
        a_pod("low", "batch", "10"),
        a_pod("other", "web", "25", priority=20),
    ]
    quotas = [
        a_quota("batch", "batch", minimum="20", most="31"), a_quota("web.eu", "web", QUOTA),
    ]  # fmt: skip
    found = run(file, capsys, snapshot=a_snapshot(quotas, pods, ("40", "15")))
    assert [one["pod"] for one in found["evictions"]] == evicted
    assert starts(found) == {"batch/mid": "13:00:00Z"}


def test_a_quota_without_a_limit_is_called_so_in_the_table(file, capsys):
    snapshot = a_snapshot([a_quota("batch", "batch", most=str(2**61))], [a_pod("p", "batch", "1")])
    assert main.main(["simulate", "quota", file(snapshot), "--set=batch.min.cpu=2"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("batch"))
    assert row.split()[-2:] == ["unlimited", "0"]


@pytest.mark.parametrize("kind", ["pods", "nodes"])
def test_without_pods_or_nodes_nothing_is_simulated(kind, file, capsys):
    saved = file(a_snapshot([a_quota("batch", "batch")], unread=[(kind, "403: no")]))
    assert main.main(["simulate", "quota", saved]) == 1
    assert capsys.readouterr().err == f"koord simulate: {kind} could not be read: 403: no\n"
