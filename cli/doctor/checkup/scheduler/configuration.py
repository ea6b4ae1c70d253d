"""Traps in a KubeSchedulerConfiguration that makes kube-scheduler call the extender."""

import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib import parse

from api import names
from api.kubernetes import scheduler_config
from api.wire import durations
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.scheduler import traps

DEFAULT_TIMEOUT: Final = 5.0
DEFAULT_MAX_BACKOFF: Final = 10
LONGEST_FILTER: Final = 5.0
SAMPLED_NODES: Final = 100
SHAPELESS: Final = (AttributeError, LookupError, TypeError, ValueError)
"""What reading a document raises that has not the shape it should have."""


@dataclasses.dataclass(frozen=True, slots=True)
class Deadlines:
    """What the extender itself takes at most, in seconds."""

    bind: float = 25.0
    proof: float = 1.5


def run(known: facts.Facts) -> Iterator[findings.Finding]:
    """Check every configuration that was found."""
    found = facts.given(known.scheduler_configs)
    if not found:
        yield traps.MISSING.found(
            f"no ConfigMap in {known.namespace} holds a KubeSchedulerConfiguration",
            remedy="for kube-scheduler on the control plane name its file: --scheduler-config FILE",
        )
    deadlines = deadlines_of(facts.given(known.config_maps))
    version = known.version if isinstance(known.version, facts.Version) else None
    nodes = known.nodes if not isinstance(known.nodes, facts.Unknown) else ()
    for config in found:
        document = config.document
        if isinstance(document, facts.Unknown):
            yield traps.UNREADABLE.found(f"{config.source}: {document.reason}", config.source)
            continue
        try:
            told = [
                *check(config, document, deadlines),
                *_by_cluster(config, document, version, len(nodes)),
            ]
        except SHAPELESS as error:
            told = [traps.UNREADABLE.found(f"{config.source}: {error}", config.source)]
        yield from told
    yield from _proxies(known)


def deadlines_of(config_maps: Mapping[str, facts.Raw]) -> Deadlines:
    """Read the extender's own limits from its settings, defaults where they say nothing."""
    settings = facts.settings(config_maps, "extender")
    bind, freshness = facts.section(settings, "bind"), facts.section(settings, "freshness")
    try:
        return Deadlines(
            float(bind.get("deadlineSeconds", Deadlines().bind)),
            float(freshness.get("proofSeconds", Deadlines().proof)),
        )
    except SHAPELESS:
        # The extender itself refuses to start with such settings.
        return Deadlines()


def check(
    config: facts.SchedulerConfig, document: facts.Raw, deadlines: Deadlines
) -> Iterator[findings.Finding]:
    """Return what is wrong with one configuration by itself."""
    source = config.source
    if document.get("apiVersion") != scheduler_config.API_VERSION:
        yield traps.OLD_API.found(f"{source}: apiVersion is {document.get('apiVersion')}", source)
    entries = facts.stated(document, "extenders")
    if not entries:
        yield traps.NO_EXTENDER.found(f"{source}: there is no entry under extenders", source)
        return
    yield from _verbs(source, entries)
    for number, entry in enumerate(entries):
        where = f"{source}: extenders[{number}]"
        yield from _entry(source, where, entry)
        yield from _managed(source, where, entry)
        yield from _timeouts(source, where, entry, deadlines)
        yield from _connection(source, where, entry)
    if any(entry.get("prioritizeVerb") for entry in entries):
        yield from _weights(source, document)
    backoff = int(document.get("podMaxBackoffSeconds") or DEFAULT_MAX_BACKOFF)
    if backoff > scheduler_config.Options("").max_backoff_seconds:
        yield traps.BACKOFF.found(f"{source}: podMaxBackoffSeconds is {backoff}", source)
    if config.beside:
        yield from _beside(config, document)


