"""Pods that come and go fifty times a second: nothing of them stays but what is bounded.

With KOORD_SOAK set it takes ten minutes of theirs; else it is a taste of it.
"""

import os
from pathlib import Path

import pytest

from agent.apply import audit_log
from agent.decide import planner
from agent.loop import ticks
from agent.model import state, strategy_settings
from agent.store import time_series
from process.runtime import clock as clocks
from process.runtime import metrics

GIB = 1 << 30
LONG = bool(os.environ.get("KOORD_SOAK"))
PER_SECOND, SECONDS = (50, 600) if LONG else (4, 8)
KEPT = 10.0
"""For how long the figures of a pod are kept here, as short as the test."""


def opened():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Churn:
    """A loop on a host whose pods live for a second."""

    def __init__(self, host, folder):
        self.host, self.clock = host, clocks.ManualClock()
        host.observer.pod_keep_seconds = KEPT
        modes = {ticks.SUPPRESS: planner.Mode.ENFORCE}
        self.loop = ticks.Ticks(
            host.observer,
            lambda: host.known,
            self.clock,
            ticks.Figures(metrics.Registry()),
            ticks.Habits(
                folder,
                writing=True,
                gates=frozenset({"BECPUSuppress", "GroupIdentity", "BatchResource", "CPUBurst"}),
                modes=modes,
                default=planner.Mode.ENFORCE,
            ),
        )
        self.log = audit_log.AuditLog(folder / "audit", most_bytes=64 * 1024, most_files=4)
        self.loop.audit.sink = lambda records: self.log.append(r.as_event() for r in records)
        self.folder, self._count, self._alive = folder, 0, []
        self._write_counters = host.tree._write_counters
        self.most = dict.fromkeys(("descriptors", "series", "journal", "disk"), 0)

    def _change(self):
        for uid in self._alive:
            self.host.tree.remove_pod(uid)
        self._alive = []
        self.host.know(pods=self.stay)
        for number in range(PER_SECOND):
            kind = ("BestEffort", "Burstable")[number % 2]
            uid = f"pod-{self._count}"
            self._count += 1
            self._alive.append(uid)
            self.host.add(uid, kind, 100)

    def tick(self):
        tree = self.host.tree
        # The figures of all groups are written once, not at every pod.
        tree._write_counters = lambda: None
        self._change()
        tree._write_counters = self._write_counters
        tree.advance(1)
        self.clock._move(self.clock.monotonic() + 1)
        self.loop.tick()
        sizes = {
            "descriptors": opened(),
            "series": len(self.host.observer.samples),
            "journal": self.loop.enforcer.entries,
            "disk": sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file()),
        }
        self.most = {name: max(size, self.most[name]) for name, size in sizes.items()}
        return sizes


@pytest.fixture
def churn(host, tmp_path):
    if host.tree.version == 2 and not LONG:
        pytest.skip("version 1 is enough where time is short")
    stay = (host.add("online", "Burstable", 3000), host.add("batch", "BestEffort", 4000))
    wanted = state.Thresholds(True, 65, None, "cpuset")
    host.know(thresholds=wanted, enforced=strategy_settings.Strategies())
    churn = Churn(host, tmp_path / "state")
    churn.stay = stay
    return churn


def test_nothing_grows_with_pods_that_went(churn):
    before = opened()
    first = {}
    for second in range(SECONDS):
        sizes = churn.tick()
        if second == SECONDS // 2:
            first = dict(churn.most)
    assert churn.loop.problem is None
    assert {pod.pod.metadata.uid for pod in churn.loop.picture.pods} >= {"online", "batch"}
    # What is open are the files of groups that are there, three or four of each.
    assert churn.most["descriptors"] - before <= 12 * (PER_SECOND * 2 + 20)
    assert churn.most["descriptors"] <= first["descriptors"] + 8
    assert churn.most["journal"] <= 4 * (PER_SECOND * 2 + 20)
    assert churn.most["series"] <= time_series.MOST_SERIES
    assert churn.most["disk"] <= 1 << 20
    assert sizes["journal"] <= first["journal"] + 8
    churn.loop.stop()
    assert opened() <= before + 4
