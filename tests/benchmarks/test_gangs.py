"""The benchmark of gangs creates what it says, and reads the moments of gangs from a watch."""

import json

import pytest

from api import names
from benchmarks.gangs import moments, objects, programs, report
from benchmarks.plane import feed, mutual_tls, rig
from cli.install import in_place_files
from domain.gangs import declaration
from process.runtime import clock as clocks
from process.runtime import supervise

UID = "00000000-0000-4000-8000-000000000001"
NODE = feed.node_name(7)
PREFIX = b"k8s\0"


def _text(key, value):
    found = value if isinstance(value, bytes) else value.encode()
    return key + bytes((len(found),)) + found


def _frame(kind, name, *, node="", gates=(), reason=""):
    """One pod of a watch event, with the fields that are read."""
    metadata = b"".join(
        _text(bytes((number << 3 | 2,)), value)
        for number, value in ((1, name), (2, ""), (3, "bench"), (4, ""), (5, UID), (6, "4711"))
    )
    spec = _text(b"\x52", node) if node else b""
    spec += b"".join(_text(b"\xb2\x02", _text(b"\x0a", gate)) for gate in gates)
    status = _text(b"\x22", reason) if reason else b""
    pod = _text(b"\x0a", metadata) + spec + status
    return _text(b"\x0a", kind) + b"\x12" + PREFIX + pod


GATED = {"gates": (names.GATE_GANG,)}


def _shown(*events):
    found = moments.Moments()
    for now, kind, name, more in events:
        found.frame(_frame(kind, name, **more), now)
    return found


def test_the_moments_of_a_member_are_read_from_its_events():
    found = _shown(
        (1.0, "ADDED", "g-000", GATED),
        (1.5, "ADDED", "g-001", GATED),
        (2.0, "MODIFIED", "g-000", {}),
        (2.5, "MODIFIED", "g-000", {"node": NODE}),
        (3.0, "MODIFIED", "g-001", {"node": NODE}),
        (9.0, "MODIFIED", "g-000", {"node": NODE}),
        (9.5, "DELETED", "g-001", {"node": NODE}),
    )
    assert found.created == {"g-000": 1.0, "g-001": 1.5}
    assert found.opened == {"g-000": 2.0, "g-001": 3.0}
    assert found.bound == {"g-000": 2.5, "g-001": 3.0}
    assert (found.gated, found.refused) == ({"g-000", "g-001"}, {})
    assert list(found.delays(found.created, found.bound)) == pytest.approx([1.0, 1.5])


def test_a_member_was_created_when_the_answer_or_the_watch_says_so_first():
    found = _shown((1.0, "ADDED", "g-000", GATED))
    found.answered("g-000", 1.2)
    found.answered("g-001", 1.3)
    found.frame(_frame("ADDED", "g-001"), 1.4)
    assert found.created == {"g-000": 1.0, "g-001": 1.3}


def test_only_the_reason_of_a_refusal_counts_as_one():
    found = _shown(
        (1.0, "ADDED", "g-000", GATED),
        (2.0, "MODIFIED", "g-000", GATED | {"reason": "WaitingForMembers"}),
        (3.0, "MODIFIED", "g-000", GATED | {"reason": "InsufficientRoom"}),
        (4.0, "MODIFIED", "g-000", GATED | {"reason": "InsufficientRoom"}),
    )
    assert found.refused == {"g-000": 3.0}
    assert (found.opened, found.bound) == ({}, {})


def test_a_pod_without_a_gang_is_never_seen_to_wait_for_one():
    found = _shown((1.0, "ADDED", "p", {}), (2.0, "MODIFIED", "p", {"node": NODE}))
    assert (found.gated, found.opened) == (set(), {})


def _gang(pod):
    meta = pod["metadata"]
    return declaration.of_pod("bench", meta["labels"], meta["annotations"], declaration.Defaults())


@pytest.mark.parametrize(
    ("pods", "members"),
    [
        pytest.param(objects.large("large-001", 12), 12, id="one per node"),
        pytest.param(objects.impossible("never-001"), 10, id="without room"),
    ],
)
def test_members_declare_one_gang_that_needs_them_all(pods, members):
    (gang,) = {_gang(pod) for pod in pods}
    assert gang.min_member == members == len({pod["metadata"]["name"] for pod in pods})


