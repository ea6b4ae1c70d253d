"""Nodes with Reservations, pods of all sorts, and the production plug-ins, without a server."""

import json

import msgspec
import numpy as np

from api import names
from api.koordinator import devices, scheduling
from api.kubernetes import core
from domain.devices import inventory
from domain.numa import node_topology
from domain.scheduler_settings import documents
from extender import parts, plugin_selection, registry, settings
from extender.framework import pipeline, views
from extender.state import allocations, cluster_state, deltas, ledger, records
from extender.state.reservations import reservation_claims

NAME = "Reservation"
ENABLED = ("Reservation", "NodeNUMAResource", "DeviceShare")
NOW = 1000.0


def written(name, *, node="n1", phase="Available", requests=None, owners=None, **more):
    """A Reservation; owners are pods with the label app: mine unless others are given."""
    requests = requests or {"cpu": "4"}
    labels, notes = more.pop("labels", {}), more.pop("annotations", {})
    container = {"name": "main", "resources": {"requests": requests}}
    if ports := more.pop("host_ports", ()):
        container["ports"] = [{"hostPort": port} for port in ports]
    placed_at = more.pop("placed_at", "")
    placed = {"type": "Scheduled", "status": "True", "lastTransitionTime": placed_at}
    conditions = [placed] if placed_at else []
    return {
        "metadata": {
            "name": name,
            "uid": more.pop("uid", f"uid-{name}"),
            "labels": labels,
            "annotations": notes,
        },
        "spec": {
            "template": {"spec": {"containers": [container]}},
            "owners": owners or [{"labelSelector": {"matchLabels": {"app": "mine"}}}],
            "allocateOnce": more.pop("once", False),
            **more,
        },
        "status": {
            "phase": phase,
            "nodeName": node,
            "allocatable": requests,
            "conditions": conditions,
        },
    }


