"""Two webhooks behind one Service, each of which knows of the other only by the API server."""

import asyncio
import contextlib
import json

import pytest_asyncio

from api import names, resources
from process.http import ports
from tests.planes import raw
from tests.planes import stage as stages
from tests.planes.processes import services
from tests.planes.quota import quota_processes
from tests.planes.quota import teams as planes_teams
from tests.planes.stage import PATIENCE

SERVICE = "koord-webhook"
MANAGER = quota_processes.MANAGER
# Pods pass unchanged when a webhook answers too late, as it may on a busy machine.
PATIENT = "--registration.timeout_seconds=30"


class Replicas:
    """Both webhooks, and a manager that tells what quotas use."""

    def __init__(self, stage, folder, admission):
        self.stage = stage
        self.ports = ports.take(2)
        self.webhooks = [
            stage.process(
                f"webhook-{letter}",
                "webhook",
                f"--server.port={port}",
                *("--server.announce_seconds=0", "--server.linger_seconds=0.2"),
                f"--certificates.folder={folder / letter}",
                f"--quota.admission={admission}",
                PATIENT,
                serves=False,
            )
            for letter, port in zip("ab", self.ports, strict=True)
        ]
        self.manager = stage.process("manager-a", "manager", *MANAGER, serves=False)

    async def start(self):
        """Start all, and wait until the API server calls both."""
        await services.point(self.stage.api, names.NAMESPACE, SERVICE, *self.ports)
        started = (*self.webhooks, self.manager)
        for process in started:
            await process.start()
        for process in started:
            await process.ready()

        async def called():
            # The API server keeps connections: only at once do calls reach more than one of them.
            body, query = self.stage.pod_body("dry"), {"dryRun": "All"}
            path = self.stage.path("pods")
            calls = (self.stage.api.call("POST", path, body, query=query) for _ in range(20))
            await asyncio.gather(*calls)
            return all([await reviews(one) for one in self.webhooks])

        await raw.eventually(called, PATIENCE)

    async def knows(self, *_quotas):
        """Nothing but admission is asked here."""
        return True


async def reviews(webhook):
    """How many reviews a webhook has answered."""
    return await webhook.measured("koord_webhook_reviews_total")


@contextlib.asynccontextmanager
async def running(stage, folder, admission):
    replicas = Replicas(stage, folder, admission)
    await stage.api.call("DELETE", quota_processes.LEASE)
    teams = planes_teams.Teams(stage.plane, stage, replicas)
    try:
        await replicas.start()
        yield replicas, teams
    finally:
        for process in (*replicas.webhooks, replicas.manager):
            await process.kill()
        await planes_teams.unregistered(stage)
        await teams.clear()
        for path in (
            quota_processes.SECRET,
            resources.SERVICES.path(names.NAMESPACE, SERVICE),
        ):
            await stage.api.call("DELETE", path)


@pytest_asyncio.fixture(loop_scope="session", params=["deny", "gate"])
async def replicas(request, breakable, tmp_path):
    async with (
        stages.opened(breakable, tmp_path) as stage,
        running(stage, tmp_path, request.param) as found,
    ):
        yield (*found, request.param)


def written(teams, name, cpu, labels=None):
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": teams.here.name(name), "labels": labels or {}},
        "spec": {"min": {"cpu": cpu}, "max": {"cpu": cpu}},
    }


async def create(teams, *documents):
    """Create quotas at the same time; return the answers."""
    path = teams.path("")
    return await asyncio.gather(*(teams.api.call("POST", path, one) for one in documents))