def test_no_two_members_share_a_node_and_the_rack_lacks_one():
    nodes = objects.nodes(20)
    (requests,) = {
        json.dumps(pod["spec"]["containers"][0]["resources"]["requests"])
        for pod in (*objects.large("l", 3), *objects.impossible("i"))
    }
    assert 2 * int(json.loads(requests)["cpu"]) > int(nodes.offers(0)["cpu"])
    (selected,) = {
        json.dumps(pod["spec"]["nodeSelector"], sort_keys=True) for pod in objects.impossible("i")
    }
    fitting = [n for n in range(20) if json.loads(selected).items() <= nodes.labels(n).items()]
    assert len(fitting) == objects.IMPOSSIBLE - 1


def test_the_same_pods_come_with_and_without_gangs():
    gangs = list(objects.small("x", 3, is_gang=True))
    plain = list(objects.small("x", 3, is_gang=False))
    assert len(gangs) == len(plain) == 3 * objects.SMALL
    assert len({_gang(pod) for pod in gangs}) == 3
    assert all(_gang(pod) is None for pod in plain)
    for pod in gangs:
        for name in (names.ANNOTATION_GANG_NAME, names.ANNOTATION_GANG_MIN_AVAILABLE):
            del pod["metadata"]["annotations"][name]
    assert gangs == plain


def test_both_sides_of_mutual_tls_are_told_where_their_files_are(tmp_path):
    made = mutual_tls.made(tmp_path / "tls")
    assert made == mutual_tls.there(tmp_path / "tls")
    flags = dict(flag.split("=", 1) for flag in made.flags)
    assert json.loads(flags.pop("--server.tls.clientNames")) == [in_place_files.SCHEDULER_NAME]
    client = made.client
    assert {*flags.values(), client.ca_file, client.cert_file, client.key_file} == {
        str(file) for file in (tmp_path / "tls").iterdir()
    }


def test_published_figures_stand_beside_ours(capsys):
    found = report.Found.nothing()
    cpu = {"extender": 1.0}
    for transport in programs.TRANSPORTS:
        found.whole[transport].append(report.Whole(0.1, 0.5, 1.0, 3.0, cpu))
        found.refused[transport].append(0.5)
    found.drains[report.GANGS].append(report.Drain(80.0, 70.0, cpu))
    found.drains[report.PLAIN].append(report.Drain(100.0, 90.0, cpu))
    rows = "\n".join(report.table(found, 512, "1000 gangs of 8"))
    for text in ("48.7 s (512)", "249.5 s", "3.00 [3.00-3.00] s", "0.80 [0.80-0.80]", "mutual"):
        assert text in rows
    report.show(found, 512, "512 nodes")
    shown = {one["figure"]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    assert shown["gangs.rate"]["ratio"] == pytest.approx(0.8)
    assert shown["gangs.bound.mtls"]["value"] == pytest.approx(3.0)
    assert shown["gangs.refused.http"]["against"] == "goal at most 2; published 249.5"
    assert shown["gangs.rate.cpu.extender"]["ratio"] == pytest.approx(1.0)


class Reports(rig.Rig):
    """Writes nothing, and keeps when which node reported."""

    def __init__(self, clock, nodes):
        super().__init__(None, None, None, rig.even(nodes), None)
        self._clock, self.seen = clock, []

    async def call(self, method, path, body=None, **options):
        del body, options
        assert (method, path.endswith("/status")) == ("PATCH", True)
        self.seen.append((self._clock.monotonic(), path.split("/")[-2]))
        return b""


async def test_reports_are_renewed_one_after_the_other_while_many_gangs_are_bound():
    clock = clocks.ManualClock()
    reports = Reports(clock, 4)
    async with supervise.Supervisor("reports") as beside:
        beside.start("reports", lambda: reports.renew_reports(clock, 60.0))
        for _ in range(130):
            await clock.advance(1.0)
    names_of = [feed.node_name(number) for number in range(4)]
    assert [name for _, name in reports.seen] == names_of * 2
    assert [at for at, _ in reports.seen] == pytest.approx([15.0 * turn for turn in range(1, 9)])
