"""The node that filter chooses has the highest total that the real kube-scheduler computes."""

import asyncio
import contextlib
import itertools
import json
import os

import pytest
import pytest_asyncio

from api.kubernetes import scheduler_config
from api.wire import durations
from cli.install import apply
from domain.scoring import eligibility
from extender import app as extenders
from extender import settings as extender_settings
from extender.scoring import decider
from kube.client import access as accesses
from kube.client import client as clients
from process.http import ports
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.processes import restarting
from tests.planes.scheduler import scored

# KOORD_DECIDE=N compares more pods that have a choice; clusters are made until there are so many.
COMPARISONS = int(os.environ.get("KOORD_DECIDE", "8"))
PODS = 24
PATIENCE = 60.0
LEFT = "left to the scheduler by the test"
METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"


def access(plane):
    return accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def defined(quiet):
    """Our custom resources: load reports give nodes points."""
    clock = clocks.SystemClock()
    async with clients.Client(access(quiet), clock=clock, user_agent="user") as client:
        await apply.definitions(client, clock)


def configured(profiles, url):
    """A configuration with our two entries and these profiles."""
    config = scheduler_config.render(scheduler_config.Options(url))
    return config | {"profiles": profiles, "percentageOfNodesToScore": 100}


@contextlib.asynccontextmanager
async def deciding(quiet, folder, profiles, program):
    """Run the scheduler and our extender on one configuration."""
    (port,) = ports.take(1)
    url = f"http://127.0.0.1:{port}"
    config, file = configured(profiles, url), folder / "scheduler.json"
    file.write_text(json.dumps(config))
    local = {"host": "127.0.0.1", "linger_seconds": 0.0}
    settings = extender_settings.Settings.model_validate(
        {
            "server": local | {"port": port},
            "health": local | {"port": 0},
            "scheduler": {"config_file": file, "version": "{}.{}".format(*quiet.release)},
            # Nobody tries a pod again that came while the extender was proving its view.
            "freshness": {"idle_seconds": restarting.ALONE_SECONDS},
        }
    )
    clock = clocks.SystemClock()
    async with extenders.running(settings, access=access(quiet), clock=clock) as app:

        async def ready():
            return app.health.ready and app.answers.decider.synced

        await raw.eventually(ready, PATIENCE)
        assert "decide" not in app.health.warnings()
        await quiet.binaries.start_scheduler(config, binary=program)
        try:
            yield app
        finally:
            await quiet.binaries.stop_scheduler()


async def report_load(api, draw, nodes):
    """Report a load of every node, so that they get points of ours."""
    moment = durations.moment(clocks.SystemClock().now() + 2)
    for node in nodes:
        name = node["metadata"]["name"]
        usage = {"cpu": f"{draw.randint(0, 3000)}m", "memory": f"{draw.randint(0, 2000)}Mi"}
        metric = {
            "apiVersion": "slo.koordinator.sh/v1alpha1",
            "kind": "NodeMetric",
            "metadata": {"name": name},
            "spec": {},
        }
        await api.post(METRICS, metric)
        status = {
            "updateTime": moment,
            "nodeMetric": {"nodeUsage": {"resources": usage}},
        }
        kind = "application/merge-patch+json"
        answer = await api.call("PATCH", f"{METRICS}/{name}/status", {"status": status}, kind=kind)
        assert answer.status == 200, answer.message


def without_unknown_owners(body, workloads):
    """A pod of a controller that does not exist is left to the scheduler."""
    (owner,) = body["metadata"]["ownerReferences"]
    there = {(one.get("kind"), one["metadata"]["name"]) for one in workloads}
    if body["metadata"]["namespace"] != "default" or (owner["kind"], owner["name"]) not in there:
        body["metadata"]["ownerReferences"] = []
    return body


async def attempt(api, body):
    """Create a pod and return it when its attempt has ended."""
    await api.post(scored.pods(body), body)
    path = f"{scored.pods(body)}/{body['metadata']['name']}"
    return await api.wait_until(path, scored.decided, timeout=PATIENCE)


async def remove(api, body):
    path = f"{scored.pods(body)}/{body['metadata']['name']}"
    await api.call("DELETE", path, query={"gracePeriodSeconds": "0"})


async def read_log(quiet):
    return await asyncio.to_thread((quiet.binaries.workdir / "kube-scheduler.log").read_text)


async def forgotten(app, uid):
    """Tell whether the extender's watch has shown that a pod is gone."""
    return app.books.cluster.claim(uid) is None


