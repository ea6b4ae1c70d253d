"""Events on pods."""

import dataclasses

import pytest

from agent.apply import audit
from agent.apply.evictions import evictor
from agent.assembly import effects
from agent.loop import ticks
from agent.model import edits, state
from agent.report.events import cache_events
from process.runtime import clock as clocks
from process.runtime import metrics

R = edits.Role


@dataclasses.dataclass
class Recorder:
    """Keeps what it is told."""

    told: list = dataclasses.field(default_factory=list)

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding.kind, regarding.namespace, regarding.name, kind, reason, note))
        return True


@pytest.fixture
def recorded():
    return Recorder()


def record(outcome="written", value="present", group="koordlet-uid-a", role=R.RESCTRL_GROUP):
    return audit.Record(0.0, outcome, role, value, (group,), "r")


def test_groups_of_pods_are_told_when_they_are_made_and_when_they_go(placed, recorded):
    now = [state.NodeState(at=0, pods=(placed(),))]
    events = cache_events.PodEvents(recorded, lambda: now[0])
    events.take([record()])
    now[0] = state.NodeState(at=1)
    events.take([record("put back", "absent")])
    events.take([record("put back", "absent")])
    assert recorded.told == [
        ("Pod", "default", "a", "Normal", "Pod Level Resctrl", f"resctrl group koordlet-uid-a {w}")
        for w in ("was made", "was removed")
    ]


@pytest.mark.parametrize(
    "other",
    [
        record("would have written"),
        record("failed"),
        record(group="BE"),
        record(role=R.RESCTRL_L3),
        record(value="absent"),
        record(group="koordlet-uid-unknown"),
    ],
    ids=["observed", "failed", "a class", "a share", "another's orphan", "nobody's pod"],
)
def test_nothing_else_is_told(placed, recorded, other):
    now = state.NodeState(at=0, pods=(placed(),))
    cache_events.PodEvents(recorded, lambda: now).take([other])
    cache_events.PodEvents(recorded, lambda: None).take([other])
    assert recorded.told == []


def test_what_the_loop_did_reaches_the_events(host, placed, recorded, tmp_path, monkeypatch):
    monkeypatch.setattr(effects.recorder, "Recorder", lambda *_, **__: recorded)
    figures, clock = metrics.Registry(), clocks.ManualClock()
    loop = ticks.Ticks(
        host.observer, lambda: host.known, clock, ticks.Figures(figures), ticks.Habits(tmp_path)
    )
    place = effects.Place("node-1", tmp_path, evictor.Limits(1, 1.0))
    made = effects.Outward(None, clock, place, figures, loop)
    loop.picture = state.NodeState(at=0, pods=(placed(),))
    loop.audit.add([record(), record(role=R.CPU_QUOTA)])
    loop.audit.add([record("put back", "absent")])
    made.close()
    assert [note for *_, note in recorded.told] == [
        f"resctrl group koordlet-uid-a was {what}" for what in ("made", "removed")
    ]
