"""A cluster as the extender keeps it, and its pods as the descheduler sees them."""

import msgspec
import numpy as np

from api.kubernetes import core
from descheduler.model import podinfo
from descheduler.placement import fork_targets
from domain.quota import placement
from tests.descheduler import builders
from tests.extender.conftest import NOW
from tests.extender.gangs.stage import gang_cluster


class MovingCluster(gang_cluster.GangCluster):
    """Nodes and pods under the plug-ins that are on by default."""

    def __init__(self):
        super().__init__()
        self.pods = {}

    def bound(self, name, node, **more):
        """A pod that runs on a node."""
        spec = {
            key: more[key] for key in ("nodeSelector", "affinity", "tolerations") if key in more
        }
        record = self.pod(name, node=node, **more)
        wanted = placement.requirements(msgspec.convert(spec, core.PodSpec))
        requests = dict(record.requirements.requests)
        found = podinfo.Pod(
            *(record.key, record.uid, node),
            requests=requests,
            wanted=wanted,
            labels=more.get("labels", {}),
            affinity=more.get("affinity", {}),
        )
        self.pods[name] = found
        return found

    def busy(self, name, cpu, **more):
        """What the agent of a node measures."""
        self.add(self.make.metric(name, cpu=cpu, **more))

    def targets(self):
        fork = self.cluster.fork()
        view = fork.view()
        nodes = [
            builders.node(name, labels=fork.node(name).labels)
            for name, is_known in zip(view.names, view.known, strict=False)
            if is_known
        ]
        seen = builders.picture_of(nodes, self.pods.values(), now=NOW)
        return fork_targets.ForkTargets(self.pipeline, fork, seen)


def rows(view, names):
    """Rows of a view by the names of nodes."""
    return np.array([view.rows[name] for name in names])