def _verbs(source: str, entries: Sequence[facts.Raw]) -> Iterator[findings.Finding]:
    binding = [n for n, entry in enumerate(entries) if entry.get("bindVerb")]
    if not binding:
        yield traps.NO_BIND.found(f"{source}: no entry under extenders has a bindVerb", source)
    if len(binding) > 1:
        listed = " and ".join(f"extenders[{n}]" for n in binding)
        yield traps.MANY_BINDS.found(f"{source}: {listed} have a bindVerb", source)
    managed = [
        str(resource.get("name"))
        for entry in entries
        for resource in facts.stated(entry, "managedResources")
    ]
    twice = sorted({name for name in managed if managed.count(name) > 1})
    if twice:
        yield traps.MANAGED_CORE.found(f"{source}: {', '.join(twice)} is managed twice", source)
    missing = [
        verb
        for verb in ("filterVerb", "prioritizeVerb", "preemptVerb")
        if not any(entry.get(verb) for entry in entries)
    ]
    if missing:
        yield traps.VERB.found(f"{source}: no entry has {', '.join(missing)}", source)


def _entry(source: str, where: str, entry: facts.Raw) -> Iterator[findings.Finding]:
    if entry.get("ignorable"):
        if entry.get("bindVerb"):
            yield traps.IGNORABLE_BIND.found(f"{where} has bindVerb and is ignorable", source)
        elif entry.get("filterVerb"):
            yield traps.IGNORABLE_FILTER.found(f"{where} has filterVerb and is ignorable", source)
    if entry.get("bindVerb") and entry.get("filterVerb"):
        yield traps.ONE_ENTRY.found(f"{where} has both filterVerb and bindVerb", source)
    if entry.get("filterVerb") and not entry.get("nodeCacheCapable"):
        yield traps.CACHE.found(f"{where} is not nodeCacheCapable", source)
    if entry.get("prioritizeVerb"):
        weight = entry.get("weight") or 0
        if weight <= 0:
            yield traps.NO_WEIGHT.found(f"{where} has prioritizeVerb and weight {weight}", source)
        elif weight != 1:
            yield traps.WEIGHT.found(f"{where} has weight {weight}", source)


def _managed(source: str, where: str, entry: facts.Raw) -> Iterator[findings.Finding]:
    managed = facts.stated(entry, "managedResources")
    listed = [str(resource.get("name")) for resource in managed]
    core = [name for name in listed if is_native(name)]
    if core:
        yield traps.MANAGED_CORE.found(f"{where}: managedResources names {', '.join(core)}", source)
    elif listed:
        yield traps.MANAGED.found(
            f"{where} is called for pods that ask for {', '.join(listed)}", source
        )
    ignored = [str(r.get("name")) for r in managed if r.get("ignoredByScheduler")]
    if ignored:
        yield traps.IGNORED.found(f"{where}: {', '.join(ignored)} is ignoredByScheduler", source)


def is_native(resource: str) -> bool:
    """Whether kube-scheduler refuses a resource in managedResources, as one of Kubernetes' own."""
    domain, slash, _ = resource.partition("/")
    return not slash or domain == "kubernetes.io" or domain.endswith(".kubernetes.io")


def _timeouts(
    source: str, where: str, entry: facts.Raw, deadlines: Deadlines
) -> Iterator[findings.Finding]:
    try:
        written = entry.get("httpTimeout")
        seconds = DEFAULT_TIMEOUT if written is None else durations.seconds(str(written))
    except ValueError as error:
        yield traps.UNREADABLE.found(f"{where}.httpTimeout: {error}", source)
        return
    if entry.get("filterVerb") and not entry.get("bindVerb"):
        if seconds > LONGEST_FILTER:
            yield traps.FILTER_LONG.found(f"{where}: httpTimeout is {seconds:g} s", source)
        elif seconds <= deadlines.proof:
            yield traps.FILTER_SHORT.found(
                f"{where}: httpTimeout is {seconds:g} s and a proof that the view is current may "
                f"take {deadlines.proof:g} s",
                source,
            )
    if entry.get("bindVerb") and seconds <= deadlines.bind:
        yield traps.BIND_SHORT.found(
            f"{where}: httpTimeout is {seconds:g} s and a bind may take {deadlines.bind:g} s",
            source,
        )


def _connection(source: str, where: str, entry: facts.Raw) -> Iterator[findings.Finding]:
    url = parse.urlsplit(str(entry.get("urlPrefix", "")))
    tls = entry.get("tlsConfig") or {}
    if not is_loopback(url.hostname or ""):
        yield traps.NOT_LOCAL.found(f"{where} calls {entry.get('urlPrefix')}", source)
    if not (entry.get("enableHTTPS") or url.scheme == "https"):
        return
    if tls.get("insecure") or not (tls.get("caFile") or tls.get("caData")):
        how = "is insecure" if tls.get("insecure") else "names no CA"
        yield traps.NO_CA.found(f"{where} uses HTTPS and {how}", source)
    elif not (tls.get("certFile") or tls.get("certData")):
        yield traps.NO_CLIENT_CERTIFICATE.found(f"{where} presents no client certificate", source)


