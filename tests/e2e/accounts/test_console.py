"""The web console on a real API server: its tokens and its RBAC."""

import contextlib

import aiohttp
import pytest
import pytest_asyncio

from api import resources
from kube.client import access
from manager import app, settings
from process.runtime.clock import SystemClock
from tests.planes import definitions, raw

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]
HOME, TEAM, OTHER = "console-home", "console-team", "console-other"
KINDS = ("NodeMetric", "NodeSLO", "PodMigrationJob")


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(real_plane):
    """Two namespaces with a pod that waits in each, and an account that may list one of them."""
    async with raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api:
        await definitions.serve(api, *KINDS)
        for name in (HOME, TEAM, OTHER):
            await api.call("POST", resources.NAMESPACES.path(), {"metadata": {"name": name}})
        for name in (TEAM, OTHER):
            account = {"metadata": {"name": "default"}}
            await api.call("POST", resources.SERVICE_ACCOUNTS.path(name), account)
            spec = {
                "containers": [{"name": "c", "image": "i"}],
                "schedulerName": "nobody",
                "automountServiceAccountToken": False,
            }
            body = {"metadata": {"name": f"waits-{name}"}, "spec": spec}
            await api.post(resources.PODS.path(name), body)
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
        await api.post(resources.ROLES.path(TEAM), {"metadata": {"name": "see"}, "rules": [rule]})
        subject = {"kind": "ServiceAccount", "name": "default", "namespace": TEAM}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "see"}
        binding = {"metadata": {"name": "see"}, "roleRef": reference, "subjects": [subject]}
        await api.post(resources.ROLE_BINDINGS.path(TEAM), binding)
        try:
            yield api
        finally:
            for name in (TEAM, OTHER):
                query = {"gracePeriodSeconds": 0}
                await api.call("DELETE", resources.PODS.path(name, f"waits-{name}"), query)
            await api.call("DELETE", resources.ROLE_BINDINGS.path(TEAM, "see"))
            await api.call("DELETE", resources.ROLES.path(TEAM, "see"))


@contextlib.asynccontextmanager
async def console(plane):
    local = {"host": "127.0.0.1", "port": 0, "linger_seconds": 0.0}
    chosen = settings.Settings.model_validate(
        {
            "config_namespace": HOME,
            "controllers": ("-nodeslo", "-nodemetric"),
            "leader_election": {"namespace": HOME},
            "health": local,
            "console": {"enabled": True, "server": local},
        }
    )
    who = access.Access(plane.server, plane.ca, access.StaticToken(plane.token))
    async with app.running(chosen, access=who, clock=SystemClock()) as running:
        yield running.url


async def token(api, seconds=600):
    path = f"{resources.SERVICE_ACCOUNTS.path(TEAM, 'default')}/token"
    answer = await api.post(path, {"spec": {"expirationSeconds": seconds}})
    return answer["status"]["token"]


async def shown(session, url, path, bearer):
    headers = {"Authorization": f"Bearer {bearer}"}
    async with session.get(f"{url}{path}", headers=headers) as answer:
        return answer.status, await answer.json()


async def test_an_account_sees_what_its_role_lets_it_list(real_plane, cluster) -> None:
    bearer = await token(cluster)
    async with console(real_plane) as url, aiohttp.ClientSession() as session:
        found = {}

        async def listed():
            found.update((await shown(session, url, "/api/pending", real_plane.token))[1])
            return {TEAM, OTHER} <= {one["namespace"] for one in found["items"]}

        await raw.eventually(listed)
        status, body = await shown(session, url, "/api/pending", bearer)
        assert status == 200, body
        assert {one["namespace"] for one in body["items"]} == {TEAM}
        assert not body["everywhere"]
        status, body = await shown(session, url, f"/api/pending?namespace={OTHER}", bearer)
        assert status == 403
        status, body = await shown(session, url, "/api/nodes", bearer)
        assert body["error"] == f"system:serviceaccount:{TEAM}:default may not list nodes"
        head, _, rest = bearer.partition(".")
        for forged in (bearer[:-4] + "AAAA", f"{head}.e30.{rest}", "x.y.z"):
            status, body = await shown(session, url, "/api/pending", forged)
            assert status == 401, forged
