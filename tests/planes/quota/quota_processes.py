"""Extender, webhook and manager as processes of their own, that share out quota and are killed."""

import contextlib
import json

from api import names, resources
from tests.planes import raw
from tests.planes.processes import gate
from tests.planes.stage import LEASE_PATH, PATIENCE

LEASE = resources.LEASES.path(names.NAMESPACE, "koordinator-manager")
QUOTAS = "/apis/v1/plugins/ElasticQuota/quotas"
SECRET = resources.SECRETS.path(names.NAMESPACE, "koord-webhook-certificates")
MANAGER = (
    "--leader_election.lease_seconds=3",
    "--leader_election.renew_seconds=2",
    "--leader_election.retry_seconds=0.5",
    '--controllers=["quotastatus"]',
)


class System:
    """What runs, by name; each of them calls the API server through a gate of its own."""

    def __init__(self, stage, pair, uplink, folder, *webhooks):
        self.stage, self.pair = stage, pair
        self.extender, self.uplink = pair.extender, uplink
        self.manager = stage.process(
            "manager-a", "manager", *MANAGER, server=uplink.url, serves=False
        )
        flags = webhooks or ("--registration.url=self", '--certificates.names=["127.0.0.1"]')
        self.webhook = stage.process("webhook-a", "webhook", *flags, *serving(folder / "webhook-a"))
        self.gates = {"extender": pair.uplink, "manager": uplink}

    async def start(self):
        """Start all of them, and the scheduler last."""
        for process in (self.webhook, self.manager):
            await process.start()
        for process in (self.webhook, self.manager):
            await process.ready()
        await self.pair.schedule(bind_timeout_seconds=3)

    async def die(self, name):
        """Kill a process: what it had not sent is never sent."""
        if (held := self.gates.get(name)) is not None:
            held.hang_up()
        await getattr(self, name).kill()

    async def replace(self, name):
        """Kill a process, and start another one at once, as a kubelet does."""
        await self.die(name)
        await getattr(self, name).start()

    async def ready(self):
        """Wait until all of them are ready."""
        for process in (self.extender, self.manager, self.webhook):
            await process.ready()

    async def knows(self, *quotas):
        """Tell whether the extender knows these quotas."""
        found = {one["name"] for one in await self.figures()}
        return found.issuperset(quotas)

    async def figures(self):
        """What the extender counts for every quota; nothing while it does not answer."""
        status, text = await self.extender.page(QUOTAS)
        return json.loads(text) if status == 200 else []


def serving(folder):
    """How a webhook serves on this machine."""
    return (
        "--server.host=127.0.0.1",
        *("--server.announce_seconds=0", "--server.linger_seconds=0.2"),
        *(f"--certificates.folder={folder}", "--certificates.look_seconds=1"),
    )


@contextlib.asynccontextmanager
async def running(stage, folder):
    """All of them on a stage; the control plane is left as it was."""
    for path in (LEASE, LEASE_PATH):
        await stage.api.call("DELETE", path)
    async with gate.opened(stage.plane.server, stage.plane.ca) as uplink:
        system = System(stage, await stage.pair("a"), uplink, folder)
        try:
            await system.start()
            yield system
        finally:
            for name in ("webhook", "manager", "extender"):
                await system.die(name)
            await stage.api.call("DELETE", SECRET)


async def led(system):
    """Wait until the manager leads."""

    async def says_so():
        return await system.manager.figure("koord_lease_leading") == 1

    await raw.eventually(says_so, PATIENCE)
