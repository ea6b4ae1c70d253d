"""Queries of what cAdvisor measures of containers and nodes. Pure.

A kubelet may be scraped by two jobs, so the larger of two series of one container counts, never
their sum.
"""

from typing import Final

CONTAINERS: Final = 'container!="",container!="POD",pod!=""'
PODS: Final = 'container="",pod!=""'
"""Cgroups of pods: all there is where a runtime does not name containers."""
ROOT: Final = 'id="/"'
"""A node as a whole."""
_OF_PODS: Final = "sum by (namespace, pod) (max by (namespace, pod, container) ({}))"


def cpu(selector: str, window: str) -> str:
    """Return cores by container."""
    return f"rate(container_cpu_usage_seconds_total{{{selector}}}[{window}])"


def memory(selector: str) -> str:
    """Return the working set by container."""
    return f"container_memory_working_set_bytes{{{selector}}}"


def mean_memory(selector: str, window: str) -> str:
    """Return the mean of the working set by container."""
    return f"avg_over_time({memory(selector)}[{window}])"


def of_pods(query: str) -> str:
    """Return the sums of pods, by namespace and name."""
    return _OF_PODS.format(query)


def of_nodes(query: str, by: str = "node") -> str:
    """Return the sums of pods by node; `by`: the labels that may name it."""
    return f"sum by ({by}) (max by ({by}, namespace, pod, container) ({query}))"


def whole(query: str, by: str = "node") -> str:
    """Return figures of nodes as a whole."""
    return f"max by ({by}) ({query})"
