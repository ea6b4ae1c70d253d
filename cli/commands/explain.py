"""Tell in plain sentences why a pod waits or is where it is, and why a node lends what it lends."""

import argparse
import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from api import names, resources
from api.koordinator.metrics import nodemetric
from cli import clusters, reading
from cli.explain import (
    gang_story,
    gang_trial,
    layout_text,
    migration_story,
    node_layout,
    node_story,
    quota_story,
    reservation_story,
    stories,
    story_sources,
)
from cli.explain.pod import pod_facts, pod_story, quota_layer
from cli.output import answers, terminal
from cli.placement import asked_pod
from cli.quota import cluster, preemptor, table
from cli.reservations import cluster as reserved
from cli.snapshot import format as formats
from cli.snapshot import reader
from extender.preemption import planner
from kube.client import client as clients
from kube.client import errors
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import entry

_SUBJECTS = "pod|node|quota|reservation|gang|migration"


_EXISTENCE: Mapping[str, Sequence[str]] = {
    "gang": (
        story_sources.EVERYTHING,
        resources.PODS.review_name(),
        resources.POD_GROUPS.review_name(),
    ),
    "reservation": (story_sources.RESERVATIONS, resources.RESERVATIONS.review_name()),
    "migration": (story_sources.MIGRATIONS,),
}
"""What says whether there is one, by subject: where it was not read, nobody knows."""


class ArgumentError(explained_error.ExplainedError):
    """What was asked cannot be told; says what to write instead."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord explain`."""
    parser.description = (
        "Tell the story of a pod, a node, a quota, a Reservation, a gang or a migration. Exit "
        "code: 0 it exists, 1 it does not or the API server cannot be reached, 2 bad arguments."
    )
    subjects = parser.add_subparsers(dest="subject", metavar=_SUBJECTS, required=True)
    for each in (*_of_pods(subjects), *_of_objects(subjects)):
        clusters.add_arguments(each)
        clusters.add_output(each)
        each.add_argument(
            "--koord-namespace",
            default=names.NAMESPACE,
            metavar="NAMESPACE",
            help="namespace of the installation (default %(default)s)",
        )
        for process in story_sources.PROCESSES:
            each.add_argument(
                f"--{process}-url",
                default="",
                metavar="URL",
                help=f"address of the {process}'s health port; else the API server is asked",
            )
    parser.set_defaults(run=_run)


