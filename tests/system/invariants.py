"""What must hold after every scenario, whatever was killed; reads the API server and the extender.

I1 no node is over-committed; I2 each bound pod was placed once and no promise outlives its pod;
I3 the extender's picture equals one built from a fresh list; I4 every pending pod has a reason;
I5 nothing grows; I6 readiness tells the truth.
"""

import asyncio
import collections
import contextlib
import gc
import json
from pathlib import Path

import aiohttp
import msgspec

from api import names, resources
from api.kubernetes import core
from domain.pods import resources as amounts
from extender import app as extenders
from extender.state import invariants
from kube.client import access as accesses
from kube.client.connections import connection_pool

COUNTED = (names.CPU, names.MEMORY, names.BATCH_CPU, names.BATCH_MEMORY)
PROMISES_SECONDS = 35.0
AGREEMENT_SECONDS = 10.0


def overcommitted(world):
    """I1, by what the API server knows alone."""
    held = collections.defaultdict(dict)
    for raw in world.pods():
        pod = msgspec.convert(raw, core.Pod)
        if pod.spec.node_name and not pod.finished:
            node = held[pod.spec.node_name]
            held[pod.spec.node_name] = amounts.add(node, amounts.pod_requests(pod))
    problems = []
    for raw in world.plane.objects.list(resources.NODES).items:
        node = msgspec.convert(raw, core.Node)
        offered = amounts.node_allocatable(node)
        problems += [
            f"I1 node {node.metadata.name} gave {taken} of {offered.get(name, 0)} {name}"
            for name, taken in held[node.metadata.name].items()
            if name in COUNTED and taken > offered.get(name, 0)
        ]
    return problems


def misplaced(world):
    """I2: one annotation that names the node the pod is on; no promise without its pod."""
    problems = []
    for pod in world.pods():
        meta, node = pod["metadata"], pod["spec"].get("nodeName")
        written = meta.get("annotations", {}).get(names.PLACEMENT)
        if node and (written is None or json.loads(written)["node"] != node):
            problems.append(f"I2 pod {meta['name']} is on {node}, its placement says {written}")
        if not node and written is not None:
            problems.append(f"I2 pod {meta['name']} waits, its placement says {written}")
    known = {pod["metadata"]["uid"] for pod in world.pods()}
    promises = world.extender.books.assumptions
    problems += [f"I2 promise for {uid} has no pod" for uid in promises if uid not in known]
    return problems


def doubled(bindings):
    """I2: no pod was bound more than once, by everything the store ever told."""
    return [f"I2 pod {uid} was bound {n} times" for uid, n in bindings.items() if n > 1]


async def drifted(world):
    """I3: compare with another extender that has just listed everything.

    Events reach the two one after the other, so they may differ for a moment, but not for long.
    """
    live = world.extender.books
    plane = world.plane
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    chosen = world.extender_settings()
    async with extenders.running(chosen, access=access, clock=world.clock) as fresh:

        def differences():
            wanted, present = fresh.books.cluster.fingerprint(), live.cluster.fingerprint()
            return [
                f"I3 node {name}: {present.get(name)} instead of {wanted.get(name)}"
                for name in sorted(present.keys() | wanted.keys())
                if present.get(name) != wanted.get(name)
            ]

        await world.until(lambda: not fresh.health.failing(), "a second extender is ready")
        end = world.clock.monotonic() + AGREEMENT_SECONDS
        await world.until(
            lambda: not differences() or world.clock.monotonic() > end, "the two agree"
        )
        problems = [f"I3 {text}" for text in invariants.check(live, fresh.feeds.pods)]
        return problems + differences()


def unexplained(world):
    """I4: whoever waits knows why."""
    return [
        f"I4 pod {pod['metadata']['name']} waits without a reason"
        for pod in world.pods()
        if not pod["spec"].get("nodeName") and not world.refusal(pod["metadata"]["name"])
    ]


# With nine sizes, one left behind per death is more than this, and the least that is.
SETTLED = 3
BREATH = 3


# Both ends of it, as all of them are in this process, and the task of its server.
TASKS_OF_A_CONNECTION, FILES_OF_A_CONNECTION = 1, 2


def size(world):
    """What I5 watches: how many tasks and file descriptors there are.

    Connections that rest do not count: how many a pool keeps follows from how many calls happened
    to meet. Those that no pool knows are found by `strays`.
    """
    resting = sum(one.uplink.resting for one in world.processes.values() if one.alive)
    tasks, files = len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir()))
    return tasks - TASKS_OF_A_CONNECTION * resting, files - FILES_OF_A_CONNECTION * resting


def strays():
    """I5: open connections for short calls that no pool knows."""
    # Some million objects are looked at: to compare types is several times faster than isinstance.
    kinds = {connection_pool.Pool, connection_pool.Connection}
    there = [one for one in gc.get_objects() if type(one) in kinds]
    pooled = {
        id(one)
        for pool in there
        if isinstance(pool, connection_pool.Pool)
        for one in pool.connections()
    }
    return [
        f"I5 a connection belongs to no pool: {one!r}"
        for one in there
        if isinstance(one, connection_pool.Connection) and one.open and id(one) not in pooled
    ]


def held(folder):
    """Files below a folder that are gone and open nevertheless: groups of pods that have left."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            target = str(entry.readlink())
            gone = target.startswith(f"{folder}/") and target.endswith(" (deleted)")
            if gone and "/cgroup/" in target:
                found.append(target)
    return found


def growing(sizes):
    """I5: pools breathe by a connection, but what each death leaves behind adds up."""
    problems = []
    for what, *series in zip(("tasks", "file descriptors"), *sizes, strict=True):
        if min(series[-SETTLED:]) > max(series[:SETTLED]) + BREATH:
            problems.append(f"I5 {what} grow: {series}")
    return problems


async def untruthful(world):
    """I6: whoever says ready has every cache, over the same HTTP that a kubelet uses."""
    problems = []
    async with aiohttp.ClientSession() as session:
        for name, process in world.processes.items():
            async with session.get(f"{process.app.health_url}/readyz") as answer:
                body = await answer.json()
            if answer.status != 200 or not body["ready"]:
                problems.append(f"I6 {name} is not ready: {body['failing']}")
    stores = world.extender.feeds
    if not all(store.synced for store in (stores.pods, stores.nodes, stores.reports)):
        problems.append("I6 the extender says ready before its caches are")
    return problems


async def broken(world, bindings):
    """Return everything that does not hold once promises had time to expire."""
    await world.pass_time(PROMISES_SECONDS)
    await world.until(
        lambda: not any(process.complaints() for process in world.processes.values()),
        "all are ready",
    )
    problems = overcommitted(world) + misplaced(world) + doubled(bindings)
    return problems + await drifted(world) + unexplained(world) + await untruthful(world)
