import shlex

import pytest
import pytest_asyncio

from tests.planes import raw, real, scored


@pytest.fixture(autouse=True)
def _nothing_left():
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
