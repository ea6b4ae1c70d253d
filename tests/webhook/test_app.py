"""The assembled webhook over HTTPS, called by an embedded API server for pods that are created."""

import asyncio
import base64
import io
import ssl

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from api import resources
from process.runtime import supervise
from simulator import faults
from tests.planes import raw
from tests.webhook import conftest

NAMESPACE, DAY, PROFILES = conftest.NAMESPACE, conftest.DAY, conftest.PROFILES
PODS, World = conftest.PODS, conftest.World
profile, pod, is_colocated = conftest.profile, conftest.pod, conftest.is_colocated
SECRET = "koord-webhook-certificates"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


async def presented(url, bundle):
    """Return the certificate that a new connection is shown, verified by a bundle."""
    context = ssl.create_default_context(cadata=bundle.decode())
    host, _, port = url.removeprefix("https://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    shown = writer.get_extra_info("ssl_object").getpeercert(True)
    writer.close()
    await writer.wait_closed()
    return x509.load_der_x509_certificate(shown)


async def test_pods_are_changed_as_soon_as_it_is_ready(world):
    async with world.webhook() as running:
        await world.ready(running)
        assert is_colocated(await world.create("job"))
        assert not is_colocated(await world.create("web", mark="no"))
        assert running.url.startswith("https://")


async def test_while_it_is_down_pods_pass_unchanged(world):
    async with world.webhook() as running:
        await world.ready(running)
    assert not is_colocated(await world.create("job"))
    async with world.webhook() as running:
        await world.ready(running)
        assert is_colocated(await world.create("again"))


async def test_two_replicas_serve_one_certificate(world):
    async with world.webhook("one") as one, world.webhook("two") as two:
        await world.ready(one)
        await world.ready(two)
        shown = [await presented(running.url, world.bundle) for running in (one, two)]
        assert shown[0] == shown[1]
        assert is_colocated(await world.create("job"))


async def test_a_certificate_is_rotated_without_a_failed_admission(world):
    async with world.webhook(server={"tls": None}) as running:
        await world.ready(running)
        before = await presented(running.url, world.bundle)
        created = []

        async def create():
            while True:
                created.append(is_colocated(await world.create(f"job-{len(created)}")))
                await world.clock.sleep(1)

        async with supervise.Supervisor("admissions") as supervisor:
            supervisor.start("create", create)
            # Two thirds of 90 days are over, and the installer looks once a minute.
            world.clock.jump(61 * DAY)
            path = world.folder / "one" / "tls.crt"
            await world.until(lambda: path.read_bytes() != pem(before), step=0.5)
            await world.clock.advance(15)
            after = await presented(running.url, world.bundle)
            assert after.not_valid_before_utc > before.not_valid_before_utc
            seen = len(created)
            await world.until(lambda: len(created) > seen + 2)
        assert all(created)
        assert len(created) > 4
        await world.ready(running)


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


async def test_an_overwritten_bundle_is_repaired_within_a_minute(world):
    async with world.webhook() as running:
        await world.ready(running)
        good = world.bundle
        hooks = await world.api.get(f"{HOOKS}/koord-webhook")
        hooks["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(
            world.server.ca
        ).decode()
        await world.api.put(f"{HOOKS}/koord-webhook", hooks)
        assert not is_colocated(await world.create("unchanged"))
        await world.clock.advance(60)
        await world.until(lambda: world.bundle == good)
        assert is_colocated(await world.create("job"))


async def test_an_api_server_that_is_away_at_the_start_is_waited_for(world):
    rule = world.faults.add(faults.Rule(faults.Refuse(503), resource="secrets"))
    starting = world.webhook()
    async with supervise.Supervisor("start") as supervisor:
        task = supervisor.spawn("enter", starting.__aenter__())
        await world.until(lambda: rule.met >= 2)
        assert not task.done()
        world.faults.clear()
        await world.until(task.done)
        running = task.result()
    try:
        await world.ready(running)
        assert is_colocated(await world.create("job"))
    finally:
        await starting.__aexit__(None, None, None)


async def test_a_profile_that_cannot_be_read_is_left_out(world):
    objects = world.server.state.objects
    broken = profile("broken", mark="broken", qosClass=7)
    objects.create(resources.COLOCATION_PROFILES, broken)
    async with world.webhook() as running:
        await world.ready(running)
        assert is_colocated(await world.create("job"))
        assert not is_colocated(await world.create("other", mark="broken"))


async def test_a_new_profile_counts_for_the_next_pod(world):
    async with world.webhook() as running:
        await world.ready(running)
        assert not is_colocated(await world.create("before", mark="new"))
        await world.api.post(PROFILES, profile("new", mark="new"))

        async def changed():
            return is_colocated(await world.create(f"p{next(serial)}", mark="new"))

        serial = iter(range(1000))
        assert await raw.eventually(changed)


async def test_an_unready_webhook_says_why(world):
    world.faults.add(faults.Rule(faults.Silence(), verb="watch", resource="clustercolocation*"))
    world.faults.add(faults.Rule(faults.Refuse(503), verb="list", resource="clustercolocation*"))
    async with world.webhook() as running:
        await asyncio.sleep(0)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{running.health_url}/readyz") as answer,
        ):
            assert answer.status == 503
            body = await answer.json()
        assert "clustercolocationprofiles" in body["failing"]["caches"]
        # The API server gets no answer and lets the pod pass.
        assert not is_colocated(await world.create("job"))


