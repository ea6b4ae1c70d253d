"""Watches of pods in protobuf and in JSON say the same of everything that is read."""

import asyncio

from api import resources
from api.kubernetes import protobuf_fields
from extender.scoring import traits
from kube.client import access, client, protobuf, wire
from process.runtime import clock as clocks
from tests import patience
from tests.planes import raw, world

NAME, KEPT = "a", "example.com/kept"
MOMENT = "2026-07-01T00:00:00Z"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONTAINER = {
    "name": "main",
    "image": "registry/app:v1",
    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}},
    "env": [{"name": "KEY", "value": "of no interest"}],
}
TERM = {
    "labelSelector": {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
    },
    "namespaces": ["shop"],
    "topologyKey": "zone",
    "namespaceSelector": {},
}
SELECTOR = {
    "matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["4"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
POD = {
    "metadata": {
        "name": NAME,
        "labels": {"app": "web", "empty": ""},
        "annotations": {"note": "Größe"},
        # The garbage collector deletes pods whose owners never existed, at any moment.
        "finalizers": [KEPT],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"},
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v", "controller": True},
        ],
    },
    "spec": {
        "schedulerName": "none",
        "containers": [CONTAINER, {"name": "side", "image": "b"}],
        "initContainers": [{"name": "init", "image": "c", "restartPolicy": "Always"}],
        "nodeSelector": {"disk": "ssd"},
        "terminationGracePeriodSeconds": 0,
        "activeDeadlineSeconds": 600,
        "hostNetwork": True,
        "tolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
            {"key": "b", "value": "c", "operator": "Equal"},
        ],
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [SELECTOR]},
                PREFERRED: [{"weight": 7, "preference": SELECTOR}],
            },
            "podAffinity": {REQUIRED: [TERM]},
            "podAntiAffinity": {PREFERRED: [{"weight": 9, "podAffinityTerm": TERM}]},
        },
    },
}

STATUS = {
    "phase": "Running",
    "reason": "Told",
    "nominatedNodeName": "n2",
    "podIP": "10.0.0.1",
    "podIPs": [{"ip": "10.0.0.1"}],
    "startTime": MOMENT,
    "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": MOMENT},
        {"type": "Ready", "status": "False", "reason": "Wait", "message": "not yet"},
    ],
    "containerStatuses": [
        {
            "name": "main", "ready": True, "started": False, "restartCount": 2,
            "image": "registry/app:v1", "imageID": "1", "containerID": "containerd://1",
            "allocatedResources": {"cpu": "100m"},
            "resources": {"requests": {"cpu": "50m"}},
            "state": {"running": {"startedAt": MOMENT}},
        },
        {
            "name": "side", "image": "b", "imageID": "", "ready": False, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "finishedAt": MOMENT, "reason": "Completed"}},
        },
    ],
    "initContainerStatuses": [
        {
            "name": "init", "image": "c", "imageID": "", "ready": False, "restartCount": 0,
            "state": {"waiting": {"reason": "Pulling"}},
        }
    ],
}  # fmt: skip


def _connected(plane):
    entry = access.Access(plane.server, plane.ca, access.StaticToken(plane.token))
    return client.Client(entry, clock=clocks.SystemClock())


async def _watched(kube, pods, version, *, binary):
    """Return the events of one pod until it is gone."""
    codec = protobuf.Codec("Pod", protobuf_fields.POD)
    reader = wire.Reader(traits.PlacedPod, lambda pod: pod, codec)
    found, formats = [], set()
    query = {"resourceVersion": version}
    async with kube.watch(pods, query, protobuf=binary) as batches:
        async for lines in batches:
            for line in lines:
                formats.add(line[:1])
                found.append(reader.event(line))
            if found and found[-1].deleted:
                return found, formats
    raise AssertionError("the watch has ended")


async def test_events_are_the_same_in_both_formats(real_plane):
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as admin,
        _connected(real_plane) as kube,
        asyncio.timeout(patience.SECONDS),
    ):
        here = world.World(real_plane, admin)
        await here.open()
        pods = client.Selection(resources.PODS, here.namespace)
        version = str(await kube.current_version(resources.PODS))
        async with asyncio.TaskGroup() as group:
            both = [
                group.create_task(_watched(kube, pods, version, binary=binary))
                for binary in (True, False)
            ]
            path = here.path("pods", NAME)
            await admin.post(here.path("pods"), POD)
            answer = await admin.call(
                "PATCH", f"{path}/status", {"status": STATUS}, kind=raw.MERGE_PATCH
            )
            assert answer.status == 200, answer.message
            await admin.call("DELETE", path, query={"gracePeriodSeconds": "0"})
            released = {"metadata": {"finalizers": None}}
            answer = await admin.call("PATCH", path, released, kind=raw.MERGE_PATCH)
            assert answer.status == 200, answer.message
        (binary, frames), (json, lines) = (task.result() for task in both)
        await here.close()
    assert (frames, lines) == ({b"\n"}, {b"{"})
    assert binary == json
    assert len(binary) >= 3
    assert not any(event.item.flaw for event in binary)
