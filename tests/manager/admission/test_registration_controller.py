"""Webhooks that nobody answers for are withdrawn, and put back when somebody does."""

import base64
import contextlib
import socket
import ssl

from aiohttp import web

from api import names, resources
from api.kubernetes.webhooks import webhook_configuration
from certs import issue
from manager.admission import prober as probing
from manager.admission import registered
from manager.settings import AdmissionSettings
from process.http import ports
from process.runtime.clock import SystemClock

BOTH = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
RULES = [{**RULE, "scope": "*"}]
FAST = AdmissionSettings(period_seconds=1, away_seconds=3, back_seconds=3, probe_seconds=2)


class Door:
    """Something that answers as a webhook does, or not."""

    def __init__(self, folder):
        self.status = 200
        now = SystemClock().now()
        authority = issue.authority("test", now)
        pair = issue.leaf(authority, issue.Subject("w", ips=("127.0.0.1",)), now)
        self.bundle = authority.certificate
        file = folder / "pair.pem"
        file.write_bytes(pair.certificate + pair.key)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(file)
        self.url = ""

    async def answer(self, _request):
        return web.Response(status=self.status)

    @contextlib.asynccontextmanager
    async def open(self):
        app = web.Application()
        app.router.add_get(probing.PATH, self.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self.context).start()
            self.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()


async def register(world, door, policy="Ignore"):
    for resource in BOTH:
        entry = {
            "name": "pods.koordinator.sh",
            "clientConfig": {
                "url": f"{door.url}/review",
                "caBundle": base64.b64encode(door.bundle).decode(),
            },
            "rules": RULES,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": policy,
            # The pods of these tests are not to be reviewed.
            "objectSelector": {"matchLabels": {"review": "me"}},
        }
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": "koord-webhook"},
            "webhooks": [entry],
        }
        await world.admin.create(resource, body)


def rules(world):
    found = (world.stored(resource, "koord-webhook") for resource in BOTH)
    return [one["webhooks"][0].get("rules") for one in found]


async def passing(world, what):
    """Let time pass in small steps until something is true."""
    for _ in range(200):
        if what():
            return
        await world.clock.advance(0.5)
        await world.clock.settle()
    raise AssertionError("never became true")


async def test_withdrawn_and_put_back(world, tmp_path):
    async with Door(tmp_path).open() as door:
        await register(world, door)
        async with world.manager(admission=FAST) as app:
            probes = "koord_manager_webhook_probes_total"
            await passing(world, lambda: app.registry.value(probes, {"result": "answered"}))
            assert all(rules(world))
            door.status = 503
            await passing(world, lambda: not any(rules(world)))
            note = webhook_configuration.withdrawal(
                world.stored(BOTH[0], "koord-webhook")["metadata"]["annotations"]
            )
            assert note.reason == "it answers 503"
            await world.until(lambda: "WebhookWithdrawn" in world.reasons("koord-webhook"))
            withdrawn = {"configuration": BOTH[0].plural}
            gauge = "koord_manager_webhook_withdrawn"
            await passing(world, lambda: app.registry.value(gauge, withdrawn) == 1)
            door.status = 200
            await passing(world, lambda: all(rules(world)))
            assert rules(world) == [RULES, RULES]
            found = world.stored(BOTH[0], "koord-webhook")["metadata"]
            assert names.ANNOTATION_WITHDRAWN not in found.get("annotations", {})
            await world.until(lambda: "WebhookRestored" in world.reasons("koord-webhook"))
            await passing(world, lambda: app.registry.value(gauge, withdrawn) == 0)


async def test_who_must_be_asked_is_not_withdrawn(world, tmp_path):
    async with Door(tmp_path).open() as door:
        door.status = 503
        await register(world, door, policy="Fail")
        async with world.manager(admission=FAST):
            await passing(world, lambda: "WebhookUnreachable" in world.reasons("koord-webhook"))
            assert rules(world) == [RULES, RULES]


async def test_nothing_is_touched_where_somebody_else_owns_it(world, tmp_path):
    async with Door(tmp_path).open() as door:
        door.status = 503
        await register(world, door)
        settings = FAST.model_copy(update={"withdraw": False})
        async with world.manager(admission=settings):
            await passing(world, lambda: "WebhookUnreachable" in world.reasons("koord-webhook"))
            assert rules(world) == [RULES, RULES]


async def test_a_name_that_cannot_be_looked_up_says_nothing(world, tmp_path):
    target = registered.Target("webhook.invalid", 443, "")
    assert await probing.Probe("", 2.0).ask(target) is None


async def test_a_certificate_of_somebody_else_is_no_answer(tmp_path):
    async with Door(tmp_path).open() as door:
        target = registered.Target("127.0.0.1", 443, door.bundle.decode())
        assert await probing.Probe(door.url, 2.0).ask(target) == ""
        foreign = issue.authority("foreign", SystemClock().now()).certificate.decode()
        problem = await probing.Probe(door.url, 2.0).ask(registered.Target("127.0.0.1", 1, foreign))
        assert "CERTIFICATE_VERIFY_FAILED" in problem
        assert await probing.Probe(door.url, 2.0).ask(
            registered.Target("koord-webhook.ns.svc", 443, door.bundle.decode())
        )
        junk = registered.Target("127.0.0.1", 1, "junk")
        assert "caBundle cannot be read" in await probing.Probe(door.url, 2.0).ask(junk)


async def test_silence_is_no_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        problem = await probing.Probe(url, 0.2).ask(registered.Target("127.0.0.1", 1, ""))
    assert problem == "no answer within 0.2 s"


async def test_nobody_there_is_no_answer():
    (gone,) = ports.take(1)
    assert await probing.Probe(f"https://127.0.0.1:{gone}", 2.0).ask(
        registered.Target("127.0.0.1", 1, "")
    )
