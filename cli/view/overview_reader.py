"""Read what an overview shows from the API server; what has an unexpected shape is left out."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from api import names, resources
from api.koordinator.metrics import nodemetric
from api.kubernetes import core
from api.wire import durations
from cli import reading
from cli.doctor.checkup import facts
from cli.quota import cluster, table
from cli.snapshot import format as formats
from cli.view import overview
from kube.client import client as clients
from kube.client import errors

S = TypeVar("S", bound=msgspec.Struct)


async def read(kube: clients.Client, namespace: str = names.NAMESPACE) -> overview.Picture:
    """Read nodes, pods and reports, and put them into one picture."""
    nodes = await kube.list(resources.NODES)
    pods = await kube.list(resources.PODS)
    metrics = await kube.list(resources.NODE_METRICS)
    odd: list[str] = []
    forbidden: list[str] = []
    taken = overview.take(
        list(each(nodes.items, core.Node, odd)),
        list(each(pods.items, core.Pod, odd)),
        {reading.either("", facts.name, raw): read_metric(raw) for raw in metrics.items},
        overview.Maps(
            await _data(kube, names.CONFIG_MAP_SWITCHES, namespace, forbidden),
            await _data(kube, names.CONFIG_MAP_SCHEDULER, namespace, forbidden),
            await _data(kube, names.CONFIG_MAP_REPORT, namespace, forbidden),
        ),
        odd,
    )
    quotas = [await _quotas(kube, one, forbidden) for one in resources.QUOTA_RESOURCES]
    taken = dataclasses.replace(taken, forbidden=tuple(forbidden))
    if not any(quotas):
        return taken
    found = dict(zip((one.review_name() for one in resources.QUOTA_RESOURCES), quotas, strict=True))
    found |= {"pods": tuple(pods.items), "nodes": tuple(nodes.items)}
    snapshot = formats.Snapshot(durations.moment(0), found)
    return dataclasses.replace(taken, quotas=table.rows(cluster.build(snapshot)))


async def _quotas(
    kube: clients.Client, resource: resources.Resource, forbidden: list[str]
) -> tuple[dict[str, Any], ...]:
    """Read the quotas of a group; one that is not installed has none."""
    try:
        return tuple((await kube.list(resource)).items)
    except errors.NotFound:
        return ()
    except errors.Forbidden:
        forbidden.append(resource.review_name())
        return ()


def each(items: Iterable[facts.Raw], kind: type[S], odd: list[str]) -> Iterator[S]:
    """Yield the objects that can be read; name the others."""
    for raw in items:
        found = reading.either(None, msgspec.convert, raw, kind)
        if found is not None:
            yield found
        else:
            named = reading.either("without a name", facts.key, raw)
            odd.append(f"{kind.__name__} {named}")


async def _data(
    kube: clients.Client, name: str, namespace: str, forbidden: list[str]
) -> dict[str, str]:
    """Read a configuration map; one that does not exist is empty."""
    try:
        found = await kube.get(resources.CONFIG_MAPS, name, namespace)
    except errors.NotFound:
        return {}
    except errors.Forbidden:
        forbidden.append(f"ConfigMap {name}")
        return {}
    return dict(found.get("data") or {})


def read_metric(raw: dict[str, Any]) -> nodemetric.NodeMetric:
    """Read a report; one that cannot be read counts as none."""
    return reading.either(nodemetric.NodeMetric(), nodemetric.read_node_metric, raw)
