"""The webhook and the manager as processes of their own, reached through a Service."""

import asyncio
import base64
import contextlib
import re
import ssl
import time

from api import names, resources
from api.kubernetes.webhooks import webhook_configuration
from certs import issue, renewal, rotation
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from process.http import ports
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.install import policed
from tests.planes.processes import processes, services

PATIENCE = 60.0
NAMESPACE = names.NAMESPACE
USERS = "admission-test"
PODS = resources.PODS.path(USERS)
SERVICE = "koord-webhook"
DNS = f"{SERVICE}.{NAMESPACE}.svc"
SECRET = resources.SECRETS.path(NAMESPACE, "koord-webhook-certificates")
BOTH = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
LABEL = {"admission-test": "yes"}
PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": USERS},
    # By label alone, so that only the registration keeps it from other namespaces.
    "spec": {"selector": {"matchLabels": LABEL}, "schedulerName": "koord-test"},
}
NOWHERE = "240.0.0.1"


def pod(name, **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "labels": LABEL},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def is_changed(created):
    return created["spec"]["schedulerName"] == "koord-test"


class Stand:
    """What the tests look at and break."""

    def __init__(self, plane, api, webhook, manager, port, served):
        self.plane = plane
        self.api = api
        self.webhook = webhook
        self.manager = manager
        self.port = port
        self.served = served

    async def create(self, name):
        """Create a pod for good; returns it and how long that took."""
        started = time.monotonic()
        created = await self.api.post(PODS, pod(name))
        return created, time.monotonic() - started

    async def tried(self, namespace=USERS):
        """Whether a pod that is only tried would be changed."""
        path = resources.PODS.path(namespace)
        return is_changed(await self.api.post(path, pod("probe"), dryRun="All"))

    @property
    def log(self):
        """What the API server said so far."""
        return (self.plane.binaries.workdir / "kube-apiserver.log").read_text(errors="replace")

    def let_through(self, begin):
        """Why the API server has let pods through unasked since its log was so long."""
        return re.findall(r"failing open \S+?: (.*)", self.log[begin:])

    async def works(self):
        await raw.eventually(self.tried, PATIENCE)

    async def registered(self, resource=BOTH[0]):
        return await self.api.get(resource.path(name=SERVICE))

    async def wait(self, predicate):
        """Wait until both configurations satisfy a predicate."""
        for resource in BOTH:
            await self.api.wait_until(resource.path(name=SERVICE), predicate, PATIENCE)

    async def point(self, port=0, address=""):
        """Let the Service lead to the webhook, or elsewhere."""
        await services.point(self.api, NAMESPACE, SERVICE, port or self.port, address=address)

    async def kept(self):
        """What the Secret of the webhook keeps."""
        data = (await self.api.get(SECRET))["data"]
        return renewal.decode({name: base64.b64decode(text) for name, text in data.items()})

    async def keep(self, keep):
        """Write the Secret as a replica does that found something due."""
        files = renewal.encode(keep)
        data = {name: base64.b64encode(content).decode() for name, content in files.items()}
        old = (await self.api.get(SECRET))["data"]
        await self.api.patch(SECRET, {"data": {**dict.fromkeys(old), **data}})


def is_called(found):
    """Whether the API server calls what a configuration names."""
    return bool(found) and all(hook.get("rules") for hook in found.get("webhooks") or [{}])


def note(found):
    """The note of a withdrawal."""
    return webhook_configuration.withdrawal(found["metadata"].get("annotations") or {})


def bundle(found):
    return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])


def expired(keep):
    """A leaf of the authority in use that has ended."""
    signer = keep.authorities[keep.state.authorities[-1].id]
    yesterday = clocks.SystemClock().now() - 2 * issue.DAY
    return issue.leaf(signer, issue.Subject("webhook", dns=(DNS,)), yesterday, seconds=issue.DAY)


