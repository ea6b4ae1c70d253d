"""The simulator answers generated requests as the real API server does, but for a known list."""

import asyncio
import contextlib

import pytest

from process.runtime import clock as clocks
from simulator.apiserver import apiserver
from simulator.apiserver.registry import builtin_schemas
from tests.e2e import binaries
from tests.e2e.differential import bodies, comparison, known
from tests.planes import raw, real

SEEDS = range(1, 51)
LENGTH = 62
LEAST = 3000
VERBS = {
    "create", "create bad", "update", "merge patch", "strategic patch", "json patch", "apply",
    "delete", "odd delete", "eviction", "binding", "list", "watch", "create nonsense",
    "patch status", "update status",
}  # fmt: skip
# What these do to a pod the simulator leaves out: there are no tokens to mount, and no node fails.
LEFT_OUT = "ServiceAccount,DefaultTolerationSeconds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextlib.asynccontextmanager
async def planes_side_by_side(folder, workdir):
    """An API server of each kind, without controllers that would write meanwhile."""
    flags = (f"--disable-admission-plugins={LEFT_OUT}",)
    clock = clocks.SystemClock()
    state = apiserver.new_state(clock, with_controllers=False)
    async with contextlib.AsyncExitStack() as stack:
        running = real.running(folder, workdir, apiserver_flags=flags, with_controllers=False)
        plane = await stack.enter_async_context(running)
        server = await stack.enter_async_context(apiserver.running(clock=clock, state=state))
        yield (
            await stack.enter_async_context(raw.connected(plane.server, plane.ca, plane.token)),
            await stack.enter_async_context(raw.connected(server.url, server.ca, server.token)),
        )


async def served(api):
    """Define the custom resource, and wait until it is served."""
    await api.post(DEFINITIONS, bodies.DEFINITION)

    async def answers():
        return (await api.call("GET", "/apis/differential.koord.sh/v1/widgets")).status == 200

    await raw.eventually(answers)


@pytest.mark.timeout(300)
async def test_both_planes_answer_alike(control_plane_binaries, tmp_path):
    if binaries.version() != builtin_schemas.release():
        pytest.skip(f"the simulator shows Kubernetes {builtin_schemas.release()}")
    async with planes_side_by_side(control_plane_binaries, tmp_path / "state") as sides:
        await asyncio.gather(*map(served, sides))
        compared = comparison.Comparison(*sides)
        await compared.run(SEEDS, LENGTH)
    unexplained, unused = known.sorted_out(compared.differences)
    assert compared.requests >= LEAST
    assert compared.events >= 300
    assert compared.kinds >= VERBS
    assert not unexplained, "\n".join(map(str, unexplained))
    assert not unused, [entry.reason for entry in unused]
