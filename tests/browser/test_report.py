"""The report of a week as one HTML file, in a real browser; its picture is in the manual."""

import asyncio
import time

import pytest

from api import names, resources
from api.wire import durations
from cli import main
from domain.daily_sums import effects, sums
from tests.cli.prometheus import served
from tests.planes.programs import browser

MAP = resources.CONFIG_MAPS.path(names.NAMESPACE, "koord-colocation-report")
DAYS, DAY_SECONDS = 7, 86_400
ALLOCATABLE = 960.0


@pytest.fixture
async def page(tmp_path):
    """The file that `koord report` writes of a week, with more lent at the weekend."""
    days = ()
    for ago in reversed(range(DAYS)):
        busy = (3.0, 3.2, 3.1, 2.9, 2.6, 1.4, 1.2)[ago]
        online, lent = 100.0 * busy, 620.0 - 120.0 * busy
        held, used = 0.7 * lent, 0.5 * lent
        teams = {
            "shop": sums.Team(left=0.6 * online, held=0.05 * held, used=0.04 * held),
            "search": sums.Team(left=0.4 * online),
            "analytics": sums.Team(0.0, 0.6 * held, 0.4 * held, 2.0 * busy, busy, 1.0),
            "training": sums.Team(0.0, 0.35 * held, 0.27 * held, 1.0 * busy, 2 * busy, 0.0),
        }
        date = durations.moment(time.time() - ago * DAY_SECONDS)[:10]
        rates = sums.Rates(sums.Cluster(1.0, ALLOCATABLE, lent, online, used), teams)
        days = sums.added(days, date, rates, DAY_SECONDS)
        enforced, watched = float(ago < 4), 60.0 * DAY_SECONDS
        did = effects.Effects(
            watched=watched, enforced=enforced * watched, known=watched, over=0.04 * busy * watched,
            suppressed=9e4 * busy * enforced, would_suppress=9e4 * busy * (1 - enforced),
            measured=watched, throttled=(0.03 - 0.01 * enforced) * watched,
            evicted=2 * enforced, would_evict=9 * (1 - enforced),
            reasons={"memory-evict": effects.Reason(2 * enforced, 9 * (1 - enforced))},
        )  # fmt: skip
        days = sums.with_effects(days, date, did)
    plane, file = served.Plane(), tmp_path / "week.html"
    plane.answers[MAP] = {"metadata": {"name": "x"}, "data": {sums.KEY: sums.text(days)}}
    async with served.serving(plane) as url:
        login = served.kubeconfig(tmp_path, url)
        words = ("report", f"--to={file}", f"--kubeconfig={login}")
        assert await asyncio.to_thread(main.main, list(words)) == 0
    return file


async def test_a_week_is_one_file_that_needs_no_network(page, pictures):
    async with browser.tab(browser.program()) as tab:
        await tab.appear(still=True, height=1000)
        await tab.go(page.as_uri())
        await tab.until("document.querySelectorAll('svg').length > 0")
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        said = await tab.run("document.body.innerText")
        assert all(team in said for team in ("shop", "search", "analytics", "training"))
        assert "on days on which it was mostly enforced" in said
        await tab.picture(pictures / "report" / "week.png")
        assert not tab.said
        assert all(one.startswith(("file:", "about:", "data:")) for one in tab.requests)
