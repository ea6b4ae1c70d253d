"""A cluster whose users may read different things, and the console of a manager in front of it."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from api import names, resources
from kube.client import access, client
from manager.settings import ConsoleServerSettings, ConsoleSettings
from simulator.apiserver import apiserver
from simulator.apiserver.http import requests
from tests.manager import conftest as manager_world
from tests.planes import definitions

ADMIN, ANYONE, TEAM, MANAGER = "admin-token", "anyone-token", "team-token", "manager-token"
TOKENS = {
    ADMIN: requests.User("admin", ("system:masters",)),
    ANYONE: requests.User("anyone"),
    TEAM: requests.User("team-a"),
}
VIEWER = "system:serviceaccount:koordinator-system:viewer"


class Rights:
    """Who may do what: users in `all` everything, others what `granted` names."""

    def __init__(self) -> None:
        self.all = {"admin"}
        self.granted: set[tuple[str, str, str]] = set()
        """User, resource and namespace; an empty namespace stands for all of them."""
        self.asked: list[tuple[str, requests.Attributes]] = []

    def grant(self, user: str, resource: resources.Resource, namespace: str = "") -> None:
        self.granted.add((user, resource.plural, namespace))

    def allows(self, user: requests.User, asked: requests.Attributes) -> bool:
        self.asked.append((user.name, asked))
        if user.name in self.all:
            return True
        wanted = {(user.name, asked.resource, place) for place in ("", asked.namespace)}
        return asked.verb in ("get", "list") and bool(wanted & self.granted)


@dataclasses.dataclass
class Console:
    """What browsers see."""

    url: str
    world: manager_world.World
    rights: Rights
    session: aiohttp.ClientSession

    async def get(self, path: str, token: str = ADMIN, **headers: str) -> tuple[int, Any]:
        """Ask for a document as the owner of a token."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        async with self.session.get(f"{self.url}{path}", headers=headers) as answer:
            if answer.content_type == "application/json":
                return answer.status, await answer.json()
            return answer.status, await answer.text()

    async def shown(self, path: str, token: str = ADMIN) -> Any:
        """Return a document that must be there."""
        status, body = await self.get(path, token)
        assert status == 200, body
        return body


@pytest.fixture
def rights() -> Rights:
    return Rights()


@pytest.fixture
async def world(clock: Any, rights: Rights) -> AsyncIterator[manager_world.World]:
    """A cluster that asks `rights` about everybody."""
    options = apiserver.Options(tokens=TOKENS, authorizer=rights, encrypted=False)
    async with apiserver.running(clock=clock, options=options) as plane:
        who = access.Access(plane.url, plane.ca, access.StaticToken(ADMIN))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            await definitions.store(plane, admin, {*manager_world.KINDS, "PodMigrationJob"})
            await admin.create(resources.NAMESPACES, {"metadata": {"name": names.NAMESPACE}})
            for name in ("team-a", "team-b"):
                await admin.create(resources.NAMESPACES, {"metadata": {"name": name}})
            yield manager_world.World(plane, admin, clock)


@pytest.fixture
def opened(world: manager_world.World, rights: Rights) -> Any:
    """Start a manager with a console, with settings of the console."""

    @contextlib.asynccontextmanager
    async def start(**changed: Any) -> AsyncIterator[Console]:
        server = ConsoleServerSettings(port=0, linger_seconds=0.0)
        chosen = ConsoleSettings(enabled=True, server=server, **changed)
        async with world.manager(console=chosen) as app, aiohttp.ClientSession() as session:
            yield Console(app.url, world, rights, session)

    return start


def pod(
    name: str, *, node: str = "", batch: bool = False, cpu: str = "2", **more: Any
) -> dict[str, Any]:
    """Return a pod that asks for two cores or another number, its own or lent ones."""
    asked = {"cpu": cpu, "memory": f"{int(cpu) * 2}Gi"}
    labels = {}
    if batch:
        asked = {names.BATCH_CPU: f"{cpu}000", names.BATCH_MEMORY: f"{int(cpu) * 2}Gi"}
        labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/priority-class": "koord-batch"}
    spec: dict[str, Any] = {
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": asked, "limits": asked}}
        ],
        **({"nodeName": node} if node else {}),
        **more,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": spec}  # fmt: skip
