"""The settings of the cluster on their way: admitted or refused, read or reported, enforced."""

import contextlib
import json

import pytest_asyncio

from api import names, resources
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from manager import app as manager_app
from manager import settings as manager_settings
from process.runtime import clock as clocks
from tests.planes import raw
from webhook import app as webhook_app
from webhook import settings as webhook_settings

PATIENCE = 60.0
THRESHOLD, BURST = "resource-threshold-config", "cpu-burst-config"
GOLD = {"settings-pool": "gold"}
ENTRY = {
    "name": "gold",
    "nodeSelector": {"matchLabels": GOLD},
    "cpuSuppressThresholdPercent": 75,
    "memoryEvictThresholdPercent": 80,
    "memoryEvictLowerPercent": 78,
}
GOOD = {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60}}
BAD = {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 101}}
PATH = "resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent"
HOOKS = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
SERVED = {"host": "127.0.0.1", "port": 0, "linger_seconds": 0.0, "drain_seconds": 0.0}


class Stand:
    """A namespace that holds settings, and the two processes that look at them."""

    def __init__(self, here, access, folder):
        self.here = here
        self.api = here.api
        self.path = here.path("configmaps", names.CONFIG_MAP_SLO)
        self._access = access
        self._folder = folder
        self._hook = here.name("webhook")

    @contextlib.asynccontextmanager
    async def webhook(self):
        """The webhook, registered for this namespace alone; withdrawn at the end."""
        chosen = webhook_settings.Settings.model_validate(
            {
                "namespace": self.here.namespace,
                "server": {**SERVED, "announce_seconds": 0.0},
                "health": SERVED,
                "certificates": {"names": ("127.0.0.1",), "folder": self._folder},
                "registration": {"name": self._hook, "url": "self"},
                "feature_gates": {
                    "ConfigMapValidatingWebhook": True,
                    "PodMutatingWebhook": False,
                    "PodValidatingWebhook": False,
                },
            }
        )
        clock = clocks.SystemClock()
        try:
            async with webhook_app.running(chosen, access=self._access, clock=clock) as running:
                yield running
        finally:
            for resource in HOOKS:
                await self.api.call("DELETE", resource.path(name=self._hook))

    @contextlib.asynccontextmanager
    async def manager(self):
        chosen = manager_settings.Settings(
            config_namespace=self.here.namespace,
            controllers=("nodeslo",),
            leader_election=manager_settings.LeaderElectionSettings(enabled=False),
            health=manager_settings.HealthSettings(host="127.0.0.1", port=0),
        )
        clock = clocks.SystemClock()
        async with manager_app.running(chosen, access=self._access, clock=clock) as running:
            yield running

    async def write(self, *, tried=False, **keys):
        """Write the settings as an administrator does; returns the answer."""
        data = {name.replace("_", "-"): json.dumps(value) for name, value in keys.items()}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.CONFIG_MAP_SLO},
            "data": data,
        }
        query = {"fieldManager": "admin", "force": "true", **({"dryRun": "All"} if tried else {})}
        return await self.api.call("PATCH", self.path, body, query=query, kind=raw.APPLY_PATCH)

    async def refused(self):
        """Wait until the API server asks the webhook; returns the refusal of bad settings."""

        async def asked():
            answer = await self.write(tried=True, resource_threshold_config=BAD)
            return answer if answer.status >= 400 else None

        return await raw.eventually(asked, PATIENCE)

    async def enforced(self, node, predicate):
        """Wait for what a node is told to enforce; returns its thresholds."""
        slo = resources.NODE_SLOS.path(name=node)

        def met(found):
            return found and predicate(found["spec"])

        found = await self.api.wait_until(slo, met, PATIENCE)
        return found["spec"]["resourceUsedThresholdWithBE"]


@pytest_asyncio.fixture(loop_scope="session")
async def stand(plane, here, tmp_path):
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    clock = clocks.SystemClock()
    async with clients.Client(access, clock=clock, user_agent="admin") as kube:
        await apply.definitions(kube, clock)
    yield Stand(here, access, tmp_path / "served")
    for name in here.nodes:
        await here.api.call("DELETE", resources.NODE_SLOS.path(name=name))


async def test_bad_settings_are_refused_and_reported_where_they_are_forced(stand):
    plain = await stand.here.node("plain")
    gold = await stand.here.node("gold", labels=GOLD)
    async with stand.webhook():
        refusal = await stand.refused()
        assert f"{PATH}: is 101, must be in 0..100" in refusal.message
        settings = {**GOOD, "nodeStrategies": [ENTRY]}
        assert (await stand.write(resource_threshold_config=settings)).status in (200, 201)
        stored = await stand.api.get(stand.path)
        assert (await stand.write(resource_threshold_config=BAD)).status == refusal.status
        assert (await stand.api.get(stand.path))["data"] == stored["data"]

    async with stand.manager() as running:
        # By hand: the entry over the cluster over the defaults.
        lent = await stand.enforced(gold, lambda spec: spec["resourceUsedThresholdWithBE"])
        assert lent == {
            "enable": True,
            "cpuSuppressThresholdPercent": 75,
            "cpuSuppressPolicy": "cpuset",
            "memoryEvictThresholdPercent": 80,
            "memoryEvictLowerPercent": 78,
            "cpuEvictPolicy": "evictByRealLimit",
        }
        lent = await stand.enforced(plain, lambda spec: spec["resourceUsedThresholdWithBE"])
        assert (lent["cpuSuppressThresholdPercent"], lent["memoryEvictThresholdPercent"]) == (
            60,
            70,
        )

        # Nobody is asked any more, so that the bad value gets in, together with a good one.
        burst = {"clusterStrategy": {"policy": "auto"}}
        forced = await stand.write(resource_threshold_config=BAD, cpu_burst_config=burst)
        assert forced.status == 200, forced.message
        for node, percent in ((gold, 75), (plain, 60)):
            kept = await stand.enforced(
                node, lambda spec: spec["cpuBurstStrategy"]["policy"] == "auto"
            )
            assert kept["cpuSuppressThresholdPercent"] == percent
        place = {"key": THRESHOLD, "path": PATH, "effect": "kept"}
        assert running.registry.value("koord_manager_settings_faults", place) == 1
        told = await raw.eventually(lambda: reported(stand), PATIENCE)
        assert f"{PATH}: is 101, must be in 0..100" in told["note"]

        # Put right, it is followed again, and the report ends.
        assert (await stand.write(resource_threshold_config=GOOD)).status == 200
        await stand.enforced(
            gold,
            lambda spec: spec["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"] == 60,
        )
        assert running.registry.value("koord_manager_settings_faults", place) is None


async def reported(stand):
    events = await stand.here.events(names.CONFIG_MAP_SLO)
    return next((e for e in events if e["reason"] == "SLOCfgUnmarshalFailed"), None)
