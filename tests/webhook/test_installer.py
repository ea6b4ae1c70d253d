"""The certificate in its Secret and the two configuration objects, on the embedded API server."""

import asyncio
import base64

import pytest
from cryptography import x509

from api import names, resources
from api.kubernetes.webhooks import webhook_configuration
from api.wire import durations
from certs import issue
from kube.client import access as accesses
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator.apiserver import apiserver
from tests import patience
from webhook import settings as webhook_settings
from webhook.registration import installer

NAMESPACE = "koordinator-system"
SECRET = "koord-webhook-certificates"
DAY = 24 * 3600.0
URL = "https://127.0.0.1:1"


@pytest.fixture
def clock():
    return clocks.ManualClock(clocks.SystemClock().now())


@pytest.fixture
async def server():
    async with apiserver.running(clock=clocks.SystemClock()) as running:
        running.state.objects.create(resources.NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield running


@pytest.fixture
async def kube(server):
    access = accesses.Access(server.url, server.ca, accesses.StaticToken(server.token))
    async with clients.Client(
        access, clock=clocks.SystemClock(), user_agent="koord-webhook"
    ) as client:
        yield client


@pytest.fixture
def replica(kube, clock, tmp_path):
    """Build an installer with a folder of its own."""

    def build(name="one", **registration):
        certificates = webhook_settings.CertificateSettings(
            names=("127.0.0.1",), folder=tmp_path / name
        )
        options = webhook_settings.RegistrationSettings(url=URL, **registration)
        return installer.Installer(kube, clock, NAMESPACE, certificates, options)

    build.folder = tmp_path
    return build


def served(folder):
    return x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())


def hooks(server, resource):
    return server.state.objects.get(resource, "koord-webhook")["webhooks"]


def bundle(hook):
    return base64.b64decode(hook["clientConfig"]["caBundle"])


BOTH = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)


async def test_the_certificate_is_kept_in_the_secret(server, replica):
    one = replica()
    await one.first()
    secret = server.state.objects.get(resources.SECRETS, SECRET, NAMESPACE)
    data = {name: base64.b64decode(text) for name, text in secret["data"].items()}
    assert data["webhook.crt"] == (replica.folder / "one" / "tls.crt").read_bytes()
    assert data["bundle.crt"] == one.bundle
    # The key of the authority stays in the Secret.
    found = {file.name for file in (replica.folder / "one").iterdir()}
    assert found == {"tls.crt", "tls.key"}
    assert (replica.folder / "one" / "tls.key").stat().st_mode & 0o077 == 0


async def test_two_replicas_agree_on_one_certificate(replica):
    one, two = replica("one"), replica("two")
    await asyncio.gather(one.first(), two.first())
    assert one.bundle == two.bundle
    assert served(replica.folder / "one") == served(replica.folder / "two")


async def test_both_objects_name_every_route_and_the_bundle(server, replica):
    one = replica()
    await one.certificate()
    await one.register()
    for resource in BOTH:
        for hook in hooks(server, resource):
            assert bundle(hook) == one.bundle
            assert hook["clientConfig"]["url"].startswith(f"{URL}/")
            assert hook["failurePolicy"] == "Ignore"
    # A pod waits for one after the other.
    times = [
        hook["timeoutSeconds"]
        for resource in BOTH
        for hook in hooks(server, resource)
        if hook["name"] in ("mpod.koordinator.sh", "vpod.koordinator.sh")
    ]
    assert sum(times) == 3
    assert min(times) >= 1


async def test_what_is_right_is_not_written_again(server, replica):
    one = replica()
    await one.certificate()
    await one.register()
    before = server.state.objects.version
    await one.certificate()
    await one.register()
    assert server.state.objects.version == before


@pytest.mark.parametrize("resource", BOTH, ids=lambda resource: resource.plural)
async def test_an_overwritten_bundle_is_repaired(server, kube, replica, resource):
    one = replica()
    await one.certificate()
    await one.register()
    foreign = issue.authority("foreign", clocks.SystemClock().now()).certificate
    path = "/webhooks/0/clientConfig/caBundle"
    body = [{"op": "replace", "path": path, "value": base64_of(foreign)}]
    await kube.patch(resource, "koord-webhook", body, kind=clients.Patch.JSON)
    assert bundle(hooks(server, resource)[0]) == foreign
    await one.register()
    assert bundle(hooks(server, resource)[0]) == one.bundle


async def test_a_deleted_object_comes_back(server, kube, replica):
    one = replica()
    await one.certificate()
    await one.register()
    await kube.delete(resources.MUTATING_WEBHOOKS, "koord-webhook")
    await one.register()
    assert hooks(server, resources.MUTATING_WEBHOOKS)