async def test_creators_at_once_are_let_in_up_to_the_maximum_and_no_further(replicas):
    system, teams, admission = replicas
    (answer,) = await create(teams, written(teams, "team", "5"))
    assert answer.status == 201, answer.message
    quota = teams.here.name("team")
    label = {names.LABEL_QUOTA_NAME: quota}
    await known(teams, quota, admission)

    async def creator(number):
        body = teams.here.pod_body(f"creator-{number}", requests={"cpu": "1"}, labels=label)
        return await teams.api.call("POST", teams.here.path("pods"), body)

    before = [await reviews(one) for one in system.webhooks]
    answers = []

    async def both_were_asked():
        """The API server chooses whom it asks: it may be the same one forty times."""
        first = len(answers)
        answers.extend(await asyncio.gather(*(creator(first + number) for number in range(40))))
        after = [await reviews(one) for one in system.webhooks]
        return all(late > early for late, early in zip(after, before, strict=True))

    await raw.eventually(both_were_asked, PATIENCE)
    if admission == "gate":
        gates = [answer.body["spec"].get("schedulingGates") for answer in answers]
        assert gates == [[{"name": names.GATE_QUOTA}]] * len(answers)
        return
    made = [answer for answer in answers if answer.status == 201]
    assert len(made) == 5
    assert {answer.status for answer in answers} == {201, 403}
    refused = next(answer for answer in answers if answer.status == 403)
    assert quota in refused.message
    charged = (await teams.api.get(teams.path(quota)))["metadata"]["annotations"]
    assert json.loads(charged[names.ANNOTATION_QUOTA_CHILD_REQUEST]) == {"cpu": "5"}


async def known(teams, quota, admission):
    """Wait until both webhooks know a quota: so many dry runs in a row as chance allows."""
    label = {names.LABEL_QUOTA_NAME: quota}
    cpu = "1" if admission == "gate" else "6"
    body = teams.here.pod_body("dry", requests={"cpu": cpu}, labels=label)

    async def check():
        calls = (
            teams.api.call("POST", teams.here.path("pods"), body, query={"dryRun": "All"})
            for _ in range(20)
        )
        answers = await asyncio.gather(*calls)
        if admission == "deny":
            return all(answer.status == 403 for answer in answers)
        return all(answer.body["spec"].get("schedulingGates") for answer in answers)

    await raw.eventually(check, PATIENCE)


async def test_children_created_at_once_share_what_their_parent_has(replicas):
    """Each webhook may have seen the others too late: what they guarantee together is then more.

    The manager says so on the parent, and every child is sure of its part of what there is.
    """
    _, teams, _ = replicas
    await teams.here.node("a", cpu="4")
    parent = teams.here.name("parent")
    document = written(teams, "parent", "4", {names.LABEL_QUOTA_IS_PARENT: "true"})
    (answer,) = await create(teams, document)
    assert answer.status == 201, answer.message
    below = {names.LABEL_QUOTA_PARENT: parent}
    documents = [written(teams, f"child-{number}", "3", below) for number in range(8)]
    answers = await create(teams, *documents)
    made = [answer.body["metadata"]["name"] for answer in answers if answer.status == 201]
    assert made, [answer.message for answer in answers]
    refusals = [answer.message for answer in answers if answer.status != 201]
    assert all("with its siblings" in text for text in refusals), refusals

    def told(found):
        conditions = (found or {}).get("status", {}).get("conditions", [])
        status = {one["type"]: one["status"] for one in conditions}
        return status.get("MinimumsFit") == ("True" if len(made) == 1 else "False")

    await teams.api.wait_until(teams.path(parent), told, PATIENCE)
    for number, child in enumerate(made):
        label = {names.LABEL_QUOTA_NAME: child}
        await teams.api.post(
            teams.here.path("pods"),
            teams.here.pod_body(f"asks-{number}", requests={"cpu": "3"}, labels=label),
        )

    async def shared():
        quotas = [await teams.api.get(teams.path(child)) for child in made]
        notes = [one["metadata"].get("annotations", {}) for one in quotas]
        texts = [one.get(names.ANNOTATION_QUOTA_RUNTIME, "{}") for one in notes]
        amounts = [milli(json.loads(text).get("cpu", "0")) for text in texts]
        return all(amounts) and sum(amounts) <= 4000

    await raw.eventually(shared, PATIENCE)


def milli(text):
    return int(text[:-1]) if text.endswith("m") else 1000 * int(text)
