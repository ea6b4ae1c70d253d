"""What pods are scheduled with: kube-scheduler alone or with an extender, or koord-scheduler."""

import argparse
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from typing import Literal

from api.kubernetes import scheduler_config
from benchmarks import figures
from benchmarks.plane import extenders, peers, rig
from benchmarks.scheduling import koordinator

STOCK, OURS, MINIMAL, KOORDINATOR = "stock", "ours", "minimal", "koord-scheduler"
BUSY, KOORDINATOR_BUSY, ONE_NAME = "busy", "koord-scheduler-busy", "one-name"
NEVER = "never"
"""With us, while every choice is left to kube-scheduler."""


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """One way to schedule."""

    extender: Literal["", "ours", "minimal"] = ""
    flags: tuple[str, ...] = ()
    """Further arguments of the extender."""
    program: tuple[str, ...] = ("extender",)
    """The module that runs our extender."""
    busy: bool = False
    """Whether a third of the nodes reports so much load that they are refused."""
    koordinator: bool = False
    """Whether koord-scheduler schedules, with the profile that its chart installs."""


VARIANTS: Mapping[str, Variant] = {
    STOCK: Variant(),
    OURS: Variant("ours"),
    NEVER: Variant("ours", ("--scheduler.decide=never",)),
    BUSY: Variant("ours", busy=True),
    MINIMAL: Variant("minimal"),
    ONE_NAME: Variant("minimal", ("-one-name",)),
    KOORDINATOR: Variant(koordinator=True),
    KOORDINATOR_BUSY: Variant(koordinator=True, busy=True),
}


def names(text: str) -> list[str]:
    """Read the names of variants from a command line."""
    found = text.split(",")
    if unknown := set(found) - set(VARIANTS):
        known = ", ".join(VARIANTS)
        raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {known}")
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """A queue of pods to schedule."""

    pods: int
    kilobytes: int = 7
    queries_per_second: int = 5000


async def prepare(made: rig.Rig, wanted: list[str]) -> list[str]:
    """Install what variants need; return those that can run here."""
    if not any(VARIANTS[name].koordinator for name in wanted):
        return wanted
    if peers.program(KOORDINATOR) is None:
        return [name for name in wanted if not VARIANTS[name].koordinator]
    await made.define(peers.definitions(KOORDINATOR))
    await made.call("POST", "/api/v1/namespaces", {"metadata": {"name": koordinator.NAMESPACE}})
    return wanted


async def drained(made: rig.Rig, variant: Variant, load: Load) -> rig.Run:
    """Create the pods, then start the scheduler, and watch until each has a node."""
    await made.refresh_reports(busy=variant.busy)
    await made.create_pods(load.pods, load.kilobytes)
    run = await scheduled(made, variant, load.pods, load.queries_per_second)
    if variant.busy and (wrong := await made.pods_on_busy_nodes()):
        raise RuntimeError(f"{wrong} pods are on nodes that report too much load")
    await made.delete_pods()
    return run


async def scheduled(made: rig.Rig, variant: Variant, pods: int, queries: int) -> rig.Run:
    """Schedule the pods that wait, with a scheduler that is started now."""
    async with _extender(made, variant) as extender:
        pids = {"extender": extender.pid} if extender else {}
        await made.settle()
        if variant.koordinator:
            run = await made.drained(pods, pids, lambda: _start_koordinator(made, queries))
            await made.plane.stop_scheduler(KOORDINATOR)
            return run
        config = scheduler_config.render(
            scheduler_config.Options(
                extender_url=extender.url if extender else "", queries_per_second=queries
            )
        )
        run = await made.drained(pods, pids, lambda: made.start_scheduler(config))
        await made.plane.stop_scheduler()
        if extender:
            run = dataclasses.replace(run, resident=figures.resident(extender.pid))
        if extender and extender.health:
            print(f"filter with several nodes, by why none was chosen: {await extender.decided()}")
        return run


@contextlib.asynccontextmanager
async def _extender(made: rig.Rig, variant: Variant) -> AsyncIterator[extenders.Extender | None]:
    if not variant.extender:
        yield None
        return
    folder = made.workdir / variant.extender
    folder.mkdir(exist_ok=True)
    kubeconfig = made.plane.write_kubeconfig(folder / "kubeconfig", rig.USER)
    if variant.extender == "ours":
        running = extenders.ours(folder, kubeconfig, *variant.flags, program=variant.program)
    else:
        running = extenders.minimal(folder, kubeconfig, *variant.flags)
    async with running as extender:
        yield extender


async def _start_koordinator(made: rig.Rig, queries: int) -> None:
    """Start koord-scheduler on the cores of the control plane."""
    config = koordinator.configuration(scheduler_config.STOCK_PROFILE, queries)
    token = made.plane.tokens[rig.USER]
    binary = str(peers.built(KOORDINATOR))
    await made.start_scheduler(config, name=KOORDINATOR, token=token, binary=binary)
