"""The harness takes programs away and brings them back; for those who test what then happens."""

import asyncio

import pytest

from tests.planes import raw

PATIENCE = 60.0

pytestmark = pytest.mark.disturbs


@pytest.fixture
def own(real_plane):
    return real_plane.binaries


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest.fixture
def admin(api):
    return api


async def test_a_paused_program_hangs_and_goes_on(own, admin):
    own.pause("kube-apiserver")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await admin.get("/api/v1/namespaces/default")
    own.resume("kube-apiserver")
    assert (await admin.get("/api/v1/namespaces/default"))["metadata"]["name"] == "default"


async def test_everything_comes_back_after_a_power_cut(own, admin):
    maps = "/api/v1/namespaces/default/configmaps"
    await admin.post(maps, {"metadata": {"name": "kept"}})
    for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
        before = own.pids()[name]
        await own.restart(name)
        assert own.pids()[name] != before

    async def found():
        return (await admin.call("GET", f"{maps}/kept")).status == 200

    await raw.eventually(found, PATIENCE)
