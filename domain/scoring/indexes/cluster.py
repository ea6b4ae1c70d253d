"""All indexes of one cluster, and the columns of a pod from them."""

from typing import Final

from domain.scoring import columns as node_columns
from domain.scoring import objects
from domain.scoring import pod as scored_pod
from domain.scoring.indexes import images, labels, pods, taints

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"


class ClusterIndexes:
    """Everything but amounts that score plug-ins compare with a pod."""

    def __init__(self) -> None:
        self.labels = labels.LabelIndex()
        self.taints = taints.TaintIndex()
        self.images = images.ImageIndex()
        self.pods = pods.PodIndex()
        self._nodes: set[int] = set()

    def set_node(self, row: int, node: objects.Node) -> None:
        """Note a node that is new or changed."""
        self._nodes.add(row)
        self.labels.set(row, node.metadata.name, node.metadata.labels)
        self.taints.set(row, node.spec.taints)
        self.images.set(row, node.status.images)

    def remove_node(self, row: int) -> None:
        """Forget a node; its pods are removed one by one."""
        self._nodes.discard(row)
        self.labels.remove(row)
        self.taints.set(row, ())
        self.images.set(row, ())

    def columns(self, pod: scored_pod.PodScoring, size: int) -> node_columns.PodColumns:
        """Return what score plug-ins compare of a pod with the first `size` rows."""
        return node_columns.PodColumns(
            intolerable=self.taints.intolerable(pod.tolerations, size),
            preferred=self.labels.weights(pod.preferences, size) if pod.preferences else None,
            image_bytes=self.images.scaled(pod.images, len(self._nodes), size),
            spread=self._spread(pod, size),
        )

    def _spread(self, pod: scored_pod.PodScoring, size: int) -> node_columns.SpreadColumns | None:
        if pod.spread is None:
            return None
        required = pod.requirements
        return node_columns.SpreadColumns(
            matching=self.pods.matching(pod.namespace, pod.spread, size),
            counted=None if required is None else self.labels.matching(required, size),
            zone=self.labels.values(ZONE, size),
            zoned=self.labels.having(ZONE, size),
            hosted=self.labels.having(HOSTNAME, size),
        )
