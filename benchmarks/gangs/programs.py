"""The extender that plans gangs, and kube-scheduler that calls it with or without mutual TLS."""

import contextlib
import dataclasses
import functools
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import aiohttp

from api.kubernetes import scheduler_config
from benchmarks.plane import extenders, mutual_tls, rig

HTTP, MTLS = "http", "mtls"
TRANSPORTS = {HTTP: "plain HTTP", MTLS: "mutual TLS"}
_COUNTERS = re.compile(
    r"koord_extender_(gang_plans_total|gang_renominations_total|gang_plan_seconds_(sum|count)|verb_seconds_(sum|count))|"
    r"koord_kube_(watch_events_total|request_seconds_(sum|count)\{[^}]*verb=\"(patch|bind))"
)
"""What the extender says that explains a result."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """An extender and the scheduler that calls it, while they run; or the scheduler alone."""

    extender: extenders.Extender | None = None

    @property
    def pids(self) -> dict[str, int]:
        """Return the processes of ours."""
        return {"extender": self.extender.pid} if self.extender is not None else {}

    async def counters(self) -> dict[str, float]:
        """Return what the extender has counted so far."""
        if self.extender is None:
            return {}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.extender.health}/metrics") as answer,
        ):
            lines = (await answer.text()).splitlines()
        pairs = (line.rpartition(" ") for line in lines if _COUNTERS.match(line))
        return {name: float(value) for name, _, value in pairs}


@contextlib.asynccontextmanager
async def running(made: rig.Rig, transport: str, queries: int) -> AsyncIterator[Pair]:
    """Run the extender and kube-scheduler, and stop both afterwards."""
    folder = made.workdir / f"extender-{transport}"
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    login = made.plane.write_kubeconfig(folder / "kubeconfig", rig.USER)
    tls = None
    if transport == MTLS:
        tls = mutual_tls.made(folder / "tls") if is_new else mutual_tls.there(folder / "tls")
    configuration = functools.partial(_rendered, queries, tls.client if tls else None)
    flags, scheme = (tls.flags, "https") if tls else ((), "http")
    async with extenders.ours(
        folder, login, *flags, configuration=configuration, scheme=scheme
    ) as extender:
        await made.start_scheduler(configuration(extender.url))
        try:
            await made.settle()
            yield Pair(extender)
        finally:
            await made.plane.stop_scheduler()


@contextlib.asynccontextmanager
async def alone(made: rig.Rig, queries: int) -> AsyncIterator[Pair]:
    """Run kube-scheduler alone, and stop it afterwards."""
    await made.start_scheduler(_rendered(queries, None, ""))
    try:
        await made.settle()
        yield Pair()
    finally:
        await made.plane.stop_scheduler()


def _rendered(
    queries: int, client: scheduler_config.ClientTls | None, url: str
) -> Mapping[str, Any]:
    options = scheduler_config.Options(extender_url=url, queries_per_second=queries, tls=client)
    return scheduler_config.render(options)


def grown(before: Mapping[str, float], after: Mapping[str, float], pods: int) -> str:
    """Return in one line what the extender counted meanwhile, for each pod."""
    return ", ".join(f"{name} {value:.3f}" for name, value in _grown(before, after, pods))


def _grown(
    before: Mapping[str, float], after: Mapping[str, float], pods: int
) -> Iterator[tuple[str, float]]:
    for name, value in after.items():
        more = (value - before.get(name, 0.0)) / pods
        if more >= 0.0005:
            yield name.removeprefix("koord_").removeprefix("extender_"), more
