"""A disk that takes nothing any more: nothing is written to the host that is not in the journal."""

import errno
import io
import os
from pathlib import Path

import pytest

from agent.apply import audit_log, journal
from agent.apply.properties import property_files
from agent.decide import planner
from agent.host import files
from agent.loop import ticks
from agent.model import state
from agent.store import learner, peaks
from process.runtime import clock as clocks
from process.runtime import metrics
from simulator.kubelet import nodefs

LONG = bool(os.environ.get("KOORD_SOAK"))
MOST = 26
"""By then everything has been written once."""


class Disk:
    """Refuses writes below a folder from the n-th on, after having taken a half of that one."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.steps, self.full = str(folder), 0, None
        self._write, self._open, self._sync = os.write, io.open, os.fsync
        monkeypatch.setattr(os, "write", self._writes)
        monkeypatch.setattr(io, "open", self._opens)
        monkeypatch.setattr(os, "fsync", self._syncs(os.fsync))
        monkeypatch.setattr(os, "fdatasync", self._syncs(os.fdatasync))

    def refuses(self):
        self.steps += 1
        return self.full is not None and self.steps >= self.full

    def _ours(self, descriptor):
        return Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(self.folder)

    def _writes(self, descriptor, data):
        if not self._ours(descriptor) or not self.refuses():
            return self._write(descriptor, data)
        if self.steps > self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._write(descriptor, data[: len(data) // 2])

    def _syncs(self, real):
        def sync(descriptor):
            if self._ours(descriptor) and self.refuses():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        return sync

    def _opens(self, file, mode="r", *rest, **more):
        if "w" not in mode or not str(file).startswith(self.folder):
            return self._open(file, mode, *rest, **more)
        return io.BufferedWriter(_Raw(self, file, "wb"))


class _Raw(io.FileIO):
    def __init__(self, disk, *arguments):
        super().__init__(*arguments)
        self._disk = disk

    def write(self, data):
        if self._disk.refuses():
            super().write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


class Agent:
    """A loop that enforces, remembers and writes an audit, all below one folder."""

    def __init__(self, host, folder):
        self.host, self.folder, self.clock = host, folder, clocks.ManualClock()
        self.figures = metrics.Registry()
        self.loop = ticks.Ticks(
            host.observer,
            lambda: host.known,
            self.clock,
            ticks.Figures(self.figures),
            ticks.Habits(folder, writing=True, modes={ticks.SUPPRESS: planner.Mode.ENFORCE}),
        )
        self.log = audit_log.AuditLog(folder / "audit")
        self.loop.audit.sink = lambda records: self.log.append(r.as_event() for r in records)
        self.recall = learner.Recall(
            folder, "boot", host.observer.samples, peaks.Rules(), self.clock, learner.Habits()
        )
        self.problems = set()

    @property
    def written(self):
        """How often the cpus of a group were written."""
        labels = {"role": "cpuset", "outcome": "written"}
        return self.figures.value("koord_agent_edits_total", labels) or 0

    def second(self, number):
        # Every second the wish is another one, so that every tick has something to write.
        self.host.know(thresholds=state.Thresholds(True, 40 + 5 * (number % 6), None, "cpuset"))
        self.host.tree.advance(1)
        self.clock._move(self.clock.monotonic() + 1)
        self.loop.tick()
        self.problems |= {self.loop.problem, self.log.problem, self.recall.problem}

    async def keep(self):
        await self.recall.learn(self.loop.picture)
        await self.recall.keep()
        self.problems.add(self.recall.problem)


@pytest.fixture
def unsafe(monkeypatch):
    """What was written to the host although the journal on disk does not say so."""
    found = []
    real = property_files.Knobs.write

    def write(self, role, group, text):
        kept = journal.Journal(self.folder, nodefs.BOOT_ID)
        kept.load()
        entry = kept.get(role, group)
        if entry is None or not self.any_of(role, text, (*entry.ours, entry.previous)):
            found.append((role, group, text))
        real(self, role, group, text)

    monkeypatch.setattr(property_files.Knobs, "write", write)
    return found


def cpus(host):
    return host.batch_file("cpuset.cpus").read_text().strip()


async def test_a_full_disk_at_any_write(host, tmp_path, monkeypatch, unsafe):
    if host.tree.version == 1 and not LONG:
        pytest.skip("one version is enough where time is short")
    host.add("online", "Burstable", 2000)
    host.add("batch", "BestEffort", 6000)
    before = cpus(host)
    for step in range(1, MOST) if LONG else (1, 2, 4, 6, 9, 14):
        folder = tmp_path / f"state-{step}"
        monkeypatch.setattr(property_files.Knobs, "folder", folder, raising=False)
        with monkeypatch.context() as patched:
            await lived(Agent(host, folder), Disk(folder, patched), step)
        # What an agent with a full disk set stands, and the next one knows all of it.
        assert cpus(host) != before
        follower = Agent(host, folder)
        follower.loop.put_back("uninstall")
        follower.loop.stop()
        assert cpus(host) == before
        assert unsafe == []


async def lived(agent, disk, step):
    """A life with a full disk from one write on, until there is space again."""
    disk.full = step
    for second in range(4):
        agent.second(second)
        if second == 1:
            await agent.keep()
    assert disk.steps >= step
    disk.full = None
    named = " ".join(filter(None, agent.problems))
    assert "No space left" in named or "only a part" in named
    assert str(agent.folder) in named
    held = agent.written
    for second in range(4, 8):
        agent.second(second)
    # It goes on by itself.
    assert agent.written > held
    agent.clock._move(agent.clock.monotonic() + 700)
    await agent.keep()
    assert (agent.loop.problem, agent.log.problem, agent.recall.problem) == (None, None, None)
    agent.loop.stop()
    assert list(agent.folder.rglob("*.tmp")) == []
    agent.log.close()


def test_the_disk_of_these_tests_is_full(tmp_path, monkeypatch):
    disk = Disk(tmp_path, monkeypatch)
    disk.full = 1
    with pytest.raises(OSError, match="No space left"):
        files.replace(tmp_path / "file", b"data")
    assert list(tmp_path.iterdir()) == []
