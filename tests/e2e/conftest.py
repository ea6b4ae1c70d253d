import shlex

import pytest
import pytest_asyncio

from api import names, resources
from simulator.processes import credentials
from tests.e2e import binaries as builds
from tests.planes import definitions, raw, real
from tests.planes import stage as stages
from tests.planes.scheduler import scored

WORKLOADS = ("--feature-gates=GenericWorkload=true",)
SERVED = "--runtime-config=scheduling.k8s.io/v1beta1=true"


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quiet(control_plane_binaries, tmp_path_factory):
    """A control plane without controllers: owners stand, and nobody deletes what they own."""
    workdir = tmp_path_factory.mktemp("scores") / "state"
    async with real.running(control_plane_binaries, workdir, with_controllers=False) as plane:
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quiet_api(quiet):
    """An administrator, and what pods need before they may be created."""
    async with raw.connected(quiet.server, quiet.ca, quiet.token) as admin:
        overhead = {"podFixed": {"cpu": "10m", "memory": "5Mi"}}
        runtime = {"metadata": {"name": scored.RUNTIME}, "handler": "x", "overhead": overhead}
        await admin.post("/apis/node.k8s.io/v1/runtimeclasses", runtime)
        for namespace in scored.NAMESPACES:
            await admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            await admin.call("POST", path, {"metadata": {"name": "default"}})
        yield admin


@pytest.fixture(scope="module")
def talkative(control_plane_binaries, tmp_path_factory):
    """The scheduler with a log of every score."""
    path = tmp_path_factory.mktemp("program") / "kube-scheduler"
    program = shlex.quote(str(control_plane_binaries / "kube-scheduler"))
    path.write_text(f'#!/bin/sh\nexec {program} --v=10 "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def native(control_plane_binaries, tmp_path_factory):
    """A control plane that has PodGroups of Kubernetes itself."""
    if tuple(map(int, builds.version().split(".")[:2])) < (1, 37):
        pytest.skip("needs Kubernetes 1.37: PodGroups of Kubernetes itself are beta there")
    users = tuple(credentials.User(name, stages.MASTERS) for name in stages.USERS)
    flags = {"apiserver_flags": (*WORKLOADS, SERVED), "scheduler_flags": WORKLOADS}
    workdir = tmp_path_factory.mktemp("native") / "state"
    async with real.running(control_plane_binaries, workdir, users=users, **flags) as plane:
        async with raw.connected(plane.server, plane.ca, plane.token) as api:
            await definitions.serve(api)
            namespace = {"metadata": {"name": names.NAMESPACE}}
            await api.call("POST", resources.NAMESPACES.path(), namespace)
        yield plane
