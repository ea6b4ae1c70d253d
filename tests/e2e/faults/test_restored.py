"""etcd is restored from a backup while everything runs: the product resumes from API objects alone.

What was written after the backup is gone, and versions begin again where they were then.
"""

import asyncio
import json
import shutil

import aiohttp
import pytest
import pytest_asyncio

from api import names, resources
from cli.dev import all_in_one
from extender import settings as extender_settings
from kube.client import access as accesses
from process.runtime import clock as clocks
from tests.planes import invariants, raw
from tests.planes.stage import LONG, PATIENCE

pytestmark = [pytest.mark.disturbs, LONG]

SETTINGS = resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SLO)
BEFORE, AFTER, LAST = 61, 71, 81
# Backups are hours old: versions are reached again long after everybody is connected again.
LATER, AT_ONCE = 240, 24
# Nobody reports here.
LOADED = {"filter_expired_node_metrics": False}


class Backups:
    """Copies of what etcd has stored."""

    def __init__(self, binaries, folder):
        self._binaries = binaries
        self._stored, self._copy = binaries.workdir / "etcd", folder / "backup"

    async def take(self):
        await self._binaries.kill("etcd")
        shutil.copytree(self._stored, self._copy)
        await self._binaries.restart("etcd")

    async def restore(self):
        """Do what the manual of Kubernetes says: stop the API servers, restore, start again.

        The caller stops the controllers: other tests need them, and this one does not.
        """
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            await self._binaries.kill(name)
        shutil.rmtree(self._stored)
        shutil.copytree(self._copy, self._stored)
        for name in ("etcd", "kube-apiserver"):
            await self._binaries.restart(name)


class Scene:
    """One corner of the cluster, and what each process makes of it."""

    def __init__(self, here, system):
        self.here, self.api, self.system = here, here.api, system
        self.profile = here.name("restored")

    async def profiled(self):
        """Create the profile that pods of the test follow."""
        document = {
            "apiVersion": "config.koordinator.sh/v1alpha1",
            "kind": "ClusterColocationProfile",
            "metadata": {"name": self.profile},
            "spec": {"selector": {"matchLabels": {"restored": "yes"}}, "qosClass": "LS"},
        }
        await self.api.post(resources.COLOCATION_PROFILES.path(), document)

    async def threshold(self, percent):
        """Change the cluster settings that nodes get."""
        text = {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": percent}}
        await self.api.patch(SETTINGS, {"data": {"resource-threshold-config": json.dumps(text)}})

    async def go_on(self):
        """Write what changes no decision, so that versions go on."""
        paths = [resources.COLOCATION_PROFILES.path(name=self.profile)]
        paths += [resources.NODES.path(name=self.here.nodes[0])]

        async def write(first):
            for number in range(first, LATER, AT_ONCE):
                body = {"metadata": {"annotations": {"turn": str(number)}}}
                await self.api.patch(paths[number % 2], body)

        await asyncio.gather(*map(write, range(AT_ONCE)))

    async def follows(self, node, percent):
        """The manager has told the node."""

        def told(found):
            said = (found or {}).get("spec", {}).get("resourceUsedThresholdWithBE") or {}
            return said.get("cpuSuppressThresholdPercent") == percent

        await self.api.wait_until(resources.NODE_SLOS.path(name=node), told, PATIENCE)

    async def admits(self, priority):
        """The webhook has pods follow the profile that there is, and none where there is none."""

        async def changed():
            body = self.here.pod_body("dry", labels={"restored": "yes"})
            pod = await self.api.post(self.here.path("pods"), body, dryRun="All")
            return pod["metadata"]["labels"].get("koordinator.sh/qosClass") == priority

        await raw.eventually(changed, PATIENCE)

    async def counts(self, node):
        """The extender counts on the node what the API server says."""
        url = f"{self.system.extender.health_url}/debug/picture?node={node}"
        found = []

        async def equal():
            pods = (await self.api.get("/api/v1/pods"))["items"]
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                found[:] = invariants.drifted(json.loads(await answer.text()), pods)
            return not found

        try:
            await raw.eventually(equal, PATIENCE)
        except TimeoutError:
            raise AssertionError(f"the extender counts otherwise: {found}") from None


@pytest_asyncio.fixture(loop_scope="session")
async def scene(stage, tmp_path):
    """Everything but the agents, with the shipped settings wherever a test can wait for them."""
    plane, local = stage.plane, all_in_one.local()
    extender = {"server": local, "health": local, "plugins": {"load_aware": LOADED}}
    options = all_in_one.Options(
        tmp_path, extender=extender_settings.Settings.model_validate(extender)
    )
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    async with all_in_one.running(options, access=access, clock=clocks.SystemClock()) as system:
        yield Scene(stage, system)
        for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
            await stage.api.delete(resource.path(name="koord-webhook"))
        await plane.binaries.restart("kube-controller-manager")


async def test_everything_goes_on_from_the_backup(scene, stage, tmp_path):
    backups = Backups(stage.plane.binaries, tmp_path)
    await stage.plane.start_scheduler(scene.system.extender.url)
    node = await stage.node("n", cpu="4")
    await scene.profiled()
    await scene.threshold(BEFORE)
    await stage.pod("early", requests={"cpu": "3"})
    await stage.all_bound("early")
    await scene.follows(node, BEFORE)
    await scene.admits("LS")
    await backups.take()

    await scene.go_on()
    await stage.remove("early")
    await stage.pod("late", requests={"cpu": "4"})
    await stage.all_bound("late")
    await scene.threshold(AFTER)
    await scene.follows(node, AFTER)
    await stage.api.delete(resources.COLOCATION_PROFILES.path(name=scene.profile))
    await scene.admits(None)
    await scene.counts(node)
    await stage.plane.stop_scheduler()
    await backups.restore()

    await scene.admits("LS")
    await scene.counts(node)
    await scene.follows(node, BEFORE)
    # The manager reads what is written from now on, and not what it had read before.
    await scene.threshold(LAST)
    await scene.follows(node, LAST)
    await stage.plane.start_scheduler(scene.system.extender.url)
    # One core is left beside the pod that is back.
    await stage.pod("fits", requests={"cpu": "1"})
    await stage.all_bound("fits")
    await stage.pod("whale", requests={"cpu": "2"})
    await stage.refused("whale", "Insufficient cpu", timeout=PATIENCE)
