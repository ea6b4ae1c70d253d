"""Tutorials: every command of the pages is run, and shows what the pages show."""

import pytest

from tests.docs import commands, console


def test_every_tutorial_is_run():
    pages = {page.stem for page in commands.TUTORIALS.glob("*.md")}
    assert {*commands.ORDER, "index"} == pages


@pytest.mark.timeout(120)
async def test_every_command_shows_what_the_page_shows(world):
    for node in ("n1", "n2", "n3"):
        await world.add_node(node)
    terminal = console.Console(world)
    # The one on a laptop has a world of its own, tests/system/test_story.py.
    for name in commands.ORDER[1:]:
        for command, shown in commands.of(commands.TUTORIALS / f"{name}.md"):
            said = await terminal.run(command)
            assert commands.shows(shown, said), f"{name}: {command}: {said}"


@pytest.mark.parametrize(
    ("shown", "fits"),
    [
        pytest.param(["a  1 s", "b"], True, id="all of it"),
        pytest.param(["a  1 s"], False, id="the end is missing"),
        pytest.param(["...", "b"], True, id="dots for the beginning"),
        pytest.param(["a  1 s", "...", "b"], True, id="dots for nothing"),
        pytest.param(["...", "c", "..."], False, id="what was not said"),
        pytest.param(["a   1 s", "b"], True, id="a wider column"),
        pytest.param(["a 1 s", "b"], False, id="no column"),
        pytest.param(["a  ... s", "b"], True, id="dots in a line"),
        pytest.param(["a  ... h", "b"], False, id="dots before another end"),
        pytest.param(["a  ...b"], False, id="dots in a line end with it"),
    ],
)
def test_dots_stand_for_any_lines_and_for_any_text(shown, fits):
    assert commands.shows(shown, ["a  1 s", "b"]) is fits


def test_keys_end_a_command(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ make dev\n...\n```\n\n```console\n^C\nstopped\n```\n")
    assert list(commands.of(page)) == [("make dev", ["..."]), ("^C", ["stopped"])]
