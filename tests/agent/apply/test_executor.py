"""Edits become writes, and every host gets back what it had."""

import errno
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.model import edits, state
from domain.cpus import cpulists
from tests import draws

CPUSET, QUOTA = edits.Role.CPUSET, edits.Role.CPU_QUOTA


class Killed(BaseException):
    """The agent was killed at this write."""


class FragileKnobs(property_files.Knobs):
    """Dies before the n-th write, or fails it with an error."""

    def __init__(self, arranged, dies_at=None, error=None):
        super().__init__(arranged)
        self.writes, self.dies_at, self.error = 0, dies_at, error
        self.seen = []

    def write(self, role, group, text):
        self.writes += 1
        if self.writes == self.dies_at:
            raise self.error or Killed
        super().write(role, group, text)
        self.seen.append((group.count("/"), text))


class Bench:
    """An executor on a generated host."""

    def __init__(self, host, tmp_path):
        self.host = host
        self.folder = tmp_path / "state"
        host.add("be", "BestEffort", 4000)
        host.know(thresholds=state.Thresholds(True))
        host.step()
        self.arranged = host.observer.layout
        self.before = host.snapshot()

    @property
    def groups(self):
        return [group.path for group in self.host.look().best_effort.groups]

    def start(self, *, writing=True, **fragile):
        self.journal = journal.Journal(self.folder, "boot")
        self.journal.load()
        self.knobs = FragileKnobs(self.arranged, **fragile)
        return executor.Executor(self.knobs, self.journal, writing=writing)

    def narrow(self, cpus="0-1", quota="150000"):
        wanted = [edits.Edit(CPUSET, group, cpus, "busy") for group in self.groups]
        return [*wanted, edits.Edit(QUOTA, self.groups[0], quota, "busy")]

    def cpus(self):
        return [cpulists.text(group.cpus) for group in self.host.look().best_effort.groups]

    def changed(self):
        """Files that differ from the beginning, counters apart."""
        now = self.host.snapshot()
        words = self.before.keys() | now.keys()
        return {p for p in words if _meaning(self.before.get(p)) != _meaning(now.get(p))}


def _meaning(data):
    return None if data is None else data.strip()


@pytest.fixture
def bench(host, tmp_path):
    return Bench(host, tmp_path)


def outcomes(outcome):
    return sorted({what for what, _, _ in outcome.records})


def test_edits_are_written_and_put_back(bench):
    acting = bench.start()
    assert outcomes(acting.apply(bench.narrow(), 0)) == ["written"]
    assert bench.cpus() == ["0-1"] * 3
    assert bench.host.look().best_effort.quota_us == 150_000
    assert len(bench.journal) == 4
    assert outcomes(acting.put_back("stop")) == ["put back"]
    assert bench.changed() == set()
    assert len(bench.journal) == 0


def test_what_is_as_wanted_is_not_written(bench):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    writes = bench.knobs.writes
    assert acting.apply(bench.narrow(cpus="1,0"), 1).records == []
    assert bench.knobs.writes == writes


def test_observing_writes_nothing_at_all(bench):
    acting = bench.start(writing=False)
    before = bench.host.snapshot()
    assert outcomes(acting.apply(bench.narrow(), 0)) == ["would have written"]
    acting.put_back("stop")
    assert bench.host.snapshot() == before
    assert not bench.folder.exists()


def test_parents_grow_first_and_children_shrink_first(bench):
    acting = bench.start()
    acting.apply(bench.narrow(cpus="0-1"), 0)
    bench.knobs.seen.clear()
    acting.apply(bench.narrow(cpus="1-3"), 1)
    cpu_writes = [(depth, text) for depth, text in bench.knobs.seen if "max" not in text]
    grown = [depth for depth, text in cpu_writes if text == "0-3"]
    shrunk = [depth for depth, text in cpu_writes if text == "1-3"]
    assert grown == sorted(grown)
    assert len(grown) == 3
    assert shrunk == sorted(shrunk, reverse=True)
    assert cpu_writes[:3] == [(depth, "0-3") for depth in grown]


@settings(
    max_examples=draws.at_least(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.frozensets(st.integers(0, 7), min_size=1), min_size=1, max_size=5))
