"""A large cluster in which every plug-in of the descheduler finds pods that should leave.

Of seven nodes one is short of memory, one of cpu, and one is hardly used. Every tenth node has a
taint that no pod tolerates, a fifth of all workloads wants another zone than most of its pods have,
and of the pods of each node one has failed and one has restarted often.
"""

from typing import Any, Final

from benchmarks.descheduling import whole_round

ZONE: Final = "topology.kubernetes.io/zone"
_ZONES: Final = 3
_AFFINITY: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_ELSEWHERE: Final = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-1"]}]}
    ]
}
_REQUESTS: Final = (
    {"cpu": "100m", "memory": "12Gi"},
    {"cpu": "4", "memory": "100Mi"},
    {"cpu": "100m", "memory": "100Mi"},
)
_EVERY: Final = 7
_FAILED, _RESTARTED = 7, 8


class Cluster(whole_round.Cluster):
    """Objects as the API server has them."""

    def _node(self, number: int) -> dict[str, Any]:
        body = super()._node(number)
        body["metadata"]["labels"][ZONE] = f"zone-{number % _ZONES}"
        if number % 10 == 3:
            body["spec"] = {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}
        return body

    def _pod(self, node: int, number: int) -> dict[str, Any]:
        body = super()._pod(node, number)
        spec, status = body["spec"], body["status"]
        if self._place(node, number)[2] % 5 == 1:
            spec["affinity"] = {"nodeAffinity": {_AFFINITY: _ELSEWHERE}}
        if number == _FAILED:
            status |= {"phase": "Failed", "reason": "Evicted"}
        if number == _RESTARTED:
            status["containerStatuses"][0]["restartCount"] = 99
        if node % _EVERY < len(_REQUESTS):
            spec["containers"][0]["resources"] = {"requests": _REQUESTS[node % _EVERY]}
        return body
