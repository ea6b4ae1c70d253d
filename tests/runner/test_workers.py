"""Forked workers run every test once and report it as one process would."""

import os
import pathlib
import re
import subprocess
import sys
import types

import pytest

from tests.runner import workers

ROOT = pathlib.Path(__file__).parent.parent.parent
FAULTY = """
import os, pytest

@pytest.fixture(scope="session")
def whole():
    yield
    raise RuntimeError("the session ends badly")

@pytest.fixture
def broken():
    raise RuntimeError("no such thing")

def test_passes(tmp_path, whole):
    assert not list(tmp_path.iterdir())

def test_fails():
    print("said before")
    assert [1] == [2]

def test_skips():
    pytest.skip("not here")

def test_has_no_fixture(broken):
    pass
"""
DYING = """
import os, warnings

def test_before():
    warnings.warn("mind the gap")

def test_dies():
    os._exit(3)

def test_after():
    assert os.getppid() == int(os.environ["FIRST"])
"""
FIRST = "import os\nos.environ['FIRST'] = str(os.getpid())\n"


def ran(folder, *arguments):
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.runner.workers"]
    command += ["-p", "no:cacheprovider", "-c", str(folder / "pytest.ini")]
    command += ["--workers=2", "-ra", *arguments, str(folder)]
    # Without the plug-ins of others it starts in half the time.
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=environ
    )


def test_results_are_those_of_one_process_and_a_death_costs_one_test(tmp_path):
    (tmp_path / "conftest.py").write_text(FIRST)
    (tmp_path / "test_dying.py").write_text(DYING)
    (tmp_path / "test_faulty.py").write_text(FAULTY)
    answer = ran(tmp_path)
    assert answer.returncode == pytest.ExitCode.TESTS_FAILED, answer
    assert "2 failed, 3 passed, 1 skipped, 1 warning, 2 errors in" in answer.stdout
    assert "said before" in answer.stdout
    assert re.search(r"^FAILED \S*test_faulty.py::test_fails", answer.stdout, re.MULTILINE)
    assert re.search(r"^E +assert \[1\] == \[2\]$", answer.stdout, re.MULTILINE)
    assert "the process that ran it ended with status 3" in answer.stdout
    assert "UserWarning: mind the gap" in answer.stdout
    assert re.search(
        r"^SKIPPED \[1\] \S*test_faulty.py:\d+: not here$", answer.stdout, re.MULTILINE
    )
    assert "RuntimeError: the session ends badly" in answer.stdout


def test_enough_failures_end_the_run(tmp_path):
    (tmp_path / "test_many.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('number', range(50))\n"
        "def test_it(number):\n"
        "    assert number < 0\n"
    )
    answer = ran(tmp_path, "--maxfail=3")
    assert answer.returncode == pytest.ExitCode.TESTS_FAILED, answer
    assert "stopping after 3 failures" in answer.stdout
    assert "3 failed in" in answer.stdout


def test_what_is_left_behind_at_the_very_end_fails_the_run(tmp_path):
    (tmp_path / "test_leaving.py").write_text(
        "import pytest\ndef test_it(request):\n    request.config.add_cleanup(lambda: 1 / 0)\n"
    )
    answer = ran(tmp_path)
    assert answer.returncode == pytest.ExitCode.TESTS_FAILED, answer
    assert "a process of --workers ended with status 1" in answer.stdout


def items(*names):
    return [types.SimpleNamespace(path=name, nodeid=f"{name}::test") for name in names]


def test_some_begin_with_what_waits_and_the_others_at_the_other_end():
    named = ["tests/a/x.py", "tests/a/x.py", "tests/cli/x.py", "tests/scenarios/x.py", "tests/z.py"]
    files = workers.Files(items(*named))
    assert [files.take(number) for number in (0, 1, 2, 3, 4, 5, 0)] == [
        [2], [4], [0, 1], [3], [], [], []
    ]  # fmt: skip


def test_what_takes_longest_comes_first_of_what_waits():
    files = workers.Files(items("tests/a.py", "tests/cli/a.py", workers.LONGEST[-1]))
    assert [files.take(0) for _ in range(3)] == [[2], [1], [0]]


def test_what_takes_longest_is_there():
    assert [name for name in workers.LONGEST if not (ROOT / name).is_file()] == []
    assert {name.split("/")[1] for name in workers.LONGEST} <= set(workers.WAITING)


def test_what_a_process_did_not_get_to_is_left_to_others():
    files = workers.Files(items("tests/a.py", "tests/a.py", "tests/b.py"))
    assert files.take(0) == [0, 1]
    files.give_back([1])
    files.give_back([])
    assert [files.take(number) for number in (1, 1, 1)] == [[2], [1], []]
