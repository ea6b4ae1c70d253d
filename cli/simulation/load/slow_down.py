"""What sharing a node costs a service: the stretch of its requests in a stated model. Pure.

The model is a queue with one line and as many servers as the node has cores (M/M/c): requests come
at random, and a request waits where all cores are busy. The stretch is the mean time of a request
against that on an idle node. Work of every class counts alike, as if the kernel did not prefer
online work, so that the price is an upper bound of what queueing for cores costs. Caches, memory
bandwidth and disks are not in the model.
"""

import functools
from typing import Final

_FULLEST: Final = 0.99


def stretch(cores: int, used: float) -> float:
    """Return the stretch on a node of which so many cores are in use on average."""
    if cores <= 0:
        return 1.0
    return _stretch(cores, round(min(max(used / cores, 0.0), _FULLEST), 3))


@functools.lru_cache(maxsize=65_536)
def _stretch(cores: int, load: float) -> float:
    """Return 1 + C / (c (1 - load)), C being the chance to wait by Erlang's formula."""
    if load <= 0:
        return 1.0
    offered = cores * load
    blocked = 1.0
    for server in range(1, cores + 1):
        # Erlang B, from which C follows; no term grows large.
        blocked = offered * blocked / (server + offered * blocked)
    waits = blocked / (1 - load * (1 - blocked))
    return 1 + waits / (cores * (1 - load))