async def compare(quiet, api, app, body):
    """Let the scheduler score a pod, then let us decide it; return whether there was a choice."""
    key = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
    app.answers.decider.halted = LEFT
    placed = await attempt(api, body)
    _, totals = scored.scores(await read_log(quiet), key)
    if not totals:
        if not placed["spec"].get("nodeName"):
            # It would be tried again while the next one is compared.
            await remove(api, body)
        return False
    assert totals[placed["spec"]["nodeName"]] == max(totals.values())
    await remove(api, body)
    await raw.eventually(lambda: forgotten(app, placed["metadata"]["uid"]), PATIENCE)
    app.answers.decider.halted = ""
    decided = await attempt(api, body)
    found = app.answers.decider.decisions.get(key)
    assert found.undecidable == ""
    chosen = decided["spec"]["nodeName"]
    assert found.explained.chosen.node == chosen
    assert totals[chosen] == max(totals.values())
    assert found.explained.chosen.total == totals[chosen]
    assert found.explained.candidates == len(totals)
    # The scheduler took the one name without scoring anything again.
    assert (await read_log(quiet)).count(f'final score for pod" pod="{key}"') == len(totals)
    return True


@pytest.mark.timeout(120 + 5 * COMPARISONS)
async def test_the_chosen_total_is_the_highest_that_the_scheduler_computes(
    quiet, quiet_api, defined, talkative, tmp_path
):
    compared, seeds = 0, itertools.count(1000)
    while compared < COMPARISONS:
        seed = next(seeds)
        # A generator whose pods never have a choice would compare for ever.
        assert seed < 1000 + COMPARISONS
        draw, minor = scored.seeded(seed), quiet.release[1]
        nodes, workloads, _ = await scored.create(quiet_api, draw, minor)
        await report_load(quiet_api, draw, nodes)
        profiles = scored.profiles(draw, 3)
        async with deciding(quiet, tmp_path, profiles, talkative) as app:
            for number in range(PODS):
                scheduler = f"s{draw.randrange(3)}"
                body = scored.pod(draw, f"decided-{seed}-{number}", minor, scheduler)
                without_unknown_owners(body, workloads)
                compared += await compare(quiet, quiet_api, app, body)
        await scored.clear(quiet_api)
        for node in nodes:
            # Nodes of other tests have the same names.
            await quiet_api.delete(f"{METRICS}/{node['metadata']['name']}")


TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = [{"weight": 1, "podAffinityTerm": TERM}]
SPREAD = {
    "maxSkew": 1,
    "whenUnsatisfiable": "ScheduleAnyway",
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
OWNED = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": scored.UID}]
LEFT_TO_IT = {
    "preferred": ({"affinity": {"podAffinity": {SOFT: PREFERRED}}}, eligibility.POD_PREFERENCES),
    "preferred-apart": (
        {"affinity": {"podAntiAffinity": {SOFT: PREFERRED}}},
        eligibility.POD_PREFERENCES,
    ),
    "spread": ({"topologySpreadConstraints": [SPREAD]}, eligibility.SPREAD_CONSTRAINTS),
    "unknown-owner": ({"owners": OWNED}, decider.UNKNOWN_CONTROLLER),
}


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity", "required"])
async def test_pods_that_a_preference_could_move_are_left_to_the_scheduler(
    quiet, quiet_api, defined, talkative, tmp_path, kind
):
    draw = scored.seeded(7)
    profiles = [{"schedulerName": "s0"}]
    for number in range(3):
        node = scored.node(draw, number) | {"spec": {}}
        node["metadata"]["labels"]["kubernetes.io/hostname"] = f"n{number}"
        await quiet_api.post("/api/v1/nodes", node)

    def body(name, owners=(), **spec):
        container = {"name": "c", "image": "x"}
        metadata = {"name": f"{kind.lower()}-{name}", "namespace": "default"}
        metadata |= {"labels": {"app": "web"}, "ownerReferences": [*owners]}
        ending = {"schedulerName": "s0", "terminationGracePeriodSeconds": 0}
        return {"metadata": metadata, "spec": {"containers": [container], **ending, **spec}}

    term = {"podAffinity": {HARD: [TERM]}} if kind == "required" else {kind: {SOFT: PREFERRED}}
    async with deciding(quiet, tmp_path, profiles, talkative) as app:
        found = {}
        for name, (spec, _) in LEFT_TO_IT.items():
            controlled = [one | {"controller": True} for one in spec.get("owners", ())]
            await attempt(quiet_api, body(name, **spec | ({"owners": controlled})))
            decision = app.answers.decider.decisions.get(f"default/{kind.lower()}-{name}")
            found[name] = decision.undecidable
            await remove(quiet_api, body(name))
        assert found == {name: reason for name, (_, reason) in LEFT_TO_IT.items()}
        await attempt(quiet_api, body("free"))
        free = app.answers.decider.decisions.get(f"default/{kind.lower()}-free")
        assert free.undecidable == ""
        await attempt(quiet_api, body("other", affinity=term))
        await attempt(quiet_api, body("near"))
        near = app.answers.decider.decisions.get(f"default/{kind.lower()}-near")
        assert near.undecidable == eligibility.OTHERS_AFFINITY
    await scored.clear(quiet_api)
