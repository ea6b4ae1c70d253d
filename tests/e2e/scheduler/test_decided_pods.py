"""Pods whose node filter chose, on a scheduler that is never asked to score."""

import json

import pytest
import pytest_asyncio

from api.kubernetes import scheduler_config
from extender import app as extenders
from extender import settings as extender_settings
from kube.client import access as accesses
from process.http import ports
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.processes import restarting

LOCAL = {"host": "127.0.0.1", "linger_seconds": 0.0}
PATIENCE = 60.0


@pytest.fixture(scope="module")
def plane(real_plane):
    """Filter chooses by what only a real scheduler says of itself."""
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deciding(plane, tmp_path_factory):
    """The extender that knows the configuration of the scheduler that calls it."""
    (port,) = ports.take(1)
    url = f"http://127.0.0.1:{port}"
    file = tmp_path_factory.mktemp("scheduler") / "config.json"
    file.write_text(json.dumps(scheduler_config.render(scheduler_config.Options(url))))
    settings = extender_settings.Settings.model_validate(
        {
            "server": LOCAL | {"port": port},
            "health": LOCAL | {"port": 0},
            "scheduler": {"config_file": file, "version": "{}.{}".format(*plane.release)},
            # Nobody tries a pod again that came while the extender was proving its view.
            "freshness": {"idle_seconds": restarting.ALONE_SECONDS},
        }
    )
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    async with extenders.running(settings, access=access, clock=clocks.SystemClock()) as app:

        async def ready():
            return app.health.ready and app.answers.decider.synced

        await raw.eventually(ready, PATIENCE)
        await plane.start_scheduler(url)
        yield app
        await plane.stop_scheduler()


def calls(app, verb):
    found = app.registry.exposition()[0].decode()
    name = f'koord_extender_verb_seconds_count{{verb="{verb}"}} '
    return sum(float(line.rpartition(" ")[2]) for line in found.splitlines() if name in line)


async def test_pods_spread_over_nodes_without_a_prioritize_call(here, deciding):
    nodes = [await here.node(suffix) for suffix in "abc"]
    before = calls(deciding, "prioritize")
    placed = []
    for number in range(6):
        await here.pod(f"p{number}", labels={"app": here.id})
        placed.append((await here.bound(f"p{number}"))["spec"]["nodeName"])
    assert sorted(placed) == sorted(nodes * 2)
    assert calls(deciding, "prioritize") == before
    key = f"{here.namespace}/p5"
    found = deciding.answers.decider.decisions.get(key)
    assert found.explained.chosen.node == placed[5]


async def test_the_scheduler_scores_pods_with_preferences_of_their_own(here, deciding):
    await here.node("a")
    await here.node("b")
    # With one node nobody is asked for scores.
    await here.heard()
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 1, "podAffinityTerm": term}]
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    before = calls(deciding, "prioritize")
    await here.pod("p", affinity=affinity)
    await here.bound("p")
    assert calls(deciding, "prioritize") == before + 1


@pytest.mark.parametrize("requests", [{"cpu": "7"}, {"memory": "15Gi"}])
async def test_pods_that_fill_a_node_go_where_they_fit(here, deciding, requests):
    nodes = [await here.node(suffix) for suffix in "ab"]
    for number in range(2):
        await here.pod(f"p{number}", requests=requests)
    placed = {(await here.bound(f"p{number}"))["spec"]["nodeName"] for number in range(2)}
    assert placed == set(nodes)
    await here.pod("late", requests=requests)
    await here.refused("late")
    await here.check()
