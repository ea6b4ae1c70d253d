"""kidled scans where a kernel has it and somebody lets the agent switch it on, and stops again."""

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.hooks import cold_pages
from agent.model import cgroup_layout, state

ROLES = frozenset({"kidled-period", "kidled-hierarchy"})


def test_only_where_the_kernel_has_it():
    assert not cold_pages.decide(state.NodeState(0.0)).wanted
    half = state.Kernel(roles=frozenset({"kidled-period"}))
    assert not cold_pages.decide(state.NodeState(0.0, kernel=half)).wanted
    decided = cold_pages.decide(state.NodeState(0.0, kernel=state.Kernel(roles=ROLES)))
    assert {edit.role.value: edit.value for edit in decided.wanted} == {
        "kidled-period": "5",
        "kidled-hierarchy": "1",
    }


def test_it_is_put_back(tmp_path):
    folder = tmp_path / "sys" / "kernel" / "mm" / "kidled"
    folder.mkdir(parents=True)
    before = {"scan_period_in_seconds": "120\n", "use_hierarchy": "0\n"}
    for name, text in before.items():
        (folder / name).write_text(text)
    arranged = cgroup_layout.Layout(str(tmp_path), 1, "systemd", sys=str(tmp_path / "sys"))
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.hold()
    kept.load()
    acting = executor.Executor(property_files.Knobs(arranged), kept, writing=True)
    decided = cold_pages.decide(state.NodeState(0.0, kernel=state.Kernel(roles=ROLES)))
    acting.apply(decided.wanted, 1.0)
    assert (folder / "scan_period_in_seconds").read_text().strip() == "5"
    assert (folder / "use_hierarchy").read_text().strip() == "1"
    acting.put_back("the agent stops")
    assert {name: (folder / name).read_text().strip() for name in before} == {
        "scan_period_in_seconds": "120",
        "use_hierarchy": "0",
    }
    kept.close()
