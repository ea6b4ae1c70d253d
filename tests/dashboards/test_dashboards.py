"""Every panel of every dashboard finds something in a company's cluster, by a real Prometheus."""

import json
import pathlib
from xml.etree import ElementTree

import pytest

from tests.dashboards import company, drawing, panels, queries, scrapes
from tests.planes.programs import prometheus
from tests.system import world as worlds

ROOT = pathlib.Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy/monitoring/dashboards").glob("*.json"))
DASHBOARDS = {file.stem: json.loads(file.read_text()) for file in FILES}
MANUAL = ROOT / "docs" / "dashboards"
EMPTY = {
    # No container runtime calls agents on simulated nodes, so that nothing takes any time.
    ("agent", "Time of an answer"),
    # Measured with the gates PSICollector, ThrottlingCollector and InterferenceDetection only.
    ("outcomes", "Pods slowed down"),
    ("outcomes", "Waiting for the CPU, before and after"),
    ("outcomes", "Throttled, by namespace"),
    ("outcomes", "Online pods that neighbours slow down"),
}


def titles(dashboard):
    return [panel["title"] for panel in dashboard["panels"]]


@pytest.mark.timeout(300)
async def test_every_query_finds_data_and_every_dashboard_is_drawn(
    with_prometheus, pictures, tmp_path
):
    file = tmp_path / "scraped"
    async with worlds.opened(tmp_path, company.Company) as world:
        start = world.clock.now()
        world.supervisor.start("scrapes", lambda: scrapes.collect(world, file))
        await company.play(world)
        end = world.clock.now()
    span = queries.Span(start, end, scrapes.EVERY_SECONDS)
    async with (
        prometheus.over(tmp_path, scrapes.ended(file)) as url,
        queries.asking(url, span) as asked,
    ):
        found = {name: await panels.found(one, asked) for name, one in DASHBOARDS.items()}
    for name, dashboard in DASHBOARDS.items():
        picture = drawing.page(dashboard, found[name], start, end)
        (pictures / f"{name}.svg").write_text(picture)
    empty = {
        (name, panel["title"])
        for name, dashboard in DASHBOARDS.items()
        for panel in dashboard["panels"]
        if panel["type"] != "row" and not found[name][panel["id"]]
    }
    assert empty == EMPTY


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_manual_shows_the_panels_of_today(name):
    picture = ElementTree.parse(MANUAL / f"{name}.svg")
    shown = {one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")}
    renew = "KOORD_PICTURES=docs/dashboards make prometheus renews it"
    for title in titles(DASHBOARDS[name]):
        assert any(text and title.startswith(text.rstrip("…")) for text in shown), (title, renew)
    assert f"dashboards/{name}.svg" in (ROOT / "docs" / "monitoring.md").read_text()
