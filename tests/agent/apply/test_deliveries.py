"""What a runtime set at the birth of a cgroup is put back to what was requested."""

import resource

import pytest

from agent.apply import deliveries, enforcer, journal
from agent.apply.properties import property_files
from agent.assembly import undo
from agent.decide import planner
from agent.loop import births
from agent.model import edits
from agent.observe.node import boot

R = edits.Role
BOOT = "boot"
VALUES = {
    R.CPU_QUOTA: ("150000", "20000"),
    R.CPU_SHARES: ("1536", "2"),
    R.MEMORY_LIMIT: (str(1 << 30), str(2 << 30)),
    R.CPUSET: ("1-2", "0-3"),
}
"""Delivered and requested values."""
UNREQUESTED = {
    1: {R.CPU_QUOTA: "-1", R.CPU_SHARES: "1024", R.MEMORY_LIMIT: "-1", R.CPUSET: "0-7"},
    2: {R.CPU_QUOTA: "max 100000", R.CPU_SHARES: "39", R.MEMORY_LIMIT: "max", R.CPUSET: ""},
}


class Birth:
    """A container that a runtime has made with values of ours."""

    def __init__(self, host, folder):
        self.host, self.folder = host, folder
        host.add("one", "Burstable", 500)
        host.step()
        pod = host.look().pods[0]
        self.group, self.version = pod.containers[0].group, host.tree.version
        self.layout = host.observer.layout
        self.knobs = property_files.Knobs(self.layout)

    def set(self, role, value):
        self.knobs.write(role, self.group, self.knobs.aim(role, "", value)[0])

    def delivered(self, role, *, requested=True):
        value, asked = VALUES[role]
        self.set(role, value)
        return deliveries.Delivered(role, self.group, value, asked if requested else None)

    def text(self, role):
        return self.knobs.read(role, self.group)

    def acting(self):
        made = enforcer.Enforcer(self.folder, writing=True)
        assert made.start(self.layout, BOOT).problem == ""
        return made


def test_a_line_that_fits_in_part_spoils_none_after_it(tmp_path):
    one = deliveries.Delivered(R.CPU_QUOTA, "pod/c", "150000", "20000")
    two = deliveries.Delivered(R.CPU_SHARES, "pod/c", "1536", "2")
    kept = deliveries.Deliveries(tmp_path, BOOT)
    kept.add([one])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, ((tmp_path / deliveries.NAME).stat().st_size + 5, hard)
    )
    try:
        with pytest.raises(deliveries.DeliveryError, match="part"):
            kept.add([two])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    kept.add([two])
    kept.close()
    assert deliveries.left(tmp_path, BOOT) == (one, two)


@pytest.fixture
def birth(host, tmp_path):
    return Birth(host, tmp_path / "state")


@pytest.mark.parametrize("role", VALUES)
def test_the_requested_value_is_put_back(birth, role):
    one = birth.delivered(role)
    first = birth.acting()
    assert first.born([one]) == ""
    first.close()
    # The next agent finds it on disk.
    birth.acting().put_back("r")
    assert birth.text(role) == birth.knobs.aim(role, "", VALUES[role][1])[0]


@pytest.mark.parametrize("role", VALUES)
def test_where_nothing_was_requested_it_is_what_a_new_cgroup_has(birth, role):
    if birth.version == 1 and role is R.CPUSET:
        above = birth.group.rpartition("/")[0]
        birth.knobs.write(role, above, "0-7")
    one = birth.delivered(role, requested=False)
    acting = birth.acting()
    acting.born([one])
    acting.put_back("r")
    assert birth.text(role) == UNREQUESTED[birth.version][role]


def test_a_later_request_is_what_is_put_back(birth):
    acting = birth.acting()
    one = birth.delivered(R.CPU_QUOTA)
    silent = deliveries.Delivered(R.CPU_QUOTA, birth.group, "150000", None)
    resized = deliveries.Delivered(R.CPU_QUOTA, birth.group, "160000", "40000")
    acting.born([one, resized, silent])
    birth.set(R.CPU_QUOTA, "160000")
    acting.put_back("r")
    assert birth.text(R.CPU_QUOTA) == birth.knobs.aim(R.CPU_QUOTA, "", "40000")[0]


def test_what_reconciliation_wants_as_well_needs_no_write_and_stays_journalled(birth):
    acting = birth.acting()
    acting.born([birth.delivered(R.CPU_QUOTA)])
    edit = edits.Edit(R.CPU_QUOTA, birth.group, "150000", "r")
    assert acting.apply([edit], 1.0).records == []
    acting.apply([edits.Edit(R.CPU_QUOTA, birth.group, None, "r")], 2.0)
    assert birth.text(R.CPU_QUOTA) == birth.knobs.aim(R.CPU_QUOTA, "", "20000")[0]


