"""What an installation creates before its first process: our definitions, roles and settings."""

import contextlib

from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients


@contextlib.asynccontextmanager
async def laid(plane, clock):
    """Create it on a plane; yield an administrator's client and how processes reach the plane."""
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    async with clients.Client(access, clock=clock, user_agent="admin") as kube:
        await apply.definitions(kube, clock)
        await apply.everything(kube, apply.documents("foundation.yaml"))
        yield kube, access
