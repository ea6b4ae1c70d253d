"""`koord report`: before an installation from metrics, afterwards from sums or a Prometheus."""

import asyncio
import json
import time

import pytest
from PIL import Image

from api import names, resources
from api.wire import durations
from cli import main
from cli.report import measured_use
from domain.daily_sums import effects, sums
from tests import builders
from tests.cli.prometheus import served

MAP = resources.CONFIG_MAPS.path(names.NAMESPACE, "koord-colocation-report")


@pytest.fixture
async def plane():
    made = served.Plane()
    web = builders.a_pod("web", "shop", cpu="8", memory="16Gi", node="n1")
    made.answers = {
        resources.CONFIG_MAPS.path(names.NAMESPACE): [],
        "/api/v1/nodes": [builders.a_node("n1"), builders.a_node("n2")],
        "/api/v1/pods": [web, builders.a_pod("etl", "data", cpu="2", memory="2Gi", node="n2")],
        measured_use.NODES.path(): [
            {"metadata": {"name": "n1"}, "usage": {"cpu": "3", "memory": "6Gi"}},
            {"metadata": {"name": "n2"}, "usage": {"cpu": "1500m", "memory": "2Gi"}},
        ],
        measured_use.PODS.path(): [
            {
                "metadata": {"name": "web", "namespace": "shop"},
                "containers": [
                    {"name": "a", "usage": {"cpu": "1500m", "memory": "3Gi"}},
                    {"name": "b", "usage": {"cpu": "500m", "memory": "1Gi"}},
                ],
            }
        ],
    }
    async with served.serving(made) as made.url:
        yield made


@pytest.fixture
def run(plane, tmp_path):
    file = served.kubeconfig(tmp_path, plane.url)

    async def ran(*words):
        return await asyncio.to_thread(main.main, ["report", *words, f"--kubeconfig={file}"])

    return ran


async def test_before_an_installation_metrics_alone_say_what_would_be_lent(run, capsys):
    assert await run("--would", "-o", "json") == 0
    body = json.loads(capsys.readouterr().out)
    # 60 % of 16 cores by default, less 1 of the system and 2 of the pod; of an unmeasured pod the
    # request counts, and what the node uses besides is the system's.
    assert body["lent"]["n1"][names.BATCH_CPU] == 9600 - 3000
    assert body["lent"]["n2"][names.BATCH_CPU] == 9600 - 1500 - 2000
    shop, data = body["teams"]
    assert (shop["name"], shop["left"]["cpu"], data["left"]["cpu"]) == ("shop", 6000, 0)
    assert body["allocatable"]["cpu"] == 32000


@pytest.mark.parametrize(
    ("name", "begins"), [("r.html", "<!doctype html>"), ("r.csv", "table,"), ("r.md", "# What")]
)
async def test_the_name_of_the_file_says_the_format(run, tmp_path, name, begins):
    assert await run("--would", f"--to={tmp_path / name}") == 0
    assert (tmp_path / name).read_text().startswith(begins)
    assert "shop" in (tmp_path / name).read_text()


async def test_without_a_metrics_api_the_remedy_is_named(run, plane, capsys):
    del plane.answers[measured_use.NODES.path()]
    assert await run("--would") == 2
    assert "install metrics-server, or name a Prometheus" in capsys.readouterr().err


async def test_a_prometheus_tells_the_peaks_of_days(run, tmp_path, capsys):
    made = served.Prometheus()
    pod, node = {"namespace": "shop", "pod": "web"}, {"node": "n1"}
    made.series = {
        "(namespace, pod, container) (rate": [
            (pod, 5.0),
            ({"pod": "lost"}, 1.0),
            (pod, float("nan")),
        ],
        "(namespace, pod, container) (container_memory": [(pod, 1 << 30)],
        "(node) (rate": [(node, 6.0)],
        "(node) (container_memory": [(node, 2 << 30)],
    }
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    async with served.serving(made) as url:
        words = ["--would", f"--prometheus={url}", f"--prometheus-token={secret}", "-o", "json"]
        assert await run(*words, "--days=3") == 0
    body = json.loads(capsys.readouterr().out)
    assert body["lent"]["n1"][names.BATCH_CPU] == 9600 - 6000
    assert all("[3d:5m]" in query for query in made.asked)
    assert set(made.headers) == {"Bearer s3cret"}
    assert (
        "of 1 node only the pods are measured: use of its system is not taken off"
        in body["notes"][0]
    )


async def test_the_past_comes_from_the_metrics_of_koord(run, capsys):
    made = served.Prometheus()
    made.series = {
        "koord_manager_lent_cores": [({}, 10.0)],
        "koord_manager_allocatable_cores": [({}, 100.0)],
        "koord_agent_node_cpu_cores": [({"by": "node"}, 40.0), ({"by": "best-effort"}, 6.0)],
        "koord_agent_evictions_total": [({}, 3.0)],
        "koord_quota_used": [({"quota": "team-a"}, 8.0), ({"quota": "idle"}, 0.0)],
        "koord_quota_waiting_pods": [({"quota": "team-a"}, 2.0)],
    }
    async with served.serving(made) as url:
        assert await run(f"--prometheus={url}", "-o", "json") == 0
    body = json.loads(capsys.readouterr().out)
    hours = 7 * 24
    assert (body["lent"], body["online"], body["batch"]) == (10 * hours, 34 * hours, 6 * hours)
    (team,) = body["teams"]
    assert (team["name"], team["held"], team["waiting"]) == ("team-a", 8 * hours, 2 * hours)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html>", "no figures"),
        ('{"status": "error", "error": "bad query"}', "bad query"),
        ('{"status": "success", "data": {"result": []}}', "let it scrape Koord"),
    ],
)
async def test_a_prometheus_that_does_not_help_is_named(run, capsys, text, why):
    made = served.Prometheus()
    made.text = text
    async with served.serving(made) as url:
        assert await run(f"--prometheus={url}") == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--prometheus=ftp://x"], "write http://HOST:PORT"),
        (["--prometheus=http://user:secret@x:1"], "no password"),
        (["--prometheus=http://127.0.0.1:9"], "does not answer: Connection refused"),
        (["--days=0"], "--days 0"),
        (["--prometheus=http://x:1", "--prometheus-token=/nowhere"], "a file cannot be read"),
    ],
)
async def test_what_cannot_be_asked_is_refused(run, capsys, words, why):
    assert await run(*words) == 2
    assert why in capsys.readouterr().err


