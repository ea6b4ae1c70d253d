"""Gather what a checkup wants to know from the API server; what cannot be read is said, not raised.

Pods and nodes are read page by page and cut down at once, since whole ones of a large cluster
would fill gigabytes.
"""

import asyncio
import base64
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import orjson
import yaml

from api import names, resources
from api.kubernetes import core, scheduler_config
from cli import reading
from cli.doctor import probes
from cli.doctor.checkup import facts, permissions
from kube.client import client as clients
from kube.client import errors, wire
from process.runtime import clock as clocks

T = TypeVar("T")

HORIZONTAL: Final = resources.Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True
)
VERTICAL: Final = resources.Resource(
    "autoscaling.k8s.io", "v1", "verticalpodautoscalers", "VerticalPodAutoscaler", True
)
WEBHOOK: Final = "koord-webhook"
TLS_VOLUME: Final = "tls"
"""The volume of the webhook with a certificate that another issuer writes."""
_UNSERVED: Final = "nothing, where it is not installed on purpose; else run it on a whole cluster"
_POD: Final = msgspec.json.Decoder(core.Pod)


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


_NAMED: Final = msgspec.json.Decoder(_Named)


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Where to look."""

    namespace: str = names.NAMESPACE
    probe_namespace: str = "default"
    """Where trial pods are sent in dry runs."""
    scheduler_configs: tuple[Path, ...] = ()
    """Files of schedulers whose configuration is in no ConfigMap."""


Say = Callable[[str], None]
"""Tells a person what is being done."""


class Surveyor:
    """Reads one cluster."""

    def __init__(
        self, kube: clients.Client, clock: clocks.Clock, options: Options, say: Say
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._options = options
        self._say = say
        self.unreadable: list[str] = []
        """Objects of an unexpected shape that were left out."""

    async def take(self) -> facts.Facts:
        """Read everything; raises only when the API server cannot be reached at all."""
        self._say("reading the installation")
        version = facts.version_of(orjson.loads(await self._kube.read("/version")))
        own = self._options.namespace
        installed = await self._installed(own)
        self._say("asking the API server to call the webhook (dry run)")
        probe = await probes.webhook(self._kube, self._options.probe_namespace)
        clock = await learn("clock of the API server", probes.clock(self._kube, self._clock, own))
        self._say("asking what each process may do")
        access = await self._access(installed)
        self._say("reading nodes and pods")
        cluster = await self._cluster()
        return facts.Facts(
            namespace=own,
            now=clock.server if isinstance(clock, facts.Clock) else self._clock.now(),
            clock=clock,
            version=version,
            probe=probe,
            scheduler_configs=self.schedulers(installed),
            unreadable=tuple(self.unreadable),
            **access,
            **installed,
            **cluster,
        )

    async def _installed(self, own: str) -> dict[str, Any]:
        kube = self._kube
        slices = f"kubernetes.io/service-name={WEBHOOK}"
        read = {
            "crds": self._named(resources.CRDS),
            "deployments": self._listed(resources.DEPLOYMENTS),
            "daemon_sets": self._listed(resources.DAEMON_SETS),
            "config_maps": self._named(resources.CONFIG_MAPS, own),
            "leases": self._named(resources.LEASES, own),
            "webhooks": learn("webhook configurations", self._webhooks()),
            "endpoints": learn(
                "EndpointSlices", _items(kube.list(resources.ENDPOINT_SLICES, own, labels=slices))
            ),
        }
        installed = await _together(read)
        name = serving_secret(installed["deployments"], own)
        certificates = await learn("certificate Secret", self._certificates(name, own))
        return {**installed, "certificates": certificates}

    async def _cluster(self) -> dict[str, Any]:
        return await _together(
            {
                "pods": learn("pods", self.pods()),
                "nodes": learn("nodes", self.trimmed(resources.NODES, node)),
                "node_metrics": learn("NodeMetrics", self.trimmed(resources.NODE_METRICS, slim)),
                "node_slos": learn("NodeSLOs", self.trimmed(resources.NODE_SLOS, slim)),
                "namespaces": self._listed(resources.NAMESPACES),
                "profiles": self._listed(resources.COLOCATION_PROFILES),
                "quotas": self._listed(resources.RESOURCE_QUOTAS),
                "elastic_quotas": self._elastic_quotas(),
                "devices": self._listed(resources.DEVICES, optional=True),
                "resource_slices": self._listed(resources.RESOURCE_SLICES, optional=True),
                "limit_ranges": self._listed(resources.LIMIT_RANGES),
                "horizontal": self._listed(HORIZONTAL, optional=True),
                "vertical": self._listed(VERTICAL, optional=True),
            }
        )

    async def _access(self, installed: Mapping[str, Any]) -> dict[str, Any]:
        maps, daemon_sets = installed["config_maps"], installed["daemon_sets"]
        maps = {} if isinstance(maps, facts.Unknown) else maps
        daemon_sets = () if isinstance(daemon_sets, facts.Unknown) else daemon_sets
        own = self._options.namespace
        accounts = await learn(
            "ServiceAccounts", _items(self._kube.list(resources.SERVICE_ACCOUNTS, own))
        )
        if isinstance(accounts, facts.Unknown):
            service: facts.Answer[Sequence[facts.Access]] = accounts
        else:
            there = permissions.processes([facts.name(one) for one in accounts], daemon_sets)
            service = await learn(
                "permissions of our accounts", probes.accounts(self._kube, own, there, maps)
            )
        mine = await learn("own permissions", probes.reader(self._kube, permissions.READS, own))
        return {"service_access": service, "own_access": mine}

    async def _listed(
        self, resource: resources.Resource, *, optional: bool = False
    ) -> facts.Answer[Sequence[facts.Raw]]:
        answer = await learn(resource.plural, _items(self._kube.list(resource)))
        # An optional kind that is not served has no objects.
        if optional and isinstance(answer, facts.Unknown) and answer.reason.startswith("404"):
            return ()
        return answer

    async def _elastic_quotas(self) -> facts.Answer[Sequence[facts.Raw]]:
        found: list[facts.Raw] = []
        for resource in resources.QUOTA_RESOURCES:
            answer = await self._listed(resource, optional=True)
            if isinstance(answer, facts.Unknown):
                return answer
            found += answer
        return found

    async def _named(
        self, resource: resources.Resource, namespace: str = ""
    ) -> facts.Answer[Mapping[str, facts.Raw]]:
        answer = await learn(resource.plural, _items(self._kube.list(resource, namespace)))
        if isinstance(answer, facts.Unknown):
            return answer
        return {facts.name(item): item for item in answer}

    async def _webhooks(self) -> Sequence[facts.Raw]:
        found: list[facts.Raw] = []
        for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
            found += (await self._kube.list(resource)).items
        return found

    async def _certificates(self, name: str, own: str) -> facts.Certificates:
        """Read certificates and leave the keys where they are."""
        try:
            secret = await self._kube.get(resources.SECRETS, name, own)
        except errors.NotFound:
            return facts.Certificates(name, exists=False)
        return public_part(name, secret.get("data") or {})

    async def pods(self) -> Sequence[facts.Pod]:
        """Read every pod, cut down to what matters."""
        found: list[facts.Pod] = []
        async for page in self._pages(resources.PODS):
            found += self.each(resources.PODS, page, pod)
        return found

    async def trimmed(
        self, resource: resources.Resource, trim: Callable[[dict[str, Any]], facts.Raw]
    ) -> Sequence[facts.Raw]:
        """Read every object of a kind, each cut down at once."""
        found: list[facts.Raw] = []
        async for page in self._pages(resource):
            found += self.each(resource, page, lambda raw: trim(orjson.loads(bytes(raw))))
        return found

    def each(
        self, resource: resources.Resource, page: bytes, read: Callable[[msgspec.Raw], T]
    ) -> Iterator[T]:
        """Yield what is read of the objects of a page; name those that cannot be read."""
        for raw, is_whole in wire.objects(page)[1]:
            one = reading.either(None, read, raw) if is_whole else None
            if one is not None:
                yield one
                continue
            named = reading.either(_Named(), _NAMED.decode, raw).metadata
            where = f"{named.namespace}/" if named.namespace else ""
            self.unreadable.append(f"{resource.kind} {where}{named.name or 'without a name'}")

    async def _pages(self, resource: resources.Resource) -> AsyncIterator[bytes]:
        query = {"limit": str(clients.PAGE)}
        while True:
            page = await self._kube.page(clients.Selection(resource), query)
            yield page
            following = wire.page(page)[0].metadata.continue_
            if not following:
                return
            query["continue"] = following

    def schedulers(self, installed: Mapping[str, Any]) -> Sequence[facts.SchedulerConfig]:
        """Return every scheduler configuration: of the files named, and of maps of ours."""
        found = [
            facts.SchedulerConfig(str(path), read_config(path), beside=False)
            for path in self._options.scheduler_configs
        ]
        maps, deployments = installed["config_maps"], installed["deployments"]
        if isinstance(maps, facts.Unknown):
            return found
        replicas = 1
        for deployment in () if isinstance(deployments, facts.Unknown) else deployments:
            if facts.is_ours(deployment) and facts.component(deployment) == "scheduler":
                replicas = int((deployment.get("spec") or {}).get("replicas", 1))
        for name, config_map in sorted(maps.items()):
            for key, text in sorted((config_map.get("data") or {}).items()):
                if scheduler_config.KIND in text:
                    source = f"ConfigMap {self._options.namespace}/{name} ({key})"
                    document = parse_config(source, text)
                    if name == names.CONFIG_MAP_SCHEDULER and tells_plugins_only(document):
                        continue
                    found.append(facts.SchedulerConfig(source, document, True, replicas))
        return found


def tells_plugins_only(document: facts.Raw | facts.Unknown) -> bool:
    """Whether a configuration calls no extender: kube-scheduler has another one then."""
    return not isinstance(document, facts.Unknown) and not document.get("extenders")


async def learn(what: str, asked: Awaitable[T]) -> T | facts.Unknown:
    """Return what can be read, or why it cannot."""
    try:
        return await asked
    except errors.ApiError as error:
        if error.is_of_unserved_kind:
            return facts.Unknown(what, str(error), _UNSERVED)
        return facts.Unknown(what, str(error))
    except errors.KubeError as error:
        return facts.Unknown(what, str(error))
    except reading.UNREADABLE as error:
        return facts.Unknown(what, f"the answer cannot be read: {error}")


async def _together(reading: Mapping[str, Awaitable[Any]]) -> dict[str, Any]:
    answers = await asyncio.gather(*reading.values())
    return dict(zip(reading, answers, strict=True))


async def _items(listing: Awaitable[clients.Listing]) -> Sequence[facts.Raw]:
    return (await listing).items


def pod(raw: msgspec.Raw) -> facts.Pod:
    """Keep of a pod what matters here."""
    return facts.pod_of(_POD.decode(raw))


def node(raw: dict[str, Any]) -> facts.Raw:
    """Keep of a node what matters here."""
    status = raw.get("status") or {}
    kept = {part: status.get(part) for part in ("capacity", "allocatable", "nodeInfo")}
    return {**raw, "status": kept}


def slim(thing: dict[str, Any]) -> facts.Raw:
    """Keep of a report or a policy when and by whom it was written."""
    status = thing.get("status") or {}
    return {
        "metadata": thing.get("metadata") or {},
        "status": {"updateTime": status.get("updateTime")},
    }


def serving_secret(deployments: facts.Answer[Sequence[facts.Raw]], namespace: str) -> str:
    """Return the Secret with the webhook's certificate: the one its Deployment mounts, or its own.

    It mounts none where it issues the certificate itself.
    """
    for deployment in () if isinstance(deployments, facts.Unknown) else deployments:
        if facts.key(deployment) == f"{namespace}/{WEBHOOK}":
            for volume in facts.stated(facts.pod_spec(deployment), "volumes"):
                name = (volume.get("secret") or {}).get("secretName")
                if volume.get("name") == TLS_VOLUME and name:
                    return str(name)
    return facts.OWN_CERTIFICATES


def public_part(secret: str, data: Mapping[str, str]) -> facts.Certificates:
    """Keep the certificates of a Secret and nothing that is secret."""
    public = {
        name: base64.b64decode(text)
        for name, text in data.items()
        if name.endswith(".crt") and text
    }
    leaf = public.get("webhook.crt") or public.get("tls.crt")
    authorities = [
        pem for name, pem in public.items() if name.startswith("ca-") or name == "ca.crt"
    ]
    return facts.Certificates(secret, leaf, tuple(authorities))


def read_config(path: Path) -> facts.Answer[facts.Raw]:
    """Read a KubeSchedulerConfiguration from a file."""
    try:
        return parse_config(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return facts.Unknown(str(path), reading.refusal(error))


def parse_config(source: str, text: str) -> facts.Answer[facts.Raw]:
    """Read a KubeSchedulerConfiguration."""
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, *reading.UNREADABLE) as error:
        return facts.Unknown(source, f"it is no YAML: {error}")
    if not isinstance(document, dict) or document.get("kind") != scheduler_config.KIND:
        return facts.Unknown(source, f"it is no {scheduler_config.KIND}")
    return document
