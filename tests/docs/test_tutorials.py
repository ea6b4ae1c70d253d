"""Tutorials: every command of the pages is run, and shows what the pages show."""

import pathlib

import pytest

from tests.docs import console

PAGES = pathlib.Path(__file__).parents[2] / "docs" / "tutorials"
ORDER = ("batch-job", "quota", "gang", "reservation", "observe")


def test_every_tutorial_is_run():
    assert sorted(ORDER) == sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index")


@pytest.mark.timeout(120)
async def test_every_command_shows_what_the_page_shows(world):
    for node in ("n1", "n2", "n3"):
        await world.add_node(node)
    terminal = console.Console(world)
    for name in ORDER:
        for command, shown in console.commands(PAGES / f"{name}.md"):
            said = await terminal.run(command)
            # The names of a Job's pods are drawn: pages show nothing for such commands.
            assert not shown or console.shows(shown, said), f"{name}: {command}: {said}"


@pytest.mark.parametrize(
    ("shown", "fits"),
    [
        pytest.param(["a", "b"], True, id="all of it"),
        pytest.param(["a"], False, id="the end is missing"),
        pytest.param(["...", "b"], True, id="dots for the beginning"),
        pytest.param(["a", "...", "b"], True, id="dots for nothing"),
        pytest.param(["...", "c", "..."], False, id="what was not said"),
    ],
)
def test_dots_stand_for_any_lines(shown, fits):
    assert console.shows(shown, ["a", "b"]) is fits