class ReservationCluster:
    """A ledger under the production plug-ins, and how Reservations and pods come and go."""

    def __init__(self, enabled=ENABLED, arguments=None):
        """`arguments` of the ConfigMap, by plug-in."""
        chosen = settings.PluginSettings(enabled=enabled, weights={"Reservation": 1})
        written = documents.SchedulerSettings(arguments=arguments or {})
        built = registry.build(plugin_selection.select(chosen, written))
        plugins = tuple(built.plugins.values())
        self.pipeline = registry.assemble(built)
        self.codecs = registry.codecs(plugins)
        self.projector = records.Projector(None, self.codecs, registry.inputs(plugins))
        state = cluster_state.ClusterState(registry.state_trackers(plugins), parts.COUNTED)
        self.books = ledger.Ledger(state)
        self.known = {}
        self.pods = {}

    # -- what is there -----------------------------------------------------------------------

    def node(self, name="n1", *, cpu="10", pods="110", labels=None, **more):
        offered = {"cpu": cpu, "memory": "64Gi", "pods": pods, **more}
        raw = {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}},
            "status": {"allocatable": offered},
        }
        self.books.node(None, self.projector.node(msgspec.convert(raw, core.Node)))

    def topology(self, raw, node="n1"):
        """Tell how the CPUs of a node are built."""
        self._tell(deltas.NODE_TOPOLOGY, node_topology.read(raw), node)

    def devices(self, raw, node="n1"):
        """Tell which devices a node has."""
        self._tell(deltas.DEVICE, inventory.read(devices.read_device(raw)), node)

    def _tell(self, kind, found, node):
        self.books.cluster.apply(deltas.ObjectDelta(kind, node, None, found, node))

    def reservation(self, name, **more):
        """Let a Reservation be Available, or change."""
        raw = written(name, **more)
        claim = reservation_claims.claim(scheduling.read_reservation(raw), self.projector)
        self.books.reservations.watched(self.known.get(name), claim)
        self.known[name] = claim
        return claim

    def end(self, name):
        """Let a Reservation end."""
        self.books.reservations.watched(self.known.pop(name), None)

    # -- pods --------------------------------------------------------------------------------

    def raw(self, name, cpu="1", *, app="mine", node="", **more):
        """A pod; `app` is its label, by which it is an owner or not."""
        notes = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in more.get("annotations", {}).items()
        }
        container = {
            "name": "main",
            "resources": {"requests": more.get("requests") or {"cpu": cpu}},
            "ports": [{"hostPort": port} for port in more.get("host_ports", ())],
        }
        container["resources"]["limits"] = container["resources"]["requests"]
        return {
            "metadata": {
                "name": name,
                "namespace": more.get("namespace", "default"),
                "uid": f"uid-{name}",
                "labels": {"app": app, **more.get("labels", {})},
                "annotations": notes,
                "ownerReferences": more.get("references", []),
            },
            "spec": {
                "nodeName": node,
                "priority": more.get("priority", 0),
                "containers": [container],
            },
        }

    def pod(self, name, cpu="1", **more):
        """The record of a pod without a node."""
        return self.projector.pod(msgspec.convert(self.raw(name, cpu, **more), core.Pod))

    def put(self, name, cpu="1", *, node="n1", **more):
        """Let the watch show a pod on a node that somebody else has put there."""
        raw = self.raw(name, cpu, node=node, **more)
        self.show(name, raw)

    def show(self, name, raw):
        """Let the watch show a pod."""
        found = self.projector.pod(msgspec.convert(raw, core.Pod))
        self.books.pod(self.pods.get(name), found, NOW)
        self.pods[name] = found

    def release(self, name):
        """Let a pod end."""
        self.books.pod(self.pods.pop(name), None, NOW)

    def view(self):
        return self.books.cluster.view()

    def judge(self, name, cpu="1", *, node="n1", **more):
        """Return why a node refuses a pod, empty where it passes."""
        return self.judged(name, cpu, nodes=(node,), **more)[node]

    def judged(self, name, cpu="1", *, nodes, **more):
        """Return the same for several nodes at once."""
        view = self.view()
        asked = self.pipeline.cycle(views.PodInfo.of(self.pod(name, cpu, **more)), view)
        rows = np.array([view.rows[node] for node in nodes], dtype=np.intp)
        outcome = self.pipeline.filter(asked, view, rows, NOW)
        found = {node: outcome.refusal(place) for place, node in enumerate(nodes)}
        return {node: one.status.text if one else "" for node, one in found.items()}

    def explained(self, name, cpu="1", *, node="n1", **more):
        """Return the sentence with figures by which a node refuses a pod."""
        view = self.view()
        row = view.rows[node]
        asked = self.pipeline.cycle(views.PodInfo.of(self.pod(name, cpu, **more)), view)
        refusal = self.pipeline.filter(asked, view, pipeline.alone(row), NOW).refusal(0)
        return self.pipeline.sentence(asked, view, row, refusal, NOW)

    def scores(self, name, cpu="1", *, nodes, **more):
        """Return what nodes are worth, the best first."""
        view = self.view()
        asked = self.pipeline.cycle(views.PodInfo.of(self.pod(name, cpu, **more)), view)
        rows = np.array([view.rows[node] for node in nodes], dtype=np.intp)
        found = self.pipeline.score(asked, view, rows, NOW).tolist()
        return dict(zip(nodes, found, strict=True))

    def place(self, name, cpu="1", *, node="n1", **more):
        """Judge, reserve and bind a pod; return the annotations, or the text of the refusal."""
        view = self.view()
        row = view.rows[node]
        asked = self.pipeline.cycle(views.PodInfo.of(self.pod(name, cpu, **more)), view)
        refusal = self.pipeline.filter(asked, view, pipeline.alone(row), NOW).refusal(0)
        found = refusal or self.pipeline.reserve(asked, view, row)
        if isinstance(found, pipeline.Refusal):
            return found.status.text
        granted = {key: one.allocation for key, one in found.items() if one.allocation}
        notes = allocations.written(self.codecs, granted)
        more["annotations"] = {**more.get("annotations", {}), **notes}
        self.show(name, self.raw(name, cpu, node=node, **more))
        return notes

    def into(self, name, cpu="1", **more):
        """Bind a pod; return the name of the Reservation that it was given, empty for none."""
        notes = self.place(name, cpu, **more)
        assert isinstance(notes, dict), notes
        text = notes.get(names.ANNOTATION_RESERVATION_ALLOCATED)
        return json.loads(text)["name"] if text else ""
