"""CI fails when a stage runs fewer tests than it did, or skips what nobody has listed."""

import importlib.util
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
CI = ROOT / ".ci"


def _loaded():
    spec = importlib.util.spec_from_file_location("ci_stages", CI / "stages.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["ci_stages"] = module
    spec.loader.exec_module(module)
    return module


stages = _loaded()
STAGE = stages.Stage("unit", "test", 10, (stages.Skip("run make e2e$", 3, "there"),), ("^no node",))
END = "=========== {} in 12.34s (0:00:12) ===========\n"
SKIP = "SKIPPED [{}] tests/x/test_y.py:3: {}\n"


def judged(output, status=0, everything=False):
    return stages.judge(STAGE, status, output, 12.3, everything)


@pytest.mark.parametrize(
    ("output", "status", "fault"),
    [
        pytest.param(END.format("10 passed"), 0, "", id="enough"),
        pytest.param(SKIP.format(3, "run make e2e") + END.format("10 passed, 3 skipped"), 0, "",
                     id="listed skip"),
        pytest.param(END.format("6 passed") + END.format("4 passed, 1 warning"), 0, "",
                     id="two sessions"),
        pytest.param(END.format("9 passed"), 0, "fewer than the floor of 10", id="too few"),
        pytest.param("printed: 99 passed\n" + END.format("9 passed"), 0, "fewer than",
                     id="what a test prints does not count"),
        pytest.param(END.format("1 failed, 10 passed"), 1, "make test ended with 1", id="failed"),
        pytest.param(SKIP.format(1, "no mood") + END.format("10 passed"), 0, "not listed: no mood",
                     id="unlisted skip"),
        pytest.param(SKIP.format(4, "run make e2e") + END.format("10 passed"), 0, "more than 3",
                     id="more skips than listed"),
        pytest.param(SKIP.format(2, "run make e2e") * 2 + END.format("10 passed"), 0, "more than 3",
                     id="more skips in two places"),
        pytest.param("", 0, "nothing ran", id="nothing"),
        pytest.param("skipped: no node here\n", 0, "", id="left out for a listed reason"),
        pytest.param("not run: no time\n", 0, "nothing ran", id="left out for another"),
        pytest.param(SKIP.format(43, "no node here") + END.format("43 skipped"), 0, "",
                     id="every test skipped for a listed reason"),
        pytest.param(SKIP.format(43, "no mood") + END.format("43 skipped"), 0, "nothing ran",
                     id="every test skipped for another"),
    ],
)  # fmt: skip
def test_what_a_stage_says_is_judged(output, status, fault):
    outcome = judged(output, status)
    assert bool(outcome.faults) is bool(fault)
    assert fault in "".join(outcome.faults)


def test_everything_can_be_demanded():
    assert judged("skipped: no node here\n", everything=True).faults == ("nothing ran",)


def test_it_is_said_how_many_ran():
    outcome = judged(SKIP.format(2, "run make e2e") + END.format("12 passed, 2 skipped"))
    assert outcome.said == "12 tests ran and passed (floor 10), 2 skipped, 12 s"


def test_the_committed_stages_name_targets_that_exist_and_reasons():
    found, budget = stages.read((CI / "stages.toml").read_text())
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [stage.name for stage in found] == [
        "unit", "newest", "browser", "prometheus", "e2e", "node", "host", "host-v2"
    ]  # fmt: skip
    for stage in found:
        assert stage.make in targets
        assert stage.floor > 0
        assert set(stage.needs) <= set(stages.NEEDS)
        for pattern in (*(skip.reason for skip in stage.skips), *stage.lacks):
            re.compile(pattern)
        assert all(skip.why and skip.most > 0 for skip in stage.skips)
    assert budget["warm"] < budget["cold"]


def test_a_stage_like_another_may_skip_the_same():
    found, _ = stages.read((CI / "stages.toml").read_text())
    unit, newest = found[:2]
    assert newest.skips == unit.skips != ()
    assert (newest.make, newest.lacks) == (
        "test-newest", ("^there is no newer Python on this machine$",)
    )  # fmt: skip


def test_a_stage_beside_one_that_is_not_there_is_refused():
    text = (CI / "stages.toml").read_text().replace('beside = "node"', 'beside = "nobody"')
    with pytest.raises(ValueError, match="there is no stage nobody"):
        stages.read(text)
