"""`koord simulate quota` with Reservations: owners start in them, others beside them."""

import json

import pytest

from api import names, resources
from api.wire import durations
from cli import main
from cli.quota import cluster, preemptor
from cli.snapshot import format as formats
from cli.snapshot import projection
from tests import builders
from tests.cli.reservations import test_reservations as objects

OWN = {"team": "x"}
LONG = 48 * 3600.0


def play(reservations, pods, cpu="10", horizon=LONG, declared=None):
    nodes = [builders.a_node("n1", cpu=cpu)]
    whole = objects.snapshot(reservations, pods, nodes)
    found = cluster.build(whole)
    outcome = preemptor.play(found, horizon, declared or {})
    began = {start.uid.removeprefix("uid-"): start for start in outcome.starts}
    return began, {wait.uid.removeprefix("uid-"): wait.sentence for wait in outcome.waits}, found


def a_pod(name, cpu, labels=None, **more):
    return builders.a_pod(name, cpu=cpu, memory="1Mi", labels=labels, **more)


def started(*args, **more):
    began, waits, _ = play(*args, **more)
    return sorted(name for name in map(name_of, began)), waits


def name_of(uid):
    return uid.removeprefix("default-")


@pytest.mark.parametrize(
    ("spec", "pods", "starts"),
    [
        pytest.param({}, [a_pod("alien", "5")], [], id="others do not get what is kept"),
        pytest.param({}, [a_pod("alien", "4")], ["alien"], id="others get what is free"),
        pytest.param({}, [a_pod("own", "9", OWN)], ["own"], id="aligned: both"),
        pytest.param({"allocatePolicy": "Restricted"}, [a_pod("own", "9", OWN)], [],
                     id="restricted: from it alone, and free is too little"),
        pytest.param({"allocatePolicy": "Restricted"}, [a_pod("own", "6", OWN)], ["own"],
                     id="restricted: it fits"),
        pytest.param({}, [a_pod("own", "3", OWN), a_pod("own-2", "3", OWN), a_pod("alien", "4")],
                     ["alien", "own", "own-2"], id="shared by owners"),
        pytest.param({"allocateOnce": True}, [a_pod("own", "2", OWN), a_pod("alien", "8")],
                     ["alien", "own"], id="used up: the surplus is free"),
        pytest.param({}, [a_pod("own", "2", OWN), a_pod("alien", "8")], ["own"],
                     id="shared: the surplus stays kept"),
        pytest.param({}, [a_pod("bound", "4", annotations={
            names.ANNOTATION_RESERVATION_AFFINITY: '{"name":"r"}'})], [],
            id="affinity of no owner"),
        pytest.param({}, [a_pod("own", "7", OWN, annotations={
            names.ANNOTATION_RESERVATION_AFFINITY: '{"name":"r"}'})], ["own"],
            id="affinity of an owner"),
    ],
)  # fmt: skip
def test_who_starts(spec, pods, starts):
    reservation = objects.a_reservation(ttl="0s", **spec)
    found, waits = started([reservation], pods)
    assert found == starts
    assert len(found) + len(waits) == len(pods)


def test_owners_that_are_there_are_counted_once():
    owner = objects.an_owner("a", cpu="4")
    found, _ = started([objects.a_reservation(ttl="0s")], [owner, a_pod("alien", "4")])
    assert found == ["alien"]


def test_what_expires_becomes_free_at_that_moment():
    reservation = objects.a_reservation(ttl="90m")
    began, _, found = play([reservation], [a_pod("alien", "9")])
    (start,) = began.values()
    assert start.at == found.now + 1800


def test_why_a_pod_waits_names_reservations():
    _, waits = started([objects.a_reservation(ttl="0s")], [a_pod("alien", "5")])
    assert list(waits.values()) == ["the room that it needs is kept by Reservations"]
    bound = a_pod("bound", "4", annotations={names.ANNOTATION_RESERVATION_AFFINITY: '{"name":"q"}'})
    _, waits = started([objects.a_reservation(ttl="0s")], [bound])
    assert list(waits.values()) == ["no Reservation that it may use has room for it"]


def test_one_that_has_no_node_keeps_nothing():
    assert started([objects.pending()], [a_pod("alien", "9")])[0] == ["alien"]


def test_the_command_reads_reservations_from_a_snapshot(tmp_path, capsys):
    quota = {
        "apiVersion": resources.ELASTIC_QUOTAS.api_version, "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": "default", "uid": "q"},
        "spec": {"min": {"cpu": "10"}, "max": {"cpu": "10"}},
    }  # fmt: skip
    whole = objects.snapshot([objects.a_reservation(ttl="0s")], [a_pod("alien", "5")],
                             [builders.a_node("n1", cpu="10")])  # fmt: skip
    kind = resources.ELASTIC_QUOTAS
    held = {**whole.objects, kind.review_name(): (projection.kept(kind, quota),)}
    file = tmp_path / "s.snapshot"
    file.write_bytes(formats.encode(formats.Snapshot(whole.taken_at, held)))
    words = ["simulate", "quota", "--snapshot", str(file), "--set", "q.min.cpu=5", "-o", "json"]
    assert main.main(words) == 0
    assert json.loads(capsys.readouterr().out)["starts"] == []


def over(*running, cpu="6", **spec):
    """A Reservation that was placed over pods that run."""
    owners = [
        {"namespace": "default", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for pod in running
    ]
    status = {"currentOwners": owners, "allocated": {"cpu": "4"}}
    return objects.a_reservation(
        phase="Waiting", cpu=cpu, preAllocation=True, ttl="0s", status=status, **spec
    )


def test_one_that_waits_keeps_the_rest_and_takes_owners_when_the_pods_have_left():
    old = a_pod("old", "4", OWN, node="n1", phase="Running")
    pods = [old, a_pod("own", "6", OWN), a_pod("small", "4"), a_pod("alien", "5")]
    found, waits = started([over(old)], pods)
    # Four are free beside what runs and what is kept.
    assert found == ["small"]
    assert set(waits) == {"default-own", "default-alien"}
    since, ends = durations.timestamp(objects.NOW), {"activeDeadlineSeconds": 1800}
    old = a_pod("old", "4", OWN, node="n1", phase="Running", created=since, spec=ends)
    began, waits, taken = play([over(old)], [old, *pods[1:]])
    assert set(map(name_of, began)) == {"own", "small"}
    assert began["default-own"].at == taken.now + 1800
    assert set(waits) == {"default-alien"}