def rules(server, resource):
    return [hook.get("rules") for hook in hooks(server, resource)]


async def withdraw(kube, server, resource, *, until):
    """Do what the manager does when nobody answers."""
    note = webhook_configuration.Withdrawal(
        durations.moment(0), durations.moment(until), "test", {"x": rules(server, resource)[0]}
    )
    bare = [{k: v for k, v in hook.items() if k != "rules"} for hook in hooks(server, resource)]
    annotations = {names.ANNOTATION_WITHDRAWN: webhook_configuration.text(note)}
    body = {"metadata": {"annotations": annotations}, "webhooks": bare}
    await kube.patch(resource, "koord-webhook", body)


@pytest.mark.parametrize("resource", BOTH, ids=lambda resource: resource.plural)
async def test_a_withdrawal_is_respected_and_the_bundle_kept_true(
    server, kube, clock, replica, resource
):
    one = replica()
    await one.certificate()
    await one.register()
    await withdraw(kube, server, resource, until=clock.now() + 600)
    one.bundle = issue.authority("next", clock.now()).certificate
    await one.register()
    assert not any(rules(server, resource))
    assert bundle(hooks(server, resource)[0]) == one.bundle
    before = server.state.objects.version
    await one.register()
    assert server.state.objects.version == before


@pytest.mark.parametrize("resource", BOTH, ids=lambda resource: resource.plural)
async def test_a_withdrawal_that_nobody_renews_ends(server, kube, clock, replica, resource):
    one = replica()
    await one.certificate()
    await one.register()
    wanted = rules(server, resource)
    await withdraw(kube, server, resource, until=clock.now() + 600)
    clock.jump(601)
    await one.register()
    assert rules(server, resource) == wanted
    found = server.state.objects.get(resource, "koord-webhook")
    assert names.ANNOTATION_WITHDRAWN not in found["metadata"]["annotations"]


async def test_what_a_person_withdrew_is_left_alone(server, kube, replica):
    one = replica()
    await one.certificate()
    await one.register()
    note = {names.ANNOTATION_WITHDRAWN: "maintenance, ask Ada"}
    body = {"metadata": {"annotations": note}, "webhooks": []}
    await kube.patch(resources.MUTATING_WEBHOOKS, "koord-webhook", body)
    await one.register()
    assert hooks(server, resources.MUTATING_WEBHOOKS) == []
    body = {"metadata": {"annotations": {names.ANNOTATION_WITHDRAWN: None}}}
    await kube.patch(resources.MUTATING_WEBHOOKS, "koord-webhook", body)
    await one.register()
    assert all(rules(server, resources.MUTATING_WEBHOOKS))


async def test_a_withdrawal_in_between_is_not_overruled(server, kube, clock, replica):
    one = replica()
    await one.certificate()
    await one.register()
    stale = server.state.objects.get(resources.MUTATING_WEBHOOKS, "koord-webhook")
    await withdraw(kube, server, resources.MUTATING_WEBHOOKS, until=clock.now() + 600)

    class Late:
        """Reads what was there before the withdrawal."""

        patch = kube.patch

        async def get(self, *_):
            return {**stale, "webhooks": []}

    one._client = Late()
    with pytest.raises(errors.Conflict):
        await one.register()
    assert not any(rules(server, resources.MUTATING_WEBHOOKS))


async def test_how_reviews_are_answered_is_told(server, replica):
    one = replica()
    await one.certificate()
    one.answering = lambda: webhook_configuration.Answering("observe", ("A",))
    await one.register()
    found = server.state.objects.get(resources.MUTATING_WEBHOOKS, "koord-webhook")
    told = webhook_configuration.answering(found["metadata"]["annotations"])
    assert told == webhook_configuration.Answering("observe", ("A",))


async def test_a_leaf_is_renewed_at_two_thirds_of_its_life(clock, replica):
    one = replica()
    await one.certificate()
    first = served(replica.folder / "one")
    clock.jump(59 * DAY)
    await one.certificate()
    assert served(replica.folder / "one") == first
    clock.jump(2 * DAY)
    await one.certificate()
    renewed = served(replica.folder / "one")
    assert renewed.not_valid_after_utc > first.not_valid_after_utc
    # Signed by the same authority: whoever has the old bundle trusts the new leaf.
    assert renewed.issuer == first.issuer


async def test_an_expired_leaf_is_replaced(clock, replica):
    one = replica()
    await one.certificate()
    clock.jump(120 * DAY)
    await one.certificate()
    assert served(replica.folder / "one").not_valid_after_utc.timestamp() > clock.now()


