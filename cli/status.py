"""The state of the cluster in one screen."""

import argparse
import asyncio
import json
import sys
from typing import Any

import msgspec
from rich import console

from api import base, core, names, nodemetric, resources
from cli import clusters, picture, view
from kube import access as accesses
from kube import client as clients
from kube import errors
from process import clock, entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord status`."""
    clusters.add_arguments(parser)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        shown = asyncio.run(_once(chosen))
    except errors.KubeError as error:
        sys.stderr.write(f"koord status: {error}\n")
        return entry.FAILED
    if chosen.output == "json":
        sys.stdout.write(json.dumps(picture.as_json(shown), indent=2) + "\n")
    elif sys.stdout.isatty():
        console.Console().print(view.render(shown, "koord"))
    else:
        sys.stdout.writelines(f"{line}\n" for line in view.lines(shown))
    return entry.OK


async def _once(chosen: argparse.Namespace) -> picture.Picture:
    access = await accesses.connect(clusters.kubeconfig(chosen), chosen.context)
    async with clients.Client(access, clock=clock.SystemClock(), user_agent="koord-status") as kube:
        return await read(kube)


async def read(kube: clients.Client) -> picture.Picture:
    """Read nodes, pods and reports, and put them into one picture."""
    nodes = await kube.list(resources.NODES)
    pods = await kube.list(resources.PODS)
    metrics = await kube.list(resources.NODE_METRICS)
    return picture.take(
        [msgspec.convert(raw, core.Node) for raw in nodes.items],
        [msgspec.convert(raw, core.Pod) for raw in pods.items],
        {raw["metadata"]["name"]: read_metric(raw) for raw in metrics.items},
        await _switches(kube),
    )


async def _switches(kube: clients.Client) -> dict[str, str]:
    """Read the live switches; who may not read them is shown none."""
    try:
        found = await kube.get(resources.CONFIG_MAPS, names.CONFIG_MAP_SWITCHES, names.NAMESPACE)
    except (errors.NotFound, errors.Forbidden):
        return {}
    return dict(found.get("data") or {})


def read_metric(raw: dict[str, Any]) -> nodemetric.NodeMetric:
    """Read a report; one that cannot be read counts as none."""
    try:
        return nodemetric.read_node_metric(raw)
    except base.ReadError:
        return nodemetric.NodeMetric()
