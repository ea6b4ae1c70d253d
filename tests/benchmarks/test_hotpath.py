"""Samples of a run are real stacks, and shares of them add up as a reader expects."""

import subprocess
import sys

import pytest

from benchmarks.scheduling import hotpath

LOOP = "runpy.py:run_module:1;extender/app.py:run:2"
LOADING = f"{LOOP};extender/state.py:State.load:3"
FILTER = f"{LOOP};process/express.py:Lane.feed:4;extender/answers.py:Verbs.filter:5"
DECODING = f"{FILTER};extender/questions.py:read:6;msgspec/json.py:decode:7"
BIND = f"{LOOP};extender/binder.py:Binder.bind:8;kube/kept.py:Kept.send:9"
IDLE = f"{LOOP};extender/freshness.py:look:9"


def test_only_samples_between_the_first_and_the_last_call_count():
    samples = [LOADING, FILTER, IDLE, DECODING, BIND, LOADING]
    assert hotpath.between_calls(samples) == [FILTER, IDLE, DECODING, BIND]


def test_samples_without_a_call_are_none():
    assert hotpath.between_calls([LOADING, IDLE]) == []


@pytest.mark.parametrize(
    ("table", "name", "share"),
    [
        ("within", "extender/answers.py:Verbs.filter", 0.5),
        ("within", "extender/app.py:run", 1.0),
        ("itself", "extender/answers.py:Verbs.filter", 0.25),
        ("itself", "extender/questions.py:read", 0.25),
        ("modules", "kube/kept.py", 0.25),
    ],
)
def test_time_in_a_library_counts_for_who_called_it(table, name, share):
    found = hotpath.profile([FILTER, DECODING, BIND, IDLE])
    assert found.samples == 4
    assert getattr(found, table)[name] == share


SPINNING = """
import sys, time
def spin():
    while time.process_time() < 0.3:
        pass
if __name__ == '__main__':
    spin()
    sys.exit(int(sys.argv[1]))
"""
STEPPING = """
import sys
def step(times):
    for _ in range(times):
        pass
if __name__ == '__main__':
    step(int(sys.argv[1]))
"""


def sampled(folder, program, way, argument):
    (folder / "program.py").write_text(program)
    target = folder / "samples"
    command = (
        *(sys.executable, "-m", "benchmarks.scheduling.sampled"),
        *(way, target, "program", argument),
    )
    environment = {"PYTHONPATH": f"{folder}:{':'.join(path for path in sys.path if path)}"}
    done = subprocess.run(command, env=environment, check=False)
    return done.returncode, target.read_text().splitlines()


def test_the_profiler_notes_where_a_program_spends_its_time(tmp_path):
    code, samples = sampled(tmp_path, SPINNING, "time", "3")
    assert code == 3
    assert sum("program.py:spin:" in sample for sample in samples) > len(samples) / 3
    assert len(samples) > 10


def test_steps_of_a_program_are_the_same_each_time_and_grow_with_its_work(tmp_path):
    counts = [
        sum(
            "program.py:step:" in sample
            for sample in sampled(tmp_path, STEPPING, "steps", times)[1]
        )
        for times in ("1000", "1000", "101000")
    ]
    assert abs(counts[0] - counts[1]) <= 1
    each = (counts[2] - counts[0]) * hotpath.sampled.INTERVAL_STEPS / 100_000
    # What a turn of the loop takes: jump, next, store.
    assert 2.5 <= each <= 5