def test_a_cgroup_that_never_came_to_be_is_forgotten(birth):
    acting = birth.acting()
    acting.born([deliveries.Delivered(R.CPU_QUOTA, f"{birth.group}-gone", "150000", "20000")])
    assert acting.put_back("r").records == []
    assert acting.entries == 0


def some(count, group="kubepods/a"):
    return [deliveries.Delivered(R.CPU_QUOTA, group, str(n), "1") for n in range(count)]


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_a_killed_agent_leaves_what_the_journal_does_not_have(folder):
    kept = deliveries.Deliveries(folder, BOOT)
    kept.add(some(2))
    kept.add(some(1, "kubepods/b"))
    assert deliveries.left(folder, BOOT) == (*some(2), *some(1, "kubepods/b"))
    assert deliveries.left(folder, "another boot") == ()


def test_what_the_journal_has_is_not_left(folder):
    kept = deliveries.Deliveries(folder, BOOT)
    kept.add(some(2))
    taken = kept.take()
    kept.add(some(1, "kubepods/b"))
    kept.done(taken)
    assert kept.take() == tuple(some(1, "kubepods/b"))
    kept.done(kept.take())
    assert deliveries.left(folder, BOOT) == ()
    kept.add(some(1))
    assert deliveries.left(folder, BOOT) == tuple(some(1))
    kept.close()


def test_a_damaged_line_costs_no_other(folder, caplog):
    kept = deliveries.Deliveries(folder, BOOT)
    kept.add(some(1))
    with (folder / deliveries.NAME).open("ab") as file:
        file.write(b"00000000 {}\n\xff\n" + journal.sealed({"set": [["no-role"]], "bootId": BOOT}))
        file.write(journal.sealed({"bootId": BOOT}))
    kept.add(some(1, "kubepods/b"))
    assert [one.group for one in deliveries.left(folder, BOOT)] == ["kubepods/a", "kubepods/b"]
    assert caplog.text.count("a delivery was left out") == 4


def test_the_file_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(deliveries, "MOST_BYTES", 300)
    kept = deliveries.Deliveries(folder, BOOT)
    kept.add(some(1))
    with pytest.raises(deliveries.DeliveryError, match="bytes already"):
        kept.add(some(9))
    assert kept.take() == tuple(some(1))


def test_a_folder_that_cannot_be_written_is_an_error(folder):
    with pytest.raises(deliveries.DeliveryError, match="cannot be written"):
        deliveries.Deliveries(folder / "none", BOOT).add(some(1))


def test_an_agent_takes_over_what_the_killed_one_delivered(birth):
    birth.folder.mkdir()
    deliveries.Deliveries(birth.folder, BOOT).add([birth.delivered(R.CPU_QUOTA)])
    acting = enforcer.Enforcer(birth.folder, writing=True)
    assert acting.start(birth.layout, BOOT).problem == ""
    assert acting.adopted == ((R.CPU_QUOTA, birth.group),)
    assert not (birth.folder / deliveries.NAME).exists()
    acting.put_back("r")
    acting.close()
    assert birth.text(R.CPU_QUOTA) == birth.knobs.aim(R.CPU_QUOTA, "", "20000")[0]


def test_undo_knows_what_a_killed_agent_delivered(birth, capsys):
    birth.folder.mkdir()
    roots = birth.host.observer.roots
    kept = deliveries.Deliveries(birth.folder, boot.boot_id(roots.proc))
    kept.add([birth.delivered(R.CPU_QUOTA)])
    places = [f"--state={birth.folder}", f"--cgroup={roots.cgroup}"]
    places += [f"--proc={roots.proc}", f"--sys={roots.sys}"]
    assert undo.main([*places, "--dry-run"]) == undo.OK
    assert "would put back cpu-quota" in capsys.readouterr().out
    assert undo.main(places) == undo.OK
    assert birth.text(R.CPU_QUOTA) == birth.knobs.aim(R.CPU_QUOTA, "", "20000")[0]
    assert not (birth.folder / deliveries.NAME).exists()


def test_what_no_strategy_wants_after_a_while_is_handed_to_the_planner(birth):
    birth.folder.mkdir()
    kept = deliveries.Deliveries(birth.folder, BOOT)
    acting = enforcer.Enforcer(birth.folder, writing=True)
    acting.start(birth.layout, BOOT)
    moving = births.Births(kept, lambda _told: None)
    kept.add([birth.delivered(R.CPU_QUOTA)])
    moving.settle(acting, planner.Planner((), (), {}), 10.0)
    assert (acting.entries, kept.take()) == (1, ())
    key = (R.CPU_QUOTA, birth.group)
    assert moving.due(10.0 + births.UNKNOWN_SECONDS - 1) == ()
    assert moving.due(10.0 + births.UNKNOWN_SECONDS) == (key,)
    assert moving.due(10.0 + births.UNKNOWN_SECONDS) == ()
    acting.close()
    moving.close()