def is_loopback(host: str) -> bool:
    """Whether a host of a URL is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _weights(source: str, document: facts.Raw) -> Iterator[findings.Finding]:
    for profile in facts.stated(document, "profiles") or ({},):
        given = weights(profile)
        low = [
            f"{plugin} {given[plugin]} instead of {stock * scheduler_config.SCALE}"
            for plugin, stock in scheduler_config.STOCK_WEIGHTS.items()
            if plugin in given and given[plugin] < stock * scheduler_config.SCALE
        ]
        if low:
            named = profile.get("schedulerName") or names.DEFAULT_SCHEDULER
            yield traps.UNSCALED.found(
                f"{source}: profile {named} has score weights {findings.some(low, 3)}", source
            )


def weights(profile: facts.Raw) -> dict[str, int]:
    """Return the weight of each in-tree scorer that a profile leaves switched on."""
    plugins = profile.get("plugins") or {}
    found = dict(scheduler_config.STOCK_WEIGHTS)
    for point in ("multiPoint", "score"):
        stated = plugins.get(point) or {}
        off = {str(plugin.get("name")) for plugin in facts.stated(stated, "disabled")}
        found = {} if "*" in off else {name: w for name, w in found.items() if name not in off}
        for plugin in facts.stated(stated, "enabled"):
            name = str(plugin.get("name"))
            if name in scheduler_config.STOCK_WEIGHTS:
                stock = scheduler_config.STOCK_WEIGHTS[name]
                found[name] = int(plugin.get("weight") or found.get(name, stock))
    return found


def _beside(config: facts.SchedulerConfig, document: facts.Raw) -> Iterator[findings.Finding]:
    election = document.get("leaderElection") or {}
    elects = bool(election.get("leaderElect", True))
    name = election.get("resourceName") or "kube-scheduler"
    namespace = election.get("resourceNamespace") or "kube-system"
    if elects and (name, namespace) == ("kube-scheduler", "kube-system"):
        yield traps.LEASE_SHARED.found(
            f"{config.source}: leaderElection uses Lease {namespace}/{name}", config.source
        )
    if not elects and config.replicas > 1:
        yield traps.NO_ELECTION.found(
            f"{config.source}: {config.replicas} replicas, and leaderElect is false", config.source
        )
    for profile in facts.stated(document, "profiles") or ({},):
        if (profile.get("schedulerName") or names.DEFAULT_SCHEDULER) == names.DEFAULT_SCHEDULER:
            yield traps.NAME_TAKEN.found(
                f"{config.source}: a profile is called {names.DEFAULT_SCHEDULER}", config.source
            )


def _by_cluster(
    config: facts.SchedulerConfig,
    document: facts.Raw,
    version: facts.Version | None,
    nodes: int,
) -> Iterator[findings.Finding]:
    if not facts.stated(document, "extenders"):
        return
    share = int(document.get("percentageOfNodesToScore") or 0)
    if nodes > SAMPLED_NODES and share != 100:
        yield traps.SAMPLE.found(
            f"{config.source}: of {nodes} nodes only a sample is shown to the extender per pod",
            config.source,
        )
    if version is not None and version.minor >= 35 and not config.beside:
        yield traps.BATCHING.found(
            f"{config.source}: on {version.text} the extender switches off opportunistic batching",
            config.source,
        )


def _proxies(known: facts.Facts) -> Iterator[findings.Finding]:
    for workload in facts.given(known.deployments):
        if not facts.is_ours(workload) or facts.component(workload) != "scheduler":
            continue
        for container in facts.containers(workload):
            variables = {str(v.get("name", "")).upper() for v in facts.stated(container, "env")}
            if "HTTPS_PROXY" in variables and "NO_PROXY" not in variables:
                name = facts.key(workload)
                yield traps.PROXY.found(f"container {container.get('name')} of {name}", name)


CHECK = findings.Check(
    "scheduler", "kube-scheduler calls the extender as it should", traps.ALL, run
)