def _of_pods(
    subjects: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> Iterator[argparse.ArgumentParser]:
    pod = subjects.add_parser("pod", help="who changed it, what refused it, what would help")
    pod.add_argument("name", nargs="?", default="", help="name, or namespace/name")
    pod.add_argument("-n", "--namespace", default="default", help="namespace of the pod")
    pod.add_argument("-f", "--file", type=Path, help="try the pod in this file: nothing is created")
    node = subjects.add_parser("node", help="what it lends to batch work, term by term")
    node.add_argument("name")
    node.add_argument(
        "--topology",
        action="store_true",
        help="instead: its sockets, NUMA nodes, CPUs and devices, and which pod holds what",
    )
    yield from (pod, node)


def _of_objects(
    subjects: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> Iterator[argparse.ArgumentParser]:
    quota = subjects.add_parser("quota", help="what it may use and why, who holds what it lends")
    quota.add_argument("name", help="name, or namespace/name")
    quota.add_argument(
        "-n", "--namespace", default="", help="namespace of the quota; names are unique without it"
    )
    quota.add_argument("--snapshot", type=Path, metavar="FILE", help="read this file instead")
    reservation = subjects.add_parser(
        "reservation", help="why it waits, who may use it, who does, what is left, when it ends"
    )
    reservation.add_argument("name")
    reservation.add_argument("--snapshot", type=Path, metavar="FILE", help="read this file instead")
    gang = subjects.add_parser(
        "gang", help="who belongs to it, who has a place, what it waits for, what would help"
    )
    gang.add_argument("name", help="name, or namespace/name")
    gang.add_argument("-n", "--namespace", default="default", help="namespace of the gang")
    gang.add_argument("--snapshot", type=Path, metavar="FILE", help="read this file instead")
    migration = subjects.add_parser(
        "migration", help="why a pod moves or has moved, how far that is, what it has brought"
    )
    migration.add_argument("name", help="a PodMigrationJob, or namespace/name of a pod")
    yield from (quota, reservation, gang, migration)


def _run(chosen: argparse.Namespace) -> int:
    try:
        if chosen.subject == "node" and chosen.topology:
            return asyncio.run(_laid_out(chosen))
        story = asyncio.run(_told(chosen))
        _check_existence(chosen.subject, story)
    except (errors.KubeError, ArgumentError, reader.FileError, reader.UnreadError) as error:
        terminal.warn(f"koord explain: {error}")
        return entry.BAD_SETTINGS if isinstance(error, ArgumentError) else entry.FAILED
    if answers.is_document(chosen.output):
        answers.show(chosen.output, stories.document(story))
    else:
        terminal.lines(stories.lines(story))
    return entry.OK if story.found else entry.FAILED


def _check_existence(subject: str, story: stories.Story) -> None:
    """Raise where the story says that there is none, and nobody could have seen one."""
    for source in () if story.found else story.sources:
        if source.name in _EXISTENCE.get(subject, ()) and not source.reached:
            raise reader.UnreadError(
                f"whether there is {story.subject} is not known: {source.note}"
            )


async def _told(chosen: argparse.Namespace) -> stories.Story:
    if chosen.subject == "quota":
        snapshot = await reader.opened(chosen, clocks.SystemClock())
        story = quota(cluster.build(snapshot), chosen.name, chosen.namespace)
        if not story.found:
            reader.demand(snapshot, *resources.QUOTA_RESOURCES)
        return story
    if chosen.subject == "reservation" and chosen.snapshot is not None:
        return reservation_story.told(
            reservation_story.Facts(reserved.build(reader.load(chosen.snapshot)), chosen.name)
        )
    if chosen.subject == "gang" and chosen.snapshot is not None:
        key = key_of(chosen.name, chosen.namespace)
        return gang_story.told(gang_trial.facts(reader.load(chosen.snapshot), key))
    clock = clocks.SystemClock()
    async with _sources(chosen, clock) as sources:
        if chosen.subject == "gang":
            return await gang(sources, key_of(chosen.name, chosen.namespace))
        if chosen.subject == "reservation":
            return await reservation(sources, chosen.name)
        if chosen.subject == "migration":
            return await migration(sources, chosen.name, clock.now())
        if chosen.subject == "node":
            return await node(sources, chosen.name, clock.now())
        if chosen.file is not None:
            return await tried(sources, read(chosen.file), chosen.namespace)
        return await pod(sources, key_of(chosen.name, chosen.namespace))


@contextlib.asynccontextmanager
async def _sources(
    chosen: argparse.Namespace, clock: clocks.Clock
) -> AsyncIterator[story_sources.Sources]:
    access, listening = await clusters.reach(chosen)
    urls = {
        name: getattr(chosen, f"{name}_url") or listening.processes.get(name, "")
        for name in story_sources.PROCESSES
    }
    options = story_sources.Options(chosen.koord_namespace, urls)
    async with clients.Client(access, clock=clock, user_agent="koord-explain") as kube:
        yield story_sources.Sources(kube, clock, options)


async def _laid_out(chosen: argparse.Namespace) -> int:
    """Print how a node is laid out and who holds what."""
    async with _sources(chosen, clocks.SystemClock()) as sources:
        found = await sources.node(chosen.name)
        if found is None:
            terminal.warn(f"koord explain: there is no node {chosen.name}")
            return entry.FAILED
        layout = node_layout.document(await sources.layout(found))
    missed = [one.sentence() for one in sources.noted if not one.reached]
    if answers.is_document(chosen.output):
        answers.show(chosen.output, layout | {"notReached": missed})
        return entry.OK
    terminal.lines(layout_text.lines(layout))
    terminal.lines(f"Not reached: {sentence}" for sentence in missed)
    return entry.OK


def key_of(name: str, namespace: str) -> str:
    """Return namespace/name."""
    if not name:
        raise ArgumentError("name a pod, or a file with -f")
    if name.count("/") > 1 or name.startswith("/") or name.endswith("/"):
        raise ArgumentError(f"{name}: write a name, or namespace/name")
    return name if "/" in name else f"{namespace}/{name}"


def read(path: Path) -> dict[str, Any]:
    """Read a pod, or the pod template of a workload, from a file."""
    try:
        found = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, *reading.UNREADABLE) as error:
        raise ArgumentError(f"{path} cannot be read: {reading.refusal(error)}") from error
    bodies = [one for one in map(asked_pod.body, found) if one is not None]
    if len(bodies) > 1:
        raise ArgumentError(f"{path} holds {len(bodies)} pods or workloads: leave one in it")
    body = bodies[0] if bodies else None
    if body is None:
        raise ArgumentError(f"{path} holds neither a Pod nor a workload with a pod template")
    return body


async def tried(
    sources: story_sources.Sources, body: dict[str, Any], namespace: str
) -> stories.Story:
    """Tell what admission answers to a pod that is only tried."""
    metadata = body.get("metadata") or {}
    namespace = str(metadata.get("namespace") or namespace)
    key = f"{namespace}/{metadata.get('name') or 'tried'}"
    accepted, refusal = await sources.tried(body, namespace)
    facts = pod_facts.Facts(key, pod=accepted, trial=refusal)
    return _with_sources(pod_story.told(facts), sources)


async def pod(sources: story_sources.Sources, key: str) -> stories.Story:
    """Tell the story of a pod."""
    namespace, _, name = key.partition("/")
    found = await sources.pod(key)
    if found is None:
        creations = await sources.events(namespace, "reason=FailedCreate")
        reviews = await sources.page(story_sources.WEBHOOK, "debug/reviews", {"pod": key})
        facts = pod_facts.Facts(key, creations=creations, reviews=reviews)
        return _with_sources(pod_story.told(facts), sources)
    events = await sources.events(namespace, f"involvedObject.name={name}")
    waits = not (found.get("spec") or {}).get("nodeName")
    explanation = await sources.explanation(key) if waits else None
    page = None
    notes = (found.get("metadata") or {}).get("annotations") or {}
    if waits or names.PLACEMENT in notes:
        page = await sources.page(story_sources.EXTENDER, "debug/explain", {"pod": key})
    quotas = await sources.quotas(pods=waits)
    facts = pod_facts.Facts(key, found, events, explanation=explanation, page=page, quotas=quotas)
    if waits or names.ANNOTATION_RESERVATION_ALLOCATED in notes:
        reservations = await sources.reservations(pods=False)
        facts = dataclasses.replace(facts, reservations=reservations)
    facts = dataclasses.replace(facts, planned=planned(facts))
    wanted = pod_facts.wanted(facts)
    if not waits:
        metric = await sources.metric(str(found["spec"]["nodeName"]))
        facts = dataclasses.replace(facts, metric=_metric(metric))
    if waits and wanted:
        facts = dataclasses.replace(facts, offers=await sources.offers())
    if wanted and (place := pod_facts.nearest(facts)):
        there = await sources.node(place)
        lending = await sources.lending(there) if there is not None else None
        facts = dataclasses.replace(facts, lending=lending)
    return _with_sources(pod_story.told(facts), sources)


def planned(facts: pod_facts.Facts) -> quota_layer.Planned | None:
    """Ask the extender's planner for whom others would leave, as things are now."""

    def plan() -> quota_layer.Planned | None:
        pod = pod_facts.read(facts)
        if facts.quotas is None or not quota_layer.may_preempt(facts.quotas, pod):
            return None
        found = preemptor.planned(facts.quotas, pod.metadata.uid)
        if isinstance(found, planner.NoPlan):
            return quota_layer.Planned(reason=found.reason)
        victims = found.found.victims
        named = tuple((claim.pod.key, claim.pod.requirements.priority) for claim in victims)
        return quota_layer.Planned(named, found.node, found.found.violations > 0)

    return reading.either(None, plan)


async def node(sources: story_sources.Sources, name: str, now: float) -> stories.Story:
    """Tell the story of a node."""
    found = await sources.node(name)
    if found is None:
        return _with_sources(node_story.told(node_story.Facts(name, now)), sources)
    metric = await sources.metric(name)
    offers = await sources.offers(name)
    page = f"apis/v1/plugins/LoadAwareScheduling/node/{name}"
    facts = node_story.Facts(
        name=name,
        now=now,
        node=node_story.read_node(found),
        raw=found,
        lending=await sources.lending(found),
        offer=offers[0] if offers else None,
        metric=_metric(metric),
        load=await sources.page(story_sources.EXTENDER, page),
        events=await sources.events("", f"involvedObject.name={name}"),
    )
    return _with_sources(node_story.told(facts), sources)


def _metric(raw: Mapping[str, Any] | None) -> nodemetric.NodeMetric | None:
    return None if raw is None else node_story.read_metric(raw)


async def reservation(sources: story_sources.Sources, name: str) -> stories.Story:
    """Tell the story of a Reservation."""
    found = await sources.reservations(pods=True)
    if found is None or name not in found.found:
        none = reserved.Cluster({}, {}, {}, 0.0)
        story = reservation_story.told(reservation_story.Facts(found or none, name))
        return _with_sources(story, sources)
    fields = f"involvedObject.kind=Reservation,involvedObject.name={name}"
    facts = reservation_story.Facts(found, name, await sources.events("", fields))
    for pod in found.stand_ins(name)[:1]:
        facts = dataclasses.replace(facts, stand_in=await _waiting(sources, pod.metadata.key))
    return _with_sources(reservation_story.told(facts), sources)


async def _waiting(sources: story_sources.Sources, key: str) -> pod_facts.Facts:
    """Read why a pod waits that stands in for a Reservation."""
    page = await sources.page(story_sources.EXTENDER, "debug/explain", {"pod": key})
    explanation = await sources.explanation(key)
    return pod_facts.Facts(key, await sources.pod(key), explanation=explanation, page=page)


async def gang(sources: story_sources.Sources, key: str) -> stories.Story:
    """Tell the story of a gang."""
    found = await sources.everything()
    none = formats.Snapshot(taken_at="")
    facts = gang_trial.facts(found or none, key)
    one = facts.cluster.named(key)
    if one is not None:
        namespace = one.declared.namespace
        members = {member.pod.metadata.name for member in one.members}
        events = [
            event
            for event in await sources.events(namespace, "type=Warning")
            if gang_trial.concerns(event, one.declared.name, members)
        ]
        facts = dataclasses.replace(facts, events=events)
    return _with_sources(gang_story.told(facts), sources)


async def migration(sources: story_sources.Sources, name: str, now: float) -> stories.Story:
    """Tell the story of a PodMigrationJob, or of the latest one that is about a pod."""
    facts = migration_story.Facts(name, await sources.migrations(), now)
    for job in migration_story.jobs_of(facts)[:1]:
        fields = (
            f"involvedObject.kind=PodMigrationJob,involvedObject.name={job['metadata']['name']}"
        )
        facts = dataclasses.replace(facts, events=await sources.events("", fields))
    return _with_sources(migration_story.told(facts), sources)


def quota(found: cluster.Cluster, asked: str, namespace: str = "") -> stories.Story:
    """Tell the story of a quota, or which names are near one that does not exist."""
    before, _, name = asked.rpartition("/")
    namespace = before or namespace
    one = found.forest.quota(name)
    if namespace and one is not None and one.namespace != namespace:
        verdict = f"There is no ElasticQuota {namespace}/{name}: {name} is in {one.namespace}."
        return stories.Story(f"quota {namespace}/{name}", verdict, found=False)
    if found.forest.figures(name) is not None:
        return quota_story.told(found, name)
    known = [*found.forest.names(), names.DEFAULT_QUOTA, names.SYSTEM_QUOTA]
    verdict = table.unknown(name, known)
    return stories.Story(f"quota {name}", verdict[0].upper() + verdict[1:], found=False)


def _with_sources(story: stories.Story, sources: story_sources.Sources) -> stories.Story:
    return dataclasses.replace(story, sources=tuple(dict.fromkeys(sources.noted)))
