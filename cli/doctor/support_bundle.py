"""A support bundle: what a supporter needs to help from afar, without secrets."""

import asyncio
import dataclasses
import io
import json
import tarfile
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from api import resources
from api.wire import durations
from cli import reading
from cli.doctor import redaction, survey
from cli.doctor.checkup import checks, facts, findings
from domain import wording
from kube.client import client as clients
from kube.client import errors
from process.configuration import explained_error, printable
from process.runtime import clock as clocks

MOST_FILE: Final = 2 << 20
MOST_TOTAL: Final = 48 << 20
MOST_AGENTS: Final = 10
MOST_SECONDS: Final = 10.0
LOG_LINES: Final = 2000
SELECTOR: Final = "app.kubernetes.io/part-of=koord"
HEALTH_PORTS: Final = {"scheduler": 9212, "webhook": 9877, "manager": 8080, "agent": 9316}
PAGES: Final = ("readyz", "metrics")
SETTINGS: Final = ("koord-", "slo-controller-config")

NAMESPACED: Final = (
    resources.PODS, resources.DEPLOYMENTS, resources.DAEMON_SETS, resources.SERVICES,
    resources.ENDPOINT_SLICES, resources.LEASES, resources.CORE_EVENTS, resources.ROLES,
    resources.ROLE_BINDINGS, resources.POD_DISRUPTION_BUDGETS,
)  # fmt: skip
CLUSTER: Final = (
    resources.NODES, resources.NODE_METRICS, resources.NODE_SLOS, resources.COLOCATION_PROFILES,
    resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS, resources.PRIORITY_CLASSES,
)  # fmt: skip
LABELLED: Final = (resources.CLUSTER_ROLES, resources.CLUSTER_ROLE_BINDINGS)


class BundleError(explained_error.ExplainedError):
    """The bundle cannot be written; names the file and the reason."""


