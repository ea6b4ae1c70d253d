"""The state of the cluster in one screen."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from rich import console

from api import names, resources
from api.koordinator import nodemetric
from api.kubernetes import core
from cli import clusters, picture, reading, view
from cli.checkup import facts
from cli.output import terminal
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock, entry

S = TypeVar("S", bound=msgspec.Struct)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord status`."""
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        shown = asyncio.run(_once(chosen))
    except errors.KubeError as error:
        terminal.warn(f"koord status: {error}")
        return entry.FAILED
    if chosen.output == "json":
        terminal.document(picture.as_json(shown))
    elif sys.stdout.isatty():
        console.Console().print(view.render(shown, "koord"))
    else:
        terminal.lines(view.lines(shown))
    return entry.OK


async def _once(chosen: argparse.Namespace) -> picture.Picture:
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock.SystemClock(), user_agent="koord-status") as kube:
        return await read(kube, chosen.koord_namespace)


async def read(kube: clients.Client, namespace: str = names.NAMESPACE) -> picture.Picture:
    """Read nodes, pods and reports, and put them into one picture."""
    nodes = await kube.list(resources.NODES)
    pods = await kube.list(resources.PODS)
    metrics = await kube.list(resources.NODE_METRICS)
    odd: list[str] = []
    return picture.take(
        list(each(nodes.items, core.Node, odd)),
        list(each(pods.items, core.Pod, odd)),
        {reading.either("", facts.name, raw): read_metric(raw) for raw in metrics.items},
        picture.Maps(
            await _data(kube, names.CONFIG_MAP_SWITCHES, namespace),
            await _data(kube, names.CONFIG_MAP_SCHEDULER, namespace),
        ),
        odd,
    )


def each(items: Iterable[facts.Raw], kind: type[S], odd: list[str]) -> Iterator[S]:
    """Yield the objects that can be read; name the others."""
    for raw in items:
        found = reading.either(None, msgspec.convert, raw, kind)
        if found is not None:
            yield found
        else:
            named = reading.either("without a name", facts.key, raw)
            odd.append(f"{kind.__name__} {named}")


async def _data(kube: clients.Client, name: str, namespace: str) -> dict[str, str]:
    """Read a configuration map; who may not read it is shown nothing of it."""
    try:
        found = await kube.get(resources.CONFIG_MAPS, name, namespace)
    except (errors.NotFound, errors.Forbidden):
        return {}
    return dict(found.get("data") or {})


def read_metric(raw: dict[str, Any]) -> nodemetric.NodeMetric:
    """Read a report; one that cannot be read counts as none."""
    return reading.either(nodemetric.NodeMetric(), nodemetric.read_node_metric, raw)
