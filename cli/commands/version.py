"""Which release of Koord this is, and which ones run in the cluster."""

import argparse
import asyncio
import dataclasses
import importlib.metadata
import platform
from typing import Any, Final

from api import names, resources
from cli import clusters, reading
from cli.output import answers, terminal
from kube.client import client as clients
from kube.client import errors, transport
from process.runtime import clock as clocks
from process.runtime import entry

_LIMITS: Final = transport.Limits(connect_seconds=2.0, request_seconds=5.0, attempts=1)
_WORKLOADS: Final = (resources.DEPLOYMENTS, resources.DAEMON_SETS)
_COMPONENT: Final = "app.kubernetes.io/component"
_SELECTOR: Final = ",".join(f"{label}={value}" for label, value in names.INSTALLED.items())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord version`."""
    parser.description = (
        "Print the release of this program, and the images of the components where the API server "
        "is reached. Exit code: 0, also where it is not."
    )
    parser.add_argument("--client", action="store_true", help="do not ask the API server")
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    body: dict[str, Any] = {
        "version": importlib.metadata.version("koord"),
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    found: list[dict[str, str]] = []
    missed = ""
    if not chosen.client:
        try:
            found = asyncio.run(_components(chosen))
        except errors.KubeError as error:
            missed = str(error)
    if found:
        body["components"] = found
    if answers.is_document(chosen.output):
        answers.show(chosen.output, body)
        return entry.OK
    terminal.say(f"koord {body['version']} (Python {body['python']}, {body['platform']})")
    terminal.lines(f"{one['name']:<16}{one['version']:<16}{one['image']}" for one in found)
    if missed:
        terminal.warn(f"note: components are not shown: {missed}")
    return entry.OK


async def _components(chosen: argparse.Namespace) -> list[dict[str, str]]:
    access = await clusters.connect(chosen)
    if access.request_seconds is None:
        access = dataclasses.replace(access, request_seconds=_LIMITS.request_seconds)
    async with clients.Client(
        access, clock=clocks.SystemClock(), user_agent="koord-version", limits=_LIMITS
    ) as kube:
        items: list[dict[str, Any]] = []
        for resource in _WORKLOADS:
            items += (await kube.list(resource, chosen.koord_namespace, labels=_SELECTOR)).items
    rows = (reading.either(None, _row, one) for one in items)
    return sorted((row for row in rows if row is not None), key=lambda row: row["name"])


def _row(workload: dict[str, Any]) -> dict[str, str]:
    """Return one component: its image, and the release that the tag says."""
    metadata = workload["metadata"]
    # The extender runs beside a scheduler, whose image is not ours.
    images = [str(one["image"]) for one in workload["spec"]["template"]["spec"]["containers"]]
    image = next((one for one in images if "koord" in one), images[0])
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    name = (metadata.get("labels") or {}).get(_COMPONENT) or metadata["name"]
    return {"name": str(name), "version": tag or "-", "image": image}
