"""The accounts of the churn benchmark find every excess, and how long it took to take a place."""

import asyncio
import json

import pytest

from api import names
from benchmarks.plane import feed, pod_events, rig
from benchmarks.quota_churn import accounts, objects, report, teams
from process.runtime import supervise

PREFIX, LENGTH = b"worker-", len(feed.node_name(0))
UID = "00000000-0000-4000-8000-000000000001"


def _text(key, value):
    found = value if isinstance(value, bytes) else value.encode()
    size = len(found)
    length = bytes((size,)) if size < 128 else bytes((size & 127 | 128, size >> 7))
    return key + length + found


def _frame(kind, name, *, node="", gates=(), managed=b""):
    """A pod in a watch event, as protobuf writes the fields that are read."""
    metadata = b"".join(
        _text(bytes((number << 3 | 2,)), value)
        for number, value in ((1, name), (2, ""), (3, "bench"), (4, ""), (5, UID), (6, "4711"))
    )
    spec = _text(b"\x52", node)
    spec += b"".join(_text(b"\xb2\x02", _text(b"\x0a", gate)) for gate in gates)
    pod = _text(b"\x0a", metadata + managed) + _text(b"\x12", spec)
    return _text(b"\x0a", kind) + _text(b"\x12", b"k8s\0" + _text(b"\x12", pod))


@pytest.mark.parametrize(
    ("frame", "bound", "gated"),
    [
        pytest.param(_frame("ADDED", "t001-0000001"), False, False, id="waits"),
        pytest.param(
            _frame("ADDED", "t001-0000001", gates=(names.GATE_QUOTA,)), False, True, id="gated"
        ),
        pytest.param(
            _frame("ADDED", "t001-0000001", gates=("example.com/other",)),
            False, False, id="gate-of-others",
        ),
        pytest.param(
            _frame("ADDED", "t001-0000001", node=feed.node_name(17)), True, False, id="bound"
        ),
        pytest.param(
            _frame("ADDED", "t001-0000001", managed=b"worker-" + names.GATE_QUOTA.encode()),
            False, False, id="named-elsewhere",
        ),
    ],
)  # fmt: skip
def test_an_event_is_read_from_its_bytes(frame, bound, gated):
    expected = pod_events.PodEvent("ADDED", "t001-0000001", "4711", bound, gated)
    assert pod_events.read(frame, PREFIX, LENGTH) == expected


def test_the_end_of_a_watch_is_no_pod():
    frame = _text(b"\x0a", "ERROR") + _text(b"\x12", "too old resource version")
    with pytest.raises(pod_events.ReadError, match="too old resource version"):
        pod_events.read(frame, PREFIX, LENGTH)


def _event(kind, number, *, team=1, bound=False, gated=False):
    return pod_events.PodEvent(kind, accounts.pod_name(team, number), "7", bound, gated)


def _told(*events, limits=None, measures=True):
    """Accounts of one team that has two running pods, numbers 1 and 2, and of what came then."""
    found = accounts.Accounts()
    for number in (1, 2):
        found.take(_event("ADDED", number, bound=True), 0.0)
    found.limit(limits or {1: 2})
    found.begin(measures=measures)
    for now, event in events:
        found.take(event, now)
    return found


def test_a_place_is_taken_by_the_next_pod_of_the_team():
    found = _told(
        (1.0, _event("ADDED", 3, gated=True)),
        (1.1, _event("ADDED", 4, gated=True)),
        (1.2, _event("ADDED", 5, team=2)),
        (2.0, _event("DELETED", 1, bound=True)),
        (2.1, _event("MODIFIED", 5, team=2, bound=True)),
        (2.2, _event("MODIFIED", 3)),
        (2.3, _event("MODIFIED", 3)),
        (2.5, _event("MODIFIED", 3, bound=True)),
        (2.6, _event("MODIFIED", 3, bound=True)),
        (3.0, _event("DELETED", 2, bound=True)),
    )
    window = found.window
    assert window.freed_to_bound == pytest.approx([0.5])
    assert window.freed_to_opened == pytest.approx([0.2])
    assert window.opened_to_bound == pytest.approx([0.3])
    assert window.created_to_bound == pytest.approx([0.9, 1.5])
    assert (found.pending, found.bound, found.excesses) == (1, 2, [])