class Box:
    """Collects files, cut to size, and what could not be collected."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.problems: list[str] = []
        self._total = 0

    def add(self, name: str, content: bytes) -> None:
        """Add a file; what is too long loses its middle."""
        if self._total >= MOST_TOTAL:
            self.problems.append(f"{name}: left out, the bundle is full")
            return
        if len(content) > MOST_FILE:
            half = MOST_FILE // 2
            self.problems.append(f"{name}: {len(content)} bytes, the middle is left out")
            content = content[:half] + b"\n... cut ...\n" + content[-half:]
        self.files[name] = content
        self._total += len(content)

    def objects(self, name: str, found: Sequence[facts.Raw]) -> None:
        """Add objects as one YAML file, without what is secret."""
        texts = []
        for item in found:
            try:
                cleaned = redaction.thing(without_noise(item))
                # ASCII: what tenants wrote must not move the cursor of a terminal that shows the
                # file.
                texts.append(yaml.safe_dump(cleaned, sort_keys=False, explicit_start=True))
            except (yaml.YAMLError, *reading.UNREADABLE) as error:
                self.problems.append(f"{name}: {reading.why(error)}")
        self.add(name, "".join(texts).encode())

    def text(self, name: str, content: bytes) -> None:
        """Add a text without what is secret."""
        cleaned = redaction.text(content.decode("utf-8", "replace"))
        self.add(name, "\n".join(map(printable.escaped, cleaned.split("\n"))).encode())


def without_noise(item: facts.Raw) -> facts.Raw:
    """Leave out long schemas and images, which say nothing about this cluster."""
    status = dict(item.get("status") or {})
    status.pop("images", None)
    return {**item, "status": status} if "status" in item else item


class Collector:
    """Reads what goes into a bundle; a part that cannot be read is noted and left out."""

    def __init__(self, kube: clients.Client, box: Box, namespace: str) -> None:
        self._kube = kube
        self._box = box
        self._namespace = namespace

    async def collect(self) -> None:
        """Read objects first, then logs and pages, which are larger."""
        await self._settings()
        for resource in NAMESPACED:
            await self._objects(resource, self._namespace)
        for resource in CLUSTER:
            await self._objects(resource)
        for resource in LABELLED:
            await self._objects(resource, labels=SELECTOR)
        await self._definitions()
        await self._pods()

    async def _objects(
        self, resource: resources.Resource, namespace: str = "", labels: str = ""
    ) -> None:
        name = f"objects/{resource.review_name()}.yaml"
        try:
            listing = await self._kube.list(resource, namespace, labels=labels)
        except errors.KubeError as error:
            self._box.problems.append(f"{name}: {error}")
            return
        self._box.objects(name, listing.items)

    async def _settings(self) -> None:
        """Only maps of ours: others in the namespace may be private."""
        name = "objects/configmaps.yaml"
        try:
            listing = await self._kube.list(resources.CONFIG_MAPS, self._namespace)
        except errors.KubeError as error:
            self._box.problems.append(f"{name}: {error}")
            return
        ours = [item for item in listing.items if facts.name(item).startswith(SETTINGS)]
        self._box.objects(name, ours)

    async def _definitions(self) -> None:
        name = "objects/customresourcedefinitions.json"
        try:
            listing = await self._kube.list(resources.CRDS)
        except errors.KubeError as error:
            self._box.problems.append(f"{name}: {error}")
            return
        told = {
            facts.name(item): {
                "labels": facts.meta(item, "labels"),
                "versions": [v.get("name") for v in facts.stated(item["spec"], "versions")],
                "conditions": facts.stated(item.get("status") or {}, "conditions"),
            }
            for item in listing.items
            if facts.name(item).endswith(("koordinator.sh", "sigs.k8s.io", "node.k8s.io"))
        }
        self._box.add(name, json.dumps(told, indent=1).encode())

    async def _pods(self) -> None:
        try:
            listing = await self._kube.list(resources.PODS, self._namespace, labels=SELECTOR)
        except errors.KubeError as error:
            self._box.problems.append(f"logs: {error}")
            return
        agents = 0
        read: list[Awaitable[None]] = []
        for pod in listing.items:
            if facts.component(pod) == "agent":
                agents += 1
                if agents > MOST_AGENTS:
                    continue
            read += [self._logs(pod), self._pages(pod)]
        await asyncio.gather(*read)
        if agents > MOST_AGENTS:
            left = wording.count(agents - MOST_AGENTS, "agent", "agents")
            self._box.problems.append(f"logs: left out those of {left}")

    async def _logs(self, pod: facts.Raw) -> None:
        path = resources.PODS.path(self._namespace, facts.name(pod), "log")
        statuses = facts.stated(pod.get("status") or {}, "containerStatuses")
        restarted = {s.get("name") for s in statuses if int(s.get("restartCount") or 0)}
        for container in facts.stated(pod.get("spec") or {}, "containers"):
            name = str(container.get("name"))
            query = {"container": name, "tailLines": str(LOG_LINES), "limitBytes": str(MOST_FILE)}
            await self._read(f"logs/{facts.name(pod)}/{name}.log", path, query)
            if name in restarted:
                earlier = {**query, "previous": "true"}
                await self._read(f"logs/{facts.name(pod)}/{name}.previous.log", path, earlier)

    async def _pages(self, pod: facts.Raw) -> None:
        port = HEALTH_PORTS.get(facts.component(pod))
        for page in PAGES if port else ():
            name = f"{facts.name(pod)}:{port}"
            path = resources.PODS.path(self._namespace, name, f"proxy/{page}")
            await self._read(f"pages/{facts.name(pod)}/{page}.txt", path, {})

    async def _read(self, name: str, path: str, query: Mapping[str, str]) -> None:
        try:
            self._box.text(name, await self._kube.read(path, query, seconds=MOST_SECONDS))
        except errors.KubeError as error:
            self._box.problems.append(f"{name}: {error}")


async def collect(
    kube: clients.Client,
    clock: clocks.Clock,
    options: survey.Options,
    found: Sequence[findings.Finding],
) -> bytes:
    """Collect a bundle; a part that fails is noted inside."""
    box = Box()
    told = [redaction.thing(dataclasses.asdict(finding)) for finding in found]
    box.add("findings.json", json.dumps(told, indent=1).encode())
    try:
        box.add("version.json", orjson.dumps(orjson.loads(await kube.read("/version"))))
    except (errors.KubeError, orjson.JSONDecodeError) as error:
        box.problems.append(f"version.json: {error}")
    await Collector(kube, box, options.namespace).collect()
    now = clock.now()
    about: dict[str, Any] = {
        "written": durations.moment(now),
        "namespace": options.namespace,
        "findings": checks.summary(found),
        "leftOut": box.problems,
    }
    return packed({"bundle.json": json.dumps(about, indent=1).encode(), **box.files}, now)


def save(path: Path, content: bytes) -> None:
    """Write a bundle, readable by its owner only."""
    try:
        path.touch(mode=0o600)
        path.write_bytes(content)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {reading.refusal(error)}") from error


def packed(files: Mapping[str, bytes], now: float) -> bytes:
    """Pack files into a compressed archive."""
    packed_up = io.BytesIO()
    with tarfile.open(fileobj=packed_up, mode="w:gz") as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"koord-bundle/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(now), 0o600
            archive.addfile(entry, io.BytesIO(content))
    return packed_up.getvalue()
