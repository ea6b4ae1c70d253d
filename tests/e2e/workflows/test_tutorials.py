"""Tutorials as readers follow them: a fresh clone, `make dev`, an unmodified kubectl, real time."""

import asyncio
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request

import pytest

from tests.docs import commands, terminals
from tests.e2e import binaries
from tests.planes import plugin

NOT_IN_CLONES = (".venv", ".dev", ".mypy_cache", ".pytest_cache", "__pycache__", "build")
INSTALLED = pathlib.Path(sys.prefix)
CONSOLE = re.compile(r"^  console +(http://\S+)$", re.M)
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What somebody else gets who clones this repository, with what is installed here already."""
    if not os.environ.get(plugin.SWITCH):
        pytest.skip("takes two minutes in real time; run make e2e")
    place = tmp_path_factory.mktemp("clone")
    folder = place / "koord"
    if (commands.ROOT / ".git").exists():
        words = ("clone", "--quiet", "--depth=1", f"file://{commands.ROOT}", str(folder))
        # Git refuses to read a repository of another user otherwise.
        (place / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
        subprocess.run(["git", *words], check=True, env={**os.environ, "HOME": str(place)})
    else:
        # An archive was unpacked here.
        shutil.copytree(commands.ROOT, folder, ignore=shutil.ignore_patterns(*NOT_IN_CLONES))
    (folder / ".venv").mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (folder / ".venv" / name).symlink_to(INSTALLED / name)
    (folder / ".venv" / ".installed").touch()
    return folder


@pytest.fixture
def environment(clone, tmp_path):
    """A reader without a cluster, whose koord is the clone's."""
    program = binaries.kubectl()
    if program is None:
        pytest.skip("kubectl is neither in KUBEBUILDER_ASSETS nor installed")
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    # The programs of the virtual environment import what they find here first.
    return {"PATH": path, "HOME": str(tmp_path), "PYTHONPATH": str(clone), "LANG": "C.UTF-8"}


def fetched(address):
    """What a browser gets of the web console."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read()


async def followed(page, busy, shell):
    """Run the commands of a page; `busy` is where its readers started the system."""
    ran = 0
    for command, shown in commands.of(commands.TUTORIALS / f"{page}.md"):
        if command.startswith("make "):
            await busy.until(shown)
            for address in CONSOLE.findall("\n".join(busy.said)):
                assert b"<title>" in await asyncio.to_thread(fetched, address)
        elif command == commands.INTERRUPT:
            assert commands.shows(shown, await busy.interrupt())
        else:
            await shell.shows(command, shown)
        ran += 1
    return ran


def starts(page):
    """The command that starts the system for a page."""
    (found,) = [one for one, _ in commands.of(commands.TUTORIALS / page) if one[:5] == "make "]
    return found


async def test_the_commands_are_those_of_the_clone(clone, environment):
    async with terminals.shell(clone, environment) as shell:
        where = "-c 'import cli.main; print(cli.main.__file__)'"
        await shell.shows(f".venv/bin/python {where}", [str(clone / "cli" / "main.py")])


async def test_a_laptop_shows_what_the_page_shows(clone, environment):
    async with (
        terminals.busy(starts("laptop.md"), clone, environment) as busy,
        terminals.shell(clone, environment) as shell,
    ):
        assert await followed("laptop", busy, shell) > 6
    assert len(CONSOLE.findall("\n".join(busy.said))) == 1
    assert not (clone / ".dev").exists()


async def test_every_other_tutorial_shows_what_its_page_shows(clone, environment):
    async with (
        terminals.busy(starts("index.md"), clone, environment) as busy,
        terminals.shell(clone, environment) as shell,
    ):
        for page in ("index", *commands.ORDER[1:]):
            assert await followed(page, busy, shell) > 1
