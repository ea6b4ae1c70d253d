"""How much capacity a node may lend to batch pods: pure integer arithmetic.

Cpu is counted in milli-cores and memory in bytes. Nothing here knows Kubernetes objects.
"""


def lendable(allocatable: int, non_batch_requests: int, percent: int) -> int:
    """Return the share of the unrequested part of a node that batch pods may use.

    An overbooked node lends nothing, and a negative percentage counts as zero; the result is
    cut, never rounded up, so that the promise is never larger than the rule.
    """
    return max(allocatable - non_batch_requests, 0) * max(percent, 0) // 100