async def test_the_past_comes_from_the_sums_of_the_manager(run, plane, capsys):
    assert await run() == 2
    assert "before an installation use --would" in capsys.readouterr().err
    today = durations.moment(time.time())[:10]
    rates = sums.Rates(
        sums.Cluster(1.0, 32.0, 12.0, 8.0, 5.0),
        {"data": sums.Team(0.0, 6.0, 5.0, 1.0, 2.0, 3.0), "shop": sums.Team(left=4.0)},
    )
    days = sums.added((), "2020-01-01", rates, 3600)
    days = sums.added(days, today, rates, 7200)
    data = {sums.KEY: sums.text(days)}
    plane.answers[MAP] = {"metadata": {"name": "x"}, "data": data}
    assert await run("-o", "json") == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["hours"], body["lent"], body["batch"], body["evicted"]) == (2, 24, 10, 3)
    data_team, shop = body["teams"]
    assert (data_team["held"], data_team["returned"], data_team["waiting"]) == (12, 2, 4)
    assert (shop["name"], shop["left"]) == ("shop", 8)
    assert await run() == 0
    assert "| data | 12.0 | 10.0 | 0.0 | 2.0 | 4.0 | 3 |" in capsys.readouterr().out
    assert "Agents held back" not in json.dumps(body)
    plane.answers[MAP]["data"] = {sums.KEY: "["}
    assert await run() == 2
    assert "koord-colocation-report" in capsys.readouterr().err


async def test_the_charts_are_written_as_one_picture(run, tmp_path, capsys):
    file = tmp_path / "report.png"
    assert await run("--would", f"--png={file}") == 0
    with Image.open(file) as picture:
        assert picture.format == "PNG"
        assert picture.width == 1720
        # Two teams with two bars each are drawn.
        assert len(picture.getcolors(1 << 20)) > 10
    assert "| shop |" in capsys.readouterr().out
    assert await run("--would", f"--png={tmp_path / 'no' / 'where.png'}") == 2
    assert "where.png cannot be written" in capsys.readouterr().err


async def test_a_report_without_charts_makes_no_picture(run, plane, tmp_path, capsys):
    plane.answers["/api/v1/pods"] = []
    assert await run("--would", f"--png={tmp_path / 'r.png'}") == 2
    assert "no charts" in capsys.readouterr().err
    assert not (tmp_path / "r.png").exists()


async def test_what_agents_did_is_told_by_day_and_strategy(run, plane, tmp_path, capsys):
    now, rates = time.time(), sums.Rates(sums.Cluster(1.0, 32.0, 12.0, 8.0, 5.0), {})
    yesterday, today = (durations.moment(now - ago * 86_400)[:10] for ago in (1, 0))
    hour = {"watched": 3600.0, "known": 3600.0, "over": 1800.0, "measured": 7200.0}
    observed = effects.Effects(
        **hour, would_suppress=7200.0, throttled=720.0, would_evict=3.0,
        reasons={"memory-evict": effects.Reason(0.0, 3.0)},
    )  # fmt: skip
    enforced = effects.Effects(
        **hour, enforced=3600.0, suppressed=3600.0, throttled=360.0, evicted=2.0,
        evicted_online=1.0, reasons={"cpu-evict": effects.Reason(2.0, 0.0)},
    )  # fmt: skip
    days = ()
    for date, did in ((yesterday, observed), (today, enforced)):
        days = sums.with_effects(sums.added(days, date, rates, 3600), date, did)
    plane.answers[MAP] = {"metadata": {"name": "x"}, "data": {sums.KEY: sums.text(days)}}
    assert await run(f"--png={tmp_path / 'r.png'}") == 0
    out = capsys.readouterr().out
    assert "held back 1.0 core-hours of best-effort work and evicted 2 pods, 1 of them" in out
    assert "they would have held back 2.0 core-hours and evicted 3 pods" in out
    assert "throttled in 10.0 % of the periods on days on which" in out
    assert "in 5.0 % on days on which it was mostly enforced" in out
    assert f"| {yesterday} | 1.0 | 0.0 % | 50.0 % | 0.0 | 2.0 | 10.0 % | 0 | 0 | 3 |" in out
    assert f"| {today} | 1.0 | 100.0 % | 50.0 % | 1.0 | 0.0 | 5.0 % | 2 | 1 | 0 |" in out
    assert "| memory-evict | 0 | 3 |" in out
    assert await run("-o", "json") == 0
    first, second = json.loads(capsys.readouterr().out)["did"]
    assert (first["wouldHoldBack"], first["aboveThreshold"]) == (2.0, 0.5)
    assert second["strategies"] == {"cpu-evict": {"evicted": 2, "wouldEvict": 0}}