def test_places_are_taken_in_the_order_in_which_they_were_freed():
    found = _told(
        (1.0, _event("ADDED", 3)),
        (1.0, _event("ADDED", 4)),
        (2.0, _event("DELETED", 1, bound=True)),
        (3.0, _event("DELETED", 2, bound=True)),
        (4.0, _event("MODIFIED", 4, bound=True)),
        (5.5, _event("MODIFIED", 3, bound=True)),
    )
    assert found.window.freed_to_bound == pytest.approx([2.0, 2.5])
    assert found.pending == 0


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [
                (1.0, _event("MODIFIED", 3, bound=True)),
                (1.1, _event("DELETED", 1, bound=True)),
            ],
            [accounts.Excess(1, 3, 2, "7")],
            id="a-moment-too-early",
        ),
        pytest.param(
            [
                (1.0, _event("DELETED", 1, bound=True)),
                (1.1, _event("MODIFIED", 3, bound=True)),
            ],
            [],
            id="after-the-place-was-freed",
        ),
        pytest.param([(1.0, _event("ADDED", 3, team=2, bound=True))], [], id="team-without-quota"),
        pytest.param([(1.0, _event("DELETED", 9))], [], id="a-pod-that-was-never-seen"),
    ],
)
def test_every_moment_above_a_quota_is_found(events, expected):
    found = _told((0.5, _event("ADDED", 3, gated=True)), *events)
    assert found.excesses == expected


def test_a_limit_below_what_runs_is_an_excess_at_once():
    assert _told(limits={1: 1}).excesses == [accounts.Excess(1, 2, 1, "")]


def test_pods_that_go_in_a_burst_leave_no_place_to_be_taken():
    found = _told((1.0, _event("DELETED", 1, bound=True)), measures=False)
    assert (found.pending, found.bound) == (0, 1)


def test_a_rate_leaves_out_the_first_and_the_last_tenth():
    calm = [10 + at / 50 for at in range(80)]
    assert accounts.rate([*calm, *([0.0] * 10), *([99.0] * 10)]) == pytest.approx(50)
    with pytest.raises(ValueError, match="1 moments are too few"):
        accounts.rate([1.0])


def test_four_fifths_of_the_pods_run():
    found = objects.size(200, 20_000)
    assert found == objects.Size(200, 80, 20)
    assert found.pods == 20_000
    with pytest.raises(ValueError, match="each needs five"):
        objects.size(200, 900)


def _counted(maximum, used):
    listed = [objects.pod(1, number, node=number) for number in range(3)] + [objects.pod(1, 9)]
    body = objects.quota(1, 1, maximum)
    body["status"] = {"used": objects.amounts(used)}
    return objects.recount(listed, [body])


def test_pods_with_a_node_are_added_up_anew():
    assert _counted(3, 3) == objects.Recount((), ())


def test_an_exceeded_quota_and_a_stale_status_are_told():
    found = _counted(2, 4)
    assert found.excesses == (
        "team-001: pods use 1500m of cpu, max is 1000m",
        "team-001: pods use 1536Mi of memory, max is 1024Mi",
    )
    assert "its status says 2000m" in found.stale[0]


def test_a_pod_that_waits_has_the_size_that_it_is_said_to_have():
    for kilobytes in feed.KILOBYTES:
        body = objects.pod(7, 1, kilobytes=kilobytes)
        assert "nodeName" not in body["spec"]
        assert body["metadata"]["labels"][names.LABEL_QUOTA_NAME] == "team-007"
        assert accounts.team_of(body["metadata"]["name"]) == 7
        assert body["metadata"]["name"] == "t007-0000001"
        assert rig.waiting_pod(1, kilobytes)["metadata"]["annotations"]