@contextlib.asynccontextmanager
async def serving(pair, folder):
    """A server with this certificate, on every address; yields its port."""
    file = folder / "expired.pem"
    file.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)

    async def hang_up(_reader, writer):
        writer.close()

    server = await asyncio.start_server(hang_up, "0.0.0.0", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


def with_authority(keep):
    """The same with one more authority in the bundle."""
    now = clocks.SystemClock().now()
    pair = issue.authority("koord-next", now)
    name = issue.read(pair.certificate).serial_number.to_bytes(20, "big").hex()[:16]
    authority = rotation.Authority(name, now - 60, now + issue.AUTHORITY_SECONDS, now)
    state = rotation.published(keep.state, authority)
    return renewal.Keep(state, {**keep.authorities, name: pair}, keep.leaves)


def with_leaf(keep):
    """The same with a leaf signed by the newest authority."""
    now = clocks.SystemClock().now()
    newest = keep.state.authorities[-1].id
    pair = issue.leaf(keep.authorities[newest], issue.Subject("webhook", dns=(DNS,)), now)
    leaf = rotation.Leaf("webhook", newest, now - 60, now + issue.LEAF_SECONDS)
    state = rotation.signed(keep.state, leaf)
    return renewal.Keep(state, keep.authorities, {**keep.leaves, "webhook": pair})


def without_old(keep):
    """The same with the newest authority alone in the bundle."""
    state = keep.state
    for one in state.authorities[:-1]:
        state = rotation.withdrawn(state, one.id)
    newest = state.authorities[-1].id
    return renewal.Keep(state, {newest: keep.authorities[newest]}, keep.leaves)


async def _prepare(plane, api):
    clock = clocks.SystemClock()
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    async with clients.Client(access, clock=clock, user_agent="user") as kube:
        await apply.definitions(kube, clock)
    for name in (NAMESPACE, USERS):
        await policed.namespace(api, name)
    await api.call("POST", resources.COLOCATION_PROFILES.path(), PROFILE)


async def _clear(api):
    for resource in BOTH:
        await api.call("DELETE", resource.path(name=SERVICE))
    await api.call("DELETE", resources.COLOCATION_PROFILES.path(name=USERS))
    await api.call("DELETE", SECRET)
    await api.call("DELETE", resources.SERVICES.path(NAMESPACE, SERVICE))
    await api.call("DELETE", resources.CONFIG_MAPS.path(NAMESPACE, names.CONFIG_MAP_SWITCHES))
    await api.call("DELETE", f"{PODS}", query={"gracePeriodSeconds": "0"})
    await api.call("DELETE", resources.NAMESPACES.path(name=USERS))


@contextlib.asynccontextmanager
async def standing(plane, api, folder, *flags):
    """Both processes, ready and registered; nothing of them is left afterwards.

    `flags` are further settings of the webhook.
    """
    address = services.own_address()
    (port,) = ports.take(1)
    served = folder / "served"
    place = (folder, "webhook", "webhook", plane.server, plane.ca, plane.token)
    webhook = processes.Process(
        *place,
        f"--server.port={port}",
        *("--server.announce_seconds=0", "--server.linger_seconds=0.2"),
        f"--certificates.folder={served}",
        "--certificates.look_seconds=1",
        *flags,
        serves=False,
    )
    manager = processes.Process(
        *(folder, "manager", "manager", plane.server, plane.ca, plane.token),
        f"--leader_election.name={USERS}",
        f"--admission.probe_url=https://{address}:{port}",
        *("--admission.probe_seconds=1", "--admission.period_seconds=0.5"),
        *("--admission.away_seconds=4", "--admission.back_seconds=0.5"),
        '--controllers=["registration", "admission"]',
        serves=False,
    )
    stand = Stand(plane, api, webhook, manager, port, served)
    try:
        await _prepare(plane, api)
        await stand.point()
        async with processes.running(webhook), processes.running(manager):
            await stand.wait(is_called)
            await stand.works()
            yield stand
    finally:
        await _clear(api)