async def test_another_replica_takes_the_renewed_leaf_over(clock, replica):
    one, two = replica("one"), replica("two")
    await one.certificate()
    await two.certificate()
    clock.jump(61 * DAY)
    await one.certificate()
    await two.certificate()
    assert served(replica.folder / "one") == served(replica.folder / "two")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"rotation.json": b"{"}, id="the record is no JSON"),
        pytest.param({"webhook.crt": b"junk"}, id="the leaf is junk"),
        pytest.param({"webhook.key": b""}, id="the key is empty"),
        pytest.param(None, id="everything is gone"),
    ],
)
async def test_an_unreadable_secret_is_issued_anew(server, kube, replica, damage):
    one = replica()
    await one.certificate()
    before = served(replica.folder / "one")
    data = {"rotation.json": None} if damage is None else damage
    texts = {name: None if value is None else base64_of(value) for name, value in data.items()}
    await kube.patch(resources.SECRETS, SECRET, {"data": texts}, namespace=NAMESPACE)
    again = replica("again")
    await again.certificate()
    renewed = served(replica.folder / "again")
    assert renewed.serial_number != before.serial_number
    assert renewed.issuer == x509.load_pem_x509_certificates(again.bundle)[-1].subject


async def test_a_certificate_of_somebody_else_is_used_as_it_is(server, kube, clock, tmp_path):
    authority = issue.authority("theirs", clock.now())
    file = tmp_path / "ca.crt"
    file.write_bytes(authority.certificate)
    certificates = webhook_settings.CertificateSettings(
        names=("127.0.0.1",), folder=tmp_path / "unused", authority_file=file
    )
    options = webhook_settings.RegistrationSettings(url=URL)
    one = installer.Installer(kube, clock, NAMESPACE, certificates, options)
    await one.certificate()
    await one.register()
    assert bundle(hooks(server, resources.MUTATING_WEBHOOKS)[0]) == authority.certificate
    assert server.state.objects.find(resources.SECRETS, SECRET, NAMESPACE) is None
    assert not (tmp_path / "unused").exists()


@pytest.mark.parametrize("lost", ["authority", "folder"])
async def test_files_that_are_gone_for_a_moment_end_nothing(kube, clock, tmp_path, lost):
    """A mounted authority is rotated by swapping folders; a full disk takes no certificate."""
    file, folder = tmp_path / "ca.crt", tmp_path / "served"
    file.write_bytes(issue.authority("theirs", clock.now()).certificate)
    chosen = {"authority_file": file} if lost == "authority" else {}
    certificates = webhook_settings.CertificateSettings(
        names=("127.0.0.1",), folder=folder, look_seconds=60, **chosen
    )
    options = webhook_settings.RegistrationSettings(url=URL, enabled=False)
    one = installer.Installer(kube, clock, NAMESPACE, certificates, options)
    async with supervise.Supervisor("test") as tasks:
        tasks.start("install", lambda: one.run(URL))
        while one.problem is not None:
            await clock.settle()
        if lost == "authority":
            file.rename(tmp_path / "away")
        else:
            folder.rename(tmp_path / "away")
            folder.write_text("no folder")
        await _looks(clock, lambda: one.problem is not None)
        (folder if lost == "folder" else file).unlink(missing_ok=True)
        (tmp_path / "away").rename(folder if lost == "folder" else file)
        await _looks(clock, lambda: one.problem is None)


async def _looks(clock, condition):
    """Let time pass until a look of the installer has come to something."""
    await patience.until(condition, lambda: clock.advance(clock.next_wake or 0))


async def test_without_registration_nothing_is_registered(server, clock, replica):
    one = replica(enabled=False)
    running = asyncio.gather(one.run(URL))
    await clock.advance(0)
    while one.problem is not None:
        await clock.settle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert server.state.objects.find(resources.MUTATING_WEBHOOKS, "koord-webhook") is None


def base64_of(content):
    return base64.b64encode(content).decode()


@pytest.mark.parametrize(
    ("wanted", "present", "answer"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, True, id="more is there"),
        pytest.param({"a": 1}, {"a": 2}, False, id="another value"),
        pytest.param({"a": {"b": 1}}, {"a": None}, False, id="no mapping"),
        pytest.param([1, 2], [1], False, id="shorter"),
        pytest.param([1], None, False, id="no list"),
        pytest.param([{"a": 1}], [{"a": 1, "c": 3}], True, id="more in an element"),
    ],
)
def test_only_what_is_wanted_matters(wanted, present, answer):
    assert installer.holds(wanted, present) is answer