def test_a_run_without_quotas_is_what_others_are_compared_with(capsys):
    def run(rate, freed):
        moments = [at / rate for at in range(100)]
        window = accounts.Window(
            created_to_bound=[0.01] * 100, freed_to_bound=freed, bound_at=moments
        )
        phase = report.Phase(window, 1.0, {"extender": 0.2}, {"extender": 100.0})
        return report.Run(phase, phase, 0)

    runs = {
        "none": [run(100, [])],
        "quotas": [run(80, [0.1] * 99 + [0.7])],
        "stock": [run(200, [])],
    }
    rates = (
        "0.80 of none (quotas 80.0 pods/s); 0.40 of stock (quotas 80.0 pods/s); "
        "0.50 of stock (none 100.0 pods/s)"
    )
    assert list(report.ratios({name: found[0] for name, found in runs.items()})) == [
        f"churn: {rates}; freed→bound 100/700 ms",
        f"burst: {rates}",
    ]
    report.show(runs, "few")
    report.table(runs)
    printed = capsys.readouterr().out
    lines = {line.split('"')[3]: line for line in printed.splitlines() if line[:1] == "{"}
    assert '"ratio": 0.8' in lines["F15.rate"]
    assert '"ratio": 0.4' in lines["F15.burst.stock"]
    assert '"value": 0.7' in lines["F15.p99"]
    assert '"value": 0.0' in lines["F15.excesses"]
    assert "quotas  extender 2.00" in printed


def test_writes_are_counted_for_each_pod_that_got_a_node():
    grown = {'koord_manager_writes_total{resource="pods"}': 150.0, "koord_idle": 0.0}
    assert report.counted(grown, 100) == (
        '  per bound pod: manager_writes_total{resource="pods"} 1.50'
    )
    assert report.counted({}, 100) == "  per bound pod: nothing counted"


class _Cluster:
    """Answers every write at once, and shows it to the watch when it is told to."""

    nodes = 4

    def __init__(self):
        self.field = teams.Teams(self, objects.size(2, 10), 7)
        self._unseen = []

    async def call(self, method, path, body=None, **_):
        name = path.rpartition("/")[2] if method == "DELETE" else body["metadata"]["name"]
        bound = method == "DELETE" or "nodeName" in body["spec"]
        kind = "DELETED" if method == "DELETE" else "ADDED"
        self._unseen.append(pod_events.PodEvent(kind, name, "7", bound, False))
        return b"{}"

    def show(self, count=1000):
        for event in self._unseen[:count]:
            self.field.accounts.take(event, 0.0)
        del self._unseen[:count]


async def _shown(cluster, work):
    """Let the watch show what was written, one write at a time."""

    async def shows():
        while True:
            cluster.show(1)
            await asyncio.sleep(0)

    async with supervise.Supervisor("watch") as tasks:
        tasks.start("show", shows)
        await work


async def test_teams_are_level_although_the_watch_is_behind():
    cluster = _Cluster()
    field, known = cluster.field, cluster.field.accounts
    await _shown(cluster, field.level())
    assert (known.bound, len(known.pods)) == (8, 8)
    # The last deletions of a churn were answered, and the watch has yet to show them.
    gone = [next(iter(known.running[team])) for team in range(2)]
    for name in gone:
        await field._delete(name)
    assert not field.is_current
    assert known.bound == 8
    await _shown(cluster, field.level())
    assert (known.bound, len(known.pods)) == (8, 8)
    assert not known.pods.keys() & set(gone)


class _Watched(_Cluster):
    """Its watch shows what was written after a version, as that of an API server does."""

    def __init__(self):
        super().__init__()
        self._written = []

    async def call(self, method, path, body=None, **_):
        if method == "GET":
            return json.dumps({"metadata": {"resourceVersion": str(len(self._written))}}).encode()
        name, node = body["metadata"]["name"], body["spec"].get("nodeName", "")
        self._written.append(_frame("ADDED", name, node=node))
        return b"{}"

    async def frames(self, version):
        at = int(version)
        while True:
            yield self._written[at:]
            at = len(self._written)
            await asyncio.sleep(0)


async def test_pods_that_are_made_while_the_watch_is_opened_are_seen():
    cluster = _Watched()
    field = cluster.field
    version = await field.beginning()
    await field._create(0, node=True)
    async with supervise.Supervisor("watch") as tasks:
        tasks.start("follow", lambda: field.follow(version))
        await field.level()
    assert field.accounts.bound == 8