def test_a_child_never_exceeds_its_parent(host, tmp_path_factory, sets):
    if "be" not in host.tree.pods:
        host.add("be", "BestEffort", 4000)
        host.know(thresholds=state.Thresholds(True))
        host.step()
    groups = [group.path for group in host.look().best_effort.groups]
    now = {}

    class Watching(property_files.Knobs):
        def write(self, role, group, text):
            super().write(role, group, text)
            now[group] = cpulists.parse(text.strip())
            for above, below in itertools.combinations(groups, 2):
                if above in now and below in now and now[above] and now[below]:
                    assert now[below] <= now[above], (above, below)

    kept = journal.Journal(tmp_path_factory.mktemp("journal"), "boot")
    acting = executor.Executor(Watching(host.observer.layout), kept, writing=True)
    for cpus in sets:
        wanted = [edits.Edit(CPUSET, g, cpulists.text(cpus), "r") for g in groups]
        acting.apply(wanted, 0)
        assert {group.cpus for group in host.look().best_effort.groups} == {cpus}
    now.clear()
    acting.put_back("stop")


@pytest.mark.parametrize("point", range(1, 9))
def test_killed_at_any_write_the_next_start_puts_everything_back(bench, point):
    acting = bench.start()
    acting.apply(bench.narrow(cpus="0-1"), 0)
    bench.knobs.writes, bench.knobs.dies_at = 0, point

    def go_on():
        for number in range(9):
            acting.apply(bench.narrow(cpus=f"{number % 3 + 1}-{number % 4 + 2}"), number)

    with pytest.raises(Killed):
        go_on()
    again = bench.start()
    again.put_back("an earlier run left it behind")
    assert bench.changed() == set()
    assert bench.start() is not None
    assert len(bench.journal) == 0


@pytest.mark.parametrize("point", range(1, 9))
@pytest.mark.parametrize("second", [None, 1, 3, 6], ids=lambda n: f"then at {n}")
def test_killed_at_any_write_the_next_ones_go_on_and_an_uninstallation_puts_back(
    bench, point, second
):
    """Lives that take the journal over without putting anything back first."""
    bench.start().apply(bench.narrow(cpus="0-1"), 0)
    for dies_at in (point, second):
        acting = bench.start(dies_at=dies_at)
        try:
            for number in range(4):
                acting.apply(bench.narrow(cpus=f"{number % 3 + 1}-{number % 4 + 2}"), number)
        except Killed:
            continue
        assert acting.given_up == {}
    bench.start().put_back("uninstalled")
    assert bench.changed() == set()
    assert len(bench.journal) == 0


@pytest.mark.parametrize("point", range(1, 5))
def test_killed_while_putting_back_the_next_start_goes_on(bench, point):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    bench.knobs.writes, bench.knobs.dies_at = 0, point
    with pytest.raises(Killed):
        acting.put_back("stop")
    bench.start().put_back("an earlier run left it behind")
    assert bench.changed() == set()


def test_nothing_is_written_before_the_journal_is_safe(bench):
    acting = bench.start()
    bench.folder.parent.joinpath("state").write_text("a file where the folder belongs")
    outcome = acting.apply(bench.narrow(), 0)
    assert "cannot be written" in outcome.problem
    assert bench.knobs.writes == 0
    assert bench.changed() == set()


@pytest.mark.parametrize("error", [errno.EBUSY, errno.EACCES, errno.EINVAL, errno.EROFS])
def test_a_refused_write_is_reported_and_the_rest_goes_on(bench, error):
    acting = bench.start(dies_at=1, error=OSError(error, "refused"))
    outcome = acting.apply(bench.narrow(), 0)
    assert outcome.failures == 1
    assert bench.knobs.writes == 4
    failed = [reason for what, _, reason in outcome.records if what == "failed"]
    assert errno.errorcode[error] in failed[0]
    assert outcomes(acting.apply(bench.narrow(), 1)) == ["written"]


def test_a_group_that_vanishes_is_forgotten(bench):
    acting = bench.start()
    wanted = bench.narrow()
    acting.apply(wanted, 0)
    bench.host.tree.remove_pod("be")
    assert acting.apply(wanted, 1).records == []
    assert len(bench.journal) == 2
    acting.put_back("stop")
    assert len(bench.journal) == 0


def test_a_group_that_vanishes_between_look_and_write_is_no_failure(bench):
    acting = bench.start(dies_at=1, error=FileNotFoundError(errno.ENOENT, "gone"))
    assert acting.apply(bench.narrow(), 0).failures == 0


def test_a_released_file_gets_its_old_value(bench):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    release = [edits.Edit(e.role, e.group, None, "off") for e in bench.narrow()]
    assert outcomes(acting.apply(release, 1)) == ["put back"]
    assert bench.changed() == set()
    assert acting.apply(release, 2).records == []


