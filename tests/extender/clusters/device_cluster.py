"""Nodes with devices, pods that want some, and the production plug-in, without an API server."""

import json

import msgspec
import numpy as np

from api.koordinator import devices
from api.kubernetes import core
from api.plugin_args import node as node_arguments
from domain.devices import inventory
from extender import registry
from extender.framework import pipeline, verdicts, views
from extender.plugins.device_share import device_share
from extender.state import claims, cluster_state, deltas, records

NAME = device_share.NAME
COLUMNS = ("cpu", "memory")
NOW = 0.0
GIB = 1 << 30


def plugin(**written):
    arguments = node_arguments.DeviceShareArgs.model_validate(written).complete()
    return device_share.DeviceShare(device_share.arguments(arguments))


def gpu(minor, *, numa=0, pcie="0", health=True, memory="80Gi", **more):
    return {
        "type": "gpu",
        "minor": minor,
        "id": f"GPU-{minor}",
        "health": health,
        "resources": {
            "koordinator.sh/gpu-core": "100",
            "koordinator.sh/gpu-memory-ratio": "100",
            "koordinator.sh/gpu-memory": memory,
        },
        "topology": {"socketID": numa, "nodeID": numa, "pcieID": pcie},
        **more,
    }


def rdma(minor, *, numa=0, pcie="0", health=True):
    return {
        "type": "rdma",
        "minor": minor,
        "id": f"mlx5_{minor}",
        "health": health,
        "resources": {"koordinator.sh/rdma": "100"},
        "topology": {"socketID": -1, "nodeID": numa, "pcieID": pcie},
    }


def device(name, *found, labels=None, annotations=None):
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"devices": list(found)}}


def eight(name="n1"):
    """Eight GPUs on four switches of two NUMA nodes, with an RDMA card on every switch."""
    gpus = [gpu(m, numa=m // 4, pcie=str(m // 2)) for m in range(8)]
    return device(name, *gpus, *(rdma(m, numa=m // 2, pcie=str(m)) for m in range(4)))


class DeviceCluster:
    """A cluster state under the plug-in, and how pods come and go."""

    def __init__(self, made=None):
        self.plugin = made or plugin()
        self.state = cluster_state.ClusterState((self.plugin,), COLUMNS)
        self.projector = records.Projector(None, (self.plugin,), registry.inputs((self.plugin,)))
        self.pipeline = pipeline.Pipeline(
            pre_filters=(self.plugin,),
            filters=(self.plugin,),
            scorers=(pipeline.Weighted(self.plugin, 1),),
            aligned=pipeline.numa.Aligned((self.plugin,)),
            reservers=(self.plugin,),
            selectors={NAME: self.plugin},
            codecs=(self.plugin,),
            diagnosers={NAME: self.plugin},
            hints={NAME: self.plugin},
        )
        self.known = {}

    def node(self, name="n1", *, labels=None, cpu="128", memory="1Ti"):
        raw = {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}},
            "status": {"allocatable": {"cpu": cpu, "memory": memory}},
        }
        record = self.projector.node(msgspec.convert(raw, core.Node))
        self.state.apply(deltas.NodeDelta(name, self.state.node(name), record))

    def devices(self, raw):
        """Set the Device object of a node."""
        name = raw["metadata"]["name"]
        self.told(name, inventory.read(devices.read_device(raw)))

    def told(self, name, record):
        before = self.known.get(name)
        self.known[name] = record
        self.state.apply(deltas.ObjectDelta(deltas.DEVICE, name, before, record, node=name))

    def pod(self, name, requests, *, annotations=None, labels=None, node="", priority=0):
        raw = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "annotations": annotations or {},
                "labels": labels or {},
            },
            "spec": {
                "nodeName": node,
                "priority": priority,
                "containers": [
                    {"name": "main", "resources": {"requests": requests, "limits": requests}}
                ],
            },
        }
        return self.projector.pod(msgspec.convert(raw, core.Pod))

    def cycle(self, pod):
        view = self.state.view()
        return self.pipeline.cycle(views.PodInfo.of(pod), view), view

    def refusal(self, pod, node="n1"):
        """Why a node refuses a pod, empty where it passes."""
        asked, view = self.cycle(pod)
        rows = np.array([view.rows[node]])
        found = self.pipeline.filter(asked, view, rows, NOW).refusal(0)
        return found.status.reason if found else ""

    def sentence(self, pod, node="n1"):
        asked, view = self.cycle(pod)
        row = view.rows[node]
        found = self.pipeline.filter(asked, view, np.array([row]), NOW).refusal(0)
        return self.pipeline.sentence(asked, view, row, found, NOW)

    def bind(self, pod, node="n1", kind=claims.ClaimKind.BOUND):
        """Reserve a pod on a node as the bind verb does; return why it was refused, if it was."""
        asked, view = self.cycle(pod)
        row = view.rows[node]
        refused = self.pipeline.filter(asked, view, np.array([row]), NOW).refusal(0)
        if refused is not None:
            return refused.status.reason
        grants = self.pipeline.reserve(asked, view, row)
        assert not isinstance(grants, pipeline.Refusal), grants
        granted = {name: one.allocation for name, one in grants.items() if one.allocation}
        placed = msgspec.structs.replace(pod, node=node)
        claim = claims.Claim(pod.uid, kind, node, placed, granted)
        self.state.apply(deltas.ClaimDelta(claim.id, None, claim))
        return ""

    def leave(self, name):
        claim = self.state.claim(f"uid-{name}")
        self.state.apply(deltas.ClaimDelta(claim.id, claim, None))

    def annotation(self, name):
        """What is written on a pod that was bound, read back as JSON."""
        claim = self.state.claim(f"uid-{name}")
        (text,) = self.plugin.encode(claim.allocations[NAME]).values()
        return json.loads(text)

    def minors(self, name, kind="gpu"):
        return [one["minor"] for one in self.annotation(name)[kind]]

    def sparse(self, node="n1"):
        view = self.state.view()
        return view.sparse(NAME, view.rows[node])

    def scores(self, pod):
        asked, view = self.cycle(pod)
        rows = np.flatnonzero(view.known)
        found = self.pipeline.score(asked, view, rows, NOW)
        return {view.names[row]: int(score) for row, score in zip(rows, found, strict=True)}


__all__ = ["GIB", "NAME", "NOW", "DeviceCluster", "claims", "deltas", "verdicts"]
