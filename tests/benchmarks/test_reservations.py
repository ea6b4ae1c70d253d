"""What the benchmark of Reservations creates is what it says, and how it reads what comes of it."""

import json

import msgspec
import pytest

from api import names
from api.koordinator import scheduling
from api.kubernetes import core
from benchmarks.plane import feed, rig
from benchmarks.reservations import objects, report, waits
from domain.reservations import matching, model, owners
from extender.state import records
from extender.state.reservations import reservation_claims


def _pod(raw):
    """A pod as owners of Reservations are compared with it."""
    found = msgspec.convert(raw, core.Pod)
    return owners.Pod("bench", found.metadata.name, "", found.metadata.labels, ())


def _offered(body, node="worker-00003.pool-a"):
    """A Reservation as the extender reads it once it holds a node."""
    raw = {**body, **objects.available(node)}
    raw["metadata"] = {**raw["metadata"], "uid": "1"}
    claim = reservation_claims.claim(scheduling.read_reservation(raw), records.Projector(None))
    return claim, reservation_claims.offered(claim)


def test_half_of_the_waiting_pods_are_owners_of_reservations():
    found = list(objects.waiting(100_000, 1200))
    offered = [_offered(objects.reservation(number))[1] for number in range(objects.APPS)]
    served = [
        one
        for one in found
        if any(owner.matches(_pod(one)) for each in offered for owner in each.owners)
    ]
    assert len(served) == objects.owners(100_000, 1200) == 600
    assert not any(
        name.startswith("kubernetes.io/batch")
        for one in served
        for name in one["spec"]["containers"][0]["resources"]["requests"]
    )


def test_a_reservation_holds_its_node_for_many_pods():
    claim, offered = _offered(objects.reservation(7))
    assert claim.node == feed.node_name(3)
    assert not offered.allocate_once
    assert dict(offered.allocatable) == {"cpu": 4000, "memory": 8 << 30}


def test_an_owner_waits_for_the_reservation_of_its_name_alone():
    name, other = objects.own_name(0, 1), objects.own_name(0, 2)
    pod = objects.own_pod(name)
    mine, theirs = (_offered(objects.own_reservation(one))[1] for one in (name, other))
    wishes = matching.wishes(pod["metadata"]["labels"], pod["metadata"]["annotations"])
    requests = {"cpu": 1000, "memory": 1 << 30}
    assert matching.usable(wishes, requests, model.Held(mine), {}) is matching.Match.MATCHED
    assert matching.usable(wishes, requests, model.Held(theirs), {}) is matching.Match.OTHER_NAME
    assert any(owner.matches(_pod(pod)) for owner in mine.owners)
    assert not any(owner.matches(_pod(pod)) for owner in theirs.owners)
    assert mine.allocate_once
    assert "namespace" not in pod["metadata"]
    assert objects.own_reservation(name)["spec"]["template"]["metadata"] == {
        "namespace": rig.NAMESPACE
    }


def test_pods_that_run_have_their_nodes():
    found = list(objects.running(5, 2))
    assert [one["spec"]["nodeName"] for one in found] == [
        feed.node_name(number % 2) for number in range(5)
    ]


def test_pods_are_counted_by_what_is_written_on_them():
    refused = {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}
    bound = {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}
    assert objects.refused([refused, bound, refused, {}]) == 2
    used = {"metadata": {"annotations": {names.ANNOTATION_RESERVATION_ALLOCATED: "{}"}}}
    assert objects.users([used, {"metadata": {}}]) == 1


def _event(kind, name, phase):
    status = {"phase": phase} if phase else {}
    return json.dumps({"type": kind, "object": {"metadata": {"name": name}, "status": status}})


def _waits():
    found = waits.Waits()
    found.created |= {"a": 1.0, "b": 2.0}
    for now, line in (
        (1.5, _event("ADDED", "a", "")),
        (2.0, _event("MODIFIED", "a", "Available")),
        (2.6, _event("MODIFIED", "a", "Succeeded")),
        (2.7, _event("MODIFIED", "a", "Available")),
        (3.2, _event("MODIFIED", "b", "Available")),
    ):
        found.reservation(line.encode(), now)
    return found


def test_an_owner_has_waited_from_available_to_bound():
    found = _waits()
    found.pod("a", 1.9, bound=False)
    found.pod("a", 2.4, bound=True)
    found.pod("a", 2.9, bound=True)
    assert found.ready(["a"])
    assert not found.ready(["a", "b"])
    # The watch of pods was faster than that of Reservations.
    found.pod("b", 3.0, bound=True)
    assert list(found.found(["a", "b"])) == [(1.0, 2.0, 2.4), (2.0, 3.0, 3.0)]


def test_the_end_of_a_watch_is_no_reservation():
    line = json.dumps({"type": "ERROR", "object": {"message": "too old"}}).encode()
    with pytest.raises(waits.EndedError, match="too old"):
        waits.Waits().reservation(line, 1.0)


def test_rounds_are_compared_with_the_same_without(capsys):
    def drain(rate, used):
        return report.Drain(rig.Run(rate, {"extender": 100 / rate}, 90.0), used, 0.5)

    runs = {
        report.WITH: [drain(90.0, 10), drain(80.0, 10)],
        report.WITHOUT: [drain(100.0, 0), drain(100.0, 0)],
    }
    assert report.ratio(runs) == "0.80 of the rate without (80 and 100 pods/s)"
    report.show(runs, [waits.Wait(0.0, 1.0, 1.25), waits.Wait(1.0, 1.5, 2.25)], "few")
    printed = map(json.loads, capsys.readouterr().out.splitlines())
    lines = {line["figure"]: line for line in printed}
    assert lines["reservations.rate"]["ratio"] == 0.85
    assert lines["reservations.owner.p99"]["value"] == 0.75
    assert lines["reservations.placed.p99"]["value"] == 1.0
    assert runs[report.WITH][0].line().startswith("90 pods/s, 10 in a Reservation, extender 1.11")
