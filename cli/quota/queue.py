"""Places in line, as the gate opener of the manager gives them. Pure."""

from collections.abc import Mapping

from cli.quota import cluster as clusters
from domain.quota.waiting import line
from manager.quota.waiting import gates_pods


def holds(cluster: clusters.Cluster) -> Mapping[str, line.Hold]:
    """Return what holds each pod behind the quota gate and its place in line, by uid."""
    found = line.Line()
    for pod in cluster.pods.values():
        made = gates_pods.line_pod(pod)
        if made is not None:
            found.put(made)
    held = found.holds(cluster.forest, cluster.now)
    return {hold.uid: hold for name in found.waiting() for hold in held.of(name)}
