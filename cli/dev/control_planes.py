"""The control plane under `koord dev`: the embedded one, or real binaries; used alike."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from api.kubernetes import scheduler_config
from kube.client import access as accesses
from process.runtime import clock as clocks
from simulator import cluster, link
from simulator.kubelet import kubelet
from simulator.processes import binaries


@dataclasses.dataclass(frozen=True, slots=True)
class Plane:
    """A running control plane with kubelets for simulated nodes."""

    server: str
    access: accesses.Access
    token: str
    kubelets: kubelet.Kubelets
    start_scheduler: Callable[[str], Awaitable[None]]
    """Start the scheduler with an extender at this URL."""
    write_kubeconfig: Callable[[Path], Path]


@contextlib.asynccontextmanager
async def embedded(port: int, hooks: kubelet.Hooks, clock: clocks.Clock) -> AsyncIterator[Plane]:
    """Run the embedded control plane."""
    # Both kinds of plane get their kubelets here, so that they are used alike.
    options = cluster.Options(port=port, with_kubelets=False)
    async with cluster.running(options, clock=clock) as plane:

        async def start_scheduler(extender_url: str) -> None:
            await plane.start_scheduler(_scheduler(extender_url))

        async with _populated(plane, start_scheduler, hooks, clock) as whole:
            yield whole


@contextlib.asynccontextmanager
async def real(
    folder: Path, workdir: Path, hooks: kubelet.Hooks, clock: clocks.Clock
) -> AsyncIterator[Plane]:
    """Run the binaries of a folder, their state and logs in `workdir`."""
    async with binaries.running(folder, workdir, clock=clock) as plane:

        async def start_scheduler(extender_url: str) -> None:
            await plane.start_scheduler(scheduler_config.render(_scheduler(extender_url)))

        async with _populated(plane, start_scheduler, hooks, clock) as whole:
            yield whole


def _scheduler(extender_url: str) -> scheduler_config.Options:
    """Serve pods that name no scheduler and those that name the one of existing manifests."""
    return scheduler_config.Options(
        extender_url=extender_url, scheduler_names=("default-scheduler", "koord-scheduler")
    )


def access_to(server: str, ca: bytes, token: str) -> accesses.Access:
    """Return the access of a token."""
    return accesses.Access(server, ca, accesses.StaticToken(token))


@contextlib.asynccontextmanager
async def _populated(
    plane: cluster.Plane | binaries.Plane,
    start_scheduler: Callable[[str], Awaitable[None]],
    hooks: kubelet.Hooks,
    clock: clocks.Clock,
) -> AsyncIterator[Plane]:
    """Add kubelets to a control plane."""
    server, ca, token = plane.server, plane.ca, plane.token
    options = kubelet.Options(tokens=frozenset({token}))
    async with (
        link.connected(server, ca, token, clock=clock, agent="koord-kubelet") as client,
        kubelet.running(client, options, hooks, clock) as kubelets,
    ):
        access = access_to(server, ca, token)
        yield Plane(server, access, token, kubelets, start_scheduler, plane.write_kubeconfig)