def test_a_pod_born_under_suppression_is_set_free_with_the_others(bench):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    bench.host.add("young", "BestEffort", 100)
    bench.host.tree.advance(1)
    assert len(bench.groups) == 5
    acting.apply(bench.narrow(), 1)
    acting.put_back("stop")
    expected = {"0-7"} if bench.host.tree.version == 1 else {"", "0-7"}
    assert set(bench.cpus()) <= expected


def test_a_pod_born_just_before_the_kill_is_set_free_as_well(bench):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    bench.host.add("young", "BestEffort", 100)
    bench.start().put_back("an earlier run left it behind")
    expected = {"0-7"} if bench.host.tree.version == 1 else {"", "0-7"}
    assert set(bench.cpus()) <= expected


def test_a_foreign_writer_is_reported_and_wins(bench):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    file = bench.host.batch_file("cpuset.cpus")
    seen = []
    for second in range(1, 6):
        file.write_text("0-4\n")
        seen.append(outcomes(acting.apply(bench.narrow(), second)))
    assert seen == [["conflict", "written"]] * 2 + [["given up"], [], []]
    assert file.read_text().strip() == "0-4"
    assert acting.given_up == {(CPUSET, bench.groups[0]): "0-4"}
    acting.put_back("stop")
    assert file.read_text().strip() == "0-4"


def test_rare_conflicts_are_no_quarrel(bench):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    for number in range(1, 6):
        bench.host.batch_file("cpuset.cpus").write_text("0-4\n")
        acting.apply(bench.narrow(), number * 400)
    assert bench.cpus() == ["0-1"] * 3
    assert acting.given_up == {}


def test_a_co_writer_that_resets_is_corrected_at_a_limited_rate(bench):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    file = bench.host.batch_file("cpuset.cpus")
    original = bench.before[str(file)]
    written = []
    for second in range(1, 13):
        file.write_bytes(original)
        acting.apply(bench.narrow(), second)
        if file.read_bytes() != original:
            written.append(second)
    assert written == [1, 11]
    assert acting.given_up == {}


def test_an_unreadable_file_is_reported(bench):
    acting, wanted = bench.start(), bench.narrow()
    bench.host.batch_file("cpuset.cpus").write_bytes(b"\xff\xfe")
    assert acting.apply(wanted, 0).failures == 1


def test_what_somebody_else_wrote_since_stays(bench):
    acting = bench.start()
    acting.apply(bench.narrow(), 0)
    file = bench.host.batch_file("cpuset.cpus")
    file.write_text("0-4\n")
    outcome = bench.start().put_back("an earlier run left it behind")
    left = [(write.group, reason) for what, write, reason in outcome.records if what == "left"]
    assert [group for group, _ in left] == [bench.groups[0]]
    assert "'0-4'" in left[0][1]
    assert file.read_text() == "0-4\n"
    assert bench.changed() == {str(file)}
    assert len(bench.journal) == 0


class Rounding(property_files.Knobs):
    """A kernel that makes something of its own of every quota, or ignores it."""

    def __init__(self, arranged, makes):
        super().__init__(arranged)
        self.makes, self.writes = makes, 0

    def write(self, role, group, text):
        self.writes += 1
        if role is not QUOTA or self.makes:
            super().write(role, group, text if role is not QUOTA else self.makes)


def test_a_text_that_the_kernel_made_is_known_as_ours(bench):
    wanted = [edits.Edit(QUOTA, bench.groups[0], "150000", "busy")]
    made = "149000 100000" if bench.arranged.version == 2 else "149000"
    handles = Rounding(bench.arranged, made)
    kept = journal.Journal(bench.folder, "boot")
    acting = executor.Executor(handles, kept, writing=True)
    assert outcomes(acting.apply(wanted, 0)) == ["adjusted"]
    assert acting.apply(wanted, 1).records == []
    assert handles.writes == 1
    bench.start().put_back("an earlier run left it behind")
    assert bench.changed() == set()


def test_a_write_that_the_kernel_ignores_is_a_failure_each_time(bench):
    wanted = [edits.Edit(QUOTA, bench.groups[0], "150000", "busy")]
    acting = executor.Executor(
        Rounding(bench.arranged, ""), journal.Journal(bench.folder, "boot"), writing=True
    )
    for second in range(3):
        outcome = acting.apply(wanted, second)
        assert outcome.failures == 1
        assert "kept" in outcome.records[0][2]
