"""Scorecards as people read them: of one host, and of many added up."""

import json

import pytest
from aiohttp import web

from agent.report import scorecard, scorekeeper
from cli import main
from cli.commands import agent_scorecard as command
from cli.view import scorecards
from kube.client import access
from kube.client import client as clients
from process.runtime import clock, entry


def card(date, pods=()):
    day = scorecard.Day(date)
    day.tick(scorecard.Second(7200.0, over=True, bound=True, held_cores=1.5))
    day.tick(scorecard.Second(7200.0, over=False))
    about = scorecard.About("memory-evict", "batch", "BE")
    for pod, online in pods:
        day.evict(about, scorecard.WOULD_EVICT, pod, online=online)
    day.count(scorecard.About("cpu-suppress", "", "BestEffort"), scorecard.WOULD_WRITE)
    return day


def test_days_of_all_nodes_are_added_up():
    one = [card("2026-11-20", [("a", False)]).as_json(), card("2026-11-19").as_json()]
    other = [card("2026-11-20", [("b", True), ("c", False)]).as_json()]
    newest, oldest = scorecards.together([one, other])
    assert (newest["date"], newest["nodes"]) == ("2026-11-20", 2)
    assert (oldest["date"], oldest["nodes"]) == ("2026-11-19", 1)
    assert list(scorecards.lines([newest])) == [
        "2026-11-20 (UTC), 2 nodes, watched for 8.0 h",
        "  cpu above the threshold   50.0 % of the time",
        "  best effort at its limit  4.0 h, 6.0 core-hours held back",
        "  pods evicted              0, 0 of them online",
        "  pods would be evicted     3, 1 of them online",
        "  properties written        0",
        "  would be written          2",
        "  conflicts                 0, given up to other writers 0",
        "  STRATEGY      NAMESPACE  CLASS       WHAT                COUNT",
        "  memory-evict  batch      BE          would have evicted  3",
        "  cpu-suppress  -          BestEffort  would have written  2",
    ]


def test_many_rows_are_cut_short():
    day = card("2026-11-20")
    for number in range(40):
        day.count(scorecard.About("s", f"n{number}", "LS"), scorecard.WRITTEN)
    assert list(scorecards.lines(scorecards.together([[day.as_json()]])))[-1] == "  and 21 more"


def test_nothing_kept_is_said():
    assert list(scorecards.lines([])) == ["no day has been kept yet"]


@pytest.fixture
def folder(tmp_path):
    kept = tmp_path / scorekeeper.FOLDER
    kept.mkdir()
    for date in ("2026-11-19", "2026-11-20"):
        (kept / f"{date}.day").write_bytes(card(date, [("a", False)]).written())
    return kept


def test_the_host_itself_tells_without_a_cluster(folder, capsys):
    words = ["agent", "scorecard", "--here", f"--state={folder.parent}"]
    assert main.main(words) == entry.OK
    said = capsys.readouterr().out
    assert said.startswith("2026-11-20 (UTC), 1 node, watched for 4.0 h\n")
    assert "2026-11-19" not in said
    assert main.main([*words, "--days=5", "-o", "json"]) == entry.OK
    found = json.loads(capsys.readouterr().out)
    assert [day["date"] for day in found["days"]] == ["2026-11-20", "2026-11-19"]


def test_a_damaged_day_is_named(folder, capsys):
    (folder / "2026-11-20.day").write_bytes(b"00000000 {}\n")
    words = ["agent", "scorecard", "--here", f"--state={folder.parent}", "--days=2"]
    assert main.main(words) == entry.FAILED
    told = capsys.readouterr()
    assert told.out.startswith("2026-11-19 (UTC)")
    assert "2026-11-20.day: cut short or changed" in told.err


def test_a_host_without_an_agent_says_so(tmp_path, capsys):
    assert main.main(["agent", "scorecard", "--here", f"--state={tmp_path}"]) == entry.FAILED
    assert "no agent has kept a scorecard here" in capsys.readouterr().err


def test_more_days_than_are_kept_are_refused(capsys):
    with pytest.raises(SystemExit):
        main.main(["agent", "scorecard", "--days=31"])
    assert "1 to 30 are kept" in capsys.readouterr().err


PODS = "/api/v1/namespaces/koordinator-system/pods"


@pytest.fixture
async def answers():
    """What an API server answers, by path."""
    found, app = {}, web.Application()

    async def answer(request):
        body = found.get(request.path_qs, found.get(request.path))
        return web.json_response(body or {"code": 404}, status=200 if body else 404)

    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with clients.Client(access.Access(server=server), clock=clock.SystemClock()) as kube:
        yield found, kube
    await runner.cleanup()


def agent(name, node, component="agent"):
    labels = {"app.kubernetes.io/part-of": "koord", "app.kubernetes.io/component": component}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": node}}


@pytest.mark.parametrize(
    ("node", "nodes", "problems"),
    [("", 2, ["a3"]), ("n1", 1, []), ("n9", 0, ["no agent runs on node n9"])],
)
async def test_the_agents_are_asked_through_the_api_server(answers, node, nodes, problems):
    found, kube = answers
    listed = [agent(f"a{n}", f"n{n}") for n in (1, 2, 3)] + [agent("m", "n1", "manager")]
    found[PODS] = {"metadata": {"resourceVersion": "1"}, "items": listed}
    for name in ("a1", "a2"):
        path = f"{PODS}/{name}:9316/proxy/scorecard?days=2"
        found[path] = {"days": [card("2026-11-20").as_json()]}
    wanted = command.Wanted("koordinator-system", node, 2)
    cards, said = await command.read(kube, wanted)
    assert sum(day["nodes"] for day in scorecards.together(cards)) == nodes
    assert [
        problem[: len(start)] for problem, start in zip(said, problems, strict=True)
    ] == problems