async def test_a_webhook_with_old_news_changes_pods_as_it_knows_and_warns(world):
    """The first watch breaks after its third event, and no other is allowed any more."""
    about = {"verb": "watch", "resource": "clustercolocation*"}
    world.faults.add(faults.Rule(faults.Break(after=3), times=1, **about))
    async with world.webhook() as running:
        await world.ready(running)
        world.faults.add(faults.Rule(faults.Refuse(503), **about))
        world.faults.add(faults.Rule(faults.Refuse(503), **about | {"verb": "list"}))
        for number in range(3):
            await world.api.post(PROFILES, profile(f"p{number}", mark="other"))

        def stale():
            return "not heard of for" in running.health.warnings().get("stale-caches", "")

        await world.until(stale, step=5.0)
        assert running.health.failing() == {}
        assert is_colocated(await world.create("job"))


async def test_the_live_switch_turns_admission_off_and_is_told(world):
    switches = resources.CONFIG_MAPS.path(NAMESPACE)
    async with world.webhook() as running:
        await world.ready(running)
        body = {"metadata": {"name": "koord-switches"}, "data": {"webhook": "off"}}
        await world.api.post(switches, body)

        def told():
            found = world.server.state.objects.get(resources.MUTATING_WEBHOOKS, "koord-webhook")
            return "off" in found["metadata"]["annotations"]["koord.sh/admission"]

        await world.until(told)
        assert not is_colocated(await world.create("job"))
        await world.api.delete(f"{switches}/koord-switches")
        await world.until(lambda: not told())
        assert is_colocated(await world.create("again"))


async def test_the_probe_says_whether_reviews_are_answered(world):
    for verb in ("list", "watch"):
        rule = faults.Rule(faults.Refuse(503), verb=verb, resource="clustercolocation*")
        world.faults.add(rule)
    async with world.webhook() as running:
        await world.until(lambda: not running.health.warnings().get("registration"))
        context = ssl.create_default_context(cadata=world.bundle.decode())

        async def probed():
            async with aiohttp.ClientSession() as session:
                url = f"{running.url}/readyz"
                async with session.get(url, ssl=context) as answer:
                    return answer.status

        assert await probed() == 503
        world.faults.clear()
        await world.ready(running)
        assert await probed() == 200


@pytest.mark.parametrize("path", ["/mutate-pod", "/validate-pod", "/convert"])
async def test_a_body_above_seven_mebibytes_is_refused(world, path):
    async with world.webhook() as running:
        await world.ready(running)
        context = ssl.create_default_context(cadata=world.bundle.decode())
        async with aiohttp.ClientSession() as session:
            for size, statuses in ((7 << 20, {400}), ((7 << 20) + 1, {413})):
                body = io.BytesIO(b" " * size)
                async with session.post(f"{running.url}{path}", data=body, ssl=context) as answer:
                    assert answer.status in statuses


async def test_an_api_server_is_asked_to_dial_again_after_a_minute(world):
    """Otherwise it would stay with the replicas that it knows, and never call one that is added."""
    async with world.webhook() as running:
        await world.ready(running)
        context = ssl.create_default_context(cadata=world.bundle.decode())
        connector = aiohttp.TCPConnector(limit=1, ssl=context)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def asked_to_leave():
                async with session.post(f"{running.url}/mutate-pod", data=b"{}") as answer:
                    return answer.headers.get("Connection") == "close"

            assert not await asked_to_leave()
            await world.clock.advance(25)
            assert not await asked_to_leave()
            await world.clock.advance(36)
            assert await asked_to_leave()
            assert not await asked_to_leave()
