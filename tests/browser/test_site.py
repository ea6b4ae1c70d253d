"""The manual's site in a real Chromium: versions, the alias, search, and nothing from elsewhere."""

import asyncio
import contextlib
import functools
import http.server
import shutil
import threading

import pytest

from deploy.site import build, versions
from tests.planes.programs import browser

OLD = "0.0.9"
OUTDATED = "document.querySelector('[data-md-component=outdated]')"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and tells nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site with an older version beside the present one; returns both."""
    folder = tmp_path_factory.mktemp("site")
    version = build.build(folder)
    shutil.copytree(folder / version, folder / OLD)
    versions.share(folder)
    return folder, version


@contextlib.contextmanager
def served(folder):
    """Serve a folder on a free port; returns the address."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


async def arrived(tab, path):
    """Wait until a page has led to another one, and this one has its list of versions."""
    async with asyncio.timeout(15):
        while True:
            with contextlib.suppress(browser.ScriptError):
                if await tab.run("location.pathname") == path:
                    await tab.until("document.querySelectorAll('.md-version__link').length == 2")
                    return
            await asyncio.sleep(0.05)


@pytest.mark.timeout(120)
async def test_a_reader_finds_the_other_version_and_loads_nothing_from_elsewhere(site, pictures):
    folder, version = site
    with served(folder) as address:
        async with browser.tab(browser.program()) as tab:
            await tab.appear(still=True)
            await tab.go(f"{address}/latest/tutorials/gang.html")
            await arrived(tab, f"/{version}/tutorials/gang.html")
            shown = await tab.run("document.querySelector('.md-version__current').innerText")
            assert shown == f"{version}latest"
            assert await tab.run(f"{OUTDATED}.hidden")
            await tab.picture(pictures / "site.png")
            await tab.go(f"{address}/{OLD}/tutorials/gang.html")
            await arrived(tab, f"/{OLD}/tutorials/gang.html")
            await tab.until(f"!{OUTDATED}.hidden")
            assert await tab.run(f"{OUTDATED}.querySelector('a').href") == f"{address}/latest/"
            await tab.picture(pictures / "site-old.png")
            assert [
                one for one in tab.requests if not one.startswith((address, "about:", "data:"))
            ] == []
            assert not tab.said
