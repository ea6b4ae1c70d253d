"""Tests in a real Chromium: skipped unless asked for, and where there is none."""

import os
import pathlib

import pytest

from tests.browser import scene
from tests.manager import conftest as managers
from tests.manager.console import conftest as consoles
from tests.planes.programs import browser

SWITCH, PICTURES = "KOORD_BROWSER", "KOORD_PICTURES"
# Read before the root conftest cleans the environment of each test.
_ASKED, _PICTURES = bool(os.environ.get(SWITCH)), os.environ.get(PICTURES, "")

clock, rights, world, opened = managers.clock, consoles.rights, consoles.world, consoles.opened


def pytest_collection_modifyitems(items):
    found = browser.program()
    for item in items:
        if "tests/browser/" not in item.nodeid:
            continue
        if not _ASKED:
            item.add_marker(pytest.mark.skip(reason="needs a browser; run make browser"))
        elif found is None:
            item.add_marker(pytest.mark.skip(reason="there is no Chromium on the PATH"))


@pytest.fixture
async def shown(world, opened, rights):
    """A console in front of a company's cluster; everybody without a token may read all of it."""
    rights.all.add(consoles.VIEWER)
    await scene.play(world)
    async with opened(viewer=consoles.VIEWER) as console:
        await scene.measured(world)
        yield console


@pytest.fixture
async def tab(shown):
    """A browser that has opened the console."""
    async with browser.tab(browser.program()) as found:
        await found.appear(still=True)
        await found.go(f"{shown.url}/")
        await found.until("document.querySelector('.heat > div')")
        yield found
        assert not found.said
        assert all(one.startswith((shown.url, "about:")) for one in found.requests)


@pytest.fixture
def pictures(tmp_path):
    """Where pictures are written: into the manual only where that is asked for."""
    return pathlib.Path(_PICTURES) if _PICTURES else tmp_path
