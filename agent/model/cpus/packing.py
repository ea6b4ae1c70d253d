"""Which cpus a pod gets that only says how many: those that belong together. Pure."""

from collections.abc import Callable, Iterable, Sequence

from agent.model import state

_Level = Callable[[state.Processor], object]


def pick(processors: Sequence[state.Processor], count: int) -> frozenset[int]:
    """Return so many cpus: whole sockets, NUMA nodes and cores first; none where they are too few.

    Of several, those whose socket, then NUMA node, has the fewest left, so that the others stay
    whole.
    """
    if not 0 < count <= len(processors):
        return frozenset()
    taken: set[int] = set()
    for level in (_socket, _node, _core):
        for part in _whole(processors, taken, level):
            if len(taken) + len(part) <= count:
                taken |= part
    left = sorted((p for p in processors if p.cpu not in taken), key=_order(processors, taken))
    return frozenset(taken.union(p.cpu for p in left[: count - len(taken)]))


def _socket(processor: state.Processor) -> object:
    return processor.socket


def _node(processor: state.Processor) -> object:
    return processor.socket, processor.node


def _core(processor: state.Processor) -> object:
    return processor.socket, processor.node, processor.core


def _whole(
    processors: Sequence[state.Processor], taken: set[int], level: _Level
) -> list[frozenset[int]]:
    """Return the parts of which nothing is taken or offline, in the order to take them."""
    parts: dict[object, list[state.Processor]] = {}
    for processor in sorted(processors, key=_order(processors, taken)):
        parts.setdefault(level(processor), []).append(processor)
    largest = max(map(len, parts.values()))
    whole = (frozenset(one.cpu for one in part) for part in parts.values() if len(part) == largest)
    return [cpus for cpus in whole if not taken & cpus]


def _order(
    processors: Iterable[state.Processor], taken: set[int]
) -> Callable[[state.Processor], tuple[int, ...]]:
    free: dict[object, int] = {}
    for processor in processors:
        if processor.cpu not in taken:
            for key in {_socket(processor), _node(processor), _core(processor)}:
                free[key] = free.get(key, 0) + 1

    def order(one: state.Processor) -> tuple[int, ...]:
        return (
            free.get(_socket(one), 0),
            one.socket,
            free.get(_node(one), 0),
            one.node,
            free.get(_core(one), 0),
            one.core,
            one.cpu,
        )

    return order
