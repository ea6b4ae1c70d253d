"""What the tree of ElasticQuotas costs: all quotas at once, one pod, one changed quota.

python -m benchmarks.quota [--quotas 10000] [--rounds 7] [--events 3000]

Three levels, two resources, more asked for than there is. `refresh` computes what every quota may
use after a node came; one `pod` comes, starts or goes and the limit of its quota is read, which
depends on all of its ancestors and their siblings; one `quota` changes its minimum and is read. All
are measured by the processor time of this process, beside the plain model that the tests compare
with, which computes everything anew. Both have to come to the same figures. Weights are the default
(max); with `weighted` they are random, so that the shares of whole subtrees move with most pods.
"""

import argparse
import gc
import random
import time
from collections.abc import Callable

import msgspec

from api import names, resources
from api.koordinator import quota
from benchmarks import figures
from domain.quota import model
from domain.quota.tree import forest as forests
from tests.domain.quota import oracle

_GIB = 1 << 30
_PODS_PER_LEAF = 3
_GOAL_REFRESH_MS, _GOAL_EVENT_US = 10, 50


class World:
    """A tree of quotas with pods."""

    def __init__(self, quotas: int, *, weighted: bool = False) -> None:
        self.weighted = weighted
        self.random = random.Random(9)
        self.quotas: dict[str, quota.Quota] = {}
        self.leaves: list[str] = []
        width = max(2, round(quotas ** (1 / 3)))
        leaves = round((quotas - width - width * width) / (width * width))
        for top in range(width):
            self._add(f"q{top:02}", "", width * leaves)
            for middle in range(width):
                self._add(f"q{top:02}-{middle:02}", f"q{top:02}", leaves)
                for leaf in range(leaves):
                    name = f"q{top:02}-{middle:02}-{leaf:02}"
                    self._add(name, f"q{top:02}-{middle:02}", 1)
                    self.leaves.append(name)
        self.pods = [self.pod() for _ in range(_PODS_PER_LEAF * len(self.leaves))]
        node = (("cpu", 3_500 * len(self.leaves)), ("memory", 7 * _GIB * len(self.leaves)))
        self.node: model.Pairs = (*node, ("pods", 1_000_000))
        self.forest = forests.Forest.empty().with_node(None, self.node)
        for one in self.quotas.values():
            self.forest = self.forest.with_quota(None, one)
        for pod in self.pods:
            self.forest = self.forest.with_pod(None, pod)

    def _add(self, name: str, parent: str, leaves: int) -> None:
        maximum = {"cpu": 12_000 * leaves, "memory": 24 * _GIB * leaves}
        random_weight = {key: self.random.randrange(1, 99) for key in maximum}
        self.quotas[name] = quota.Quota(
            name=name,
            namespace="quotas",
            resource=resources.ELASTIC_QUOTAS,
            minimum={"cpu": 2_000 * leaves, "memory": 4 * _GIB * leaves},
            maximum=maximum,
            hard={},
            weight=random_weight if self.weighted else maximum,
            used={},
            parent=parent or names.ROOT_QUOTA,
        )

    def pod(self) -> model.PodUse:
        """Return a pod of any leaf."""
        draw = self.random
        requests = (
            ("cpu", draw.choice((500, 1_000, 2_000, 4_000))),
            ("memory", draw.choice((1, 2, 4, 8)) * _GIB),
        )
        uid, assigned = str(draw.getrandbits(64)), draw.random() < 0.7
        return model.PodUse(uid, draw.choice(self.leaves), "pods", requests, assigned)

    def events(self, count: int) -> list[tuple[model.PodUse | None, model.PodUse | None]]:
        """Return pods that come, start or go."""
        found: list[tuple[model.PodUse | None, model.PodUse | None]] = []
        alive = list(self.pods)
        for _ in range(count):
            at = self.random.randrange(len(alive))
            kind = self.random.random()
            if kind < 0.4:
                alive.append(self.pod())
                found.append((None, alive[-1]))
            elif kind < 0.6:
                before = alive[at]
                alive[at] = msgspec.structs.replace(before, assigned=not before.assigned)
                found.append((before, alive[at]))
            else:
                alive[at], alive[-1] = alive[-1], alive[at]
                found.append((alive.pop(), None))
        return found

    def plain(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return all figures by the plain model."""
        total = dict(self.node)
        world = oracle.World(tuple(self.quotas.values()), tuple(self.pods), total, model.Rules())
        return oracle.figures(world)


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def _refreshed(world: World, number: int) -> float:
    grown = world.forest.with_node(None, (("cpu", 7 + number), ("memory", _GIB + number)))
    return _milliseconds(grown.refreshed)


def _event(world: World, count: int) -> float:
    """Return the microseconds that one pod takes, the limit of its quota included."""
    events = world.events(count)
    forest = world.forest
    started = time.process_time()
    for before, after in events:
        forest = forest.with_pod(before, after)
        forest.limit((after or before or world.pods[0]).quota)
    return (time.process_time() - started) * 1e6 / count


def _changed(world: World, number: int) -> float:
    """Return the milliseconds that another minimum of a quota takes, its limit included."""
    name = world.random.choice(world.leaves)
    before = world.quotas[name]
    after = msgspec.structs.replace(before, minimum={"cpu": 1_000 + number, "memory": _GIB})
    return _milliseconds(lambda: world.forest.with_quota(before, after).limit(name))


def _rebuilt(world: World) -> float:
    """Return the milliseconds until a limit is known after a quota came that was not there."""
    fresh = msgspec.structs.replace(world.quotas[world.leaves[0]], name="fresh")
    return _milliseconds(lambda: world.forest.with_quota(None, fresh).limit("fresh"))


def main() -> None:
    """Measure the tree beside the plain model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quotas", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--events", type=int, default=3_000)
    arguments = parser.parse_args()
    world, weighted = (World(arguments.quotas, weighted=each) for each in (False, True))
    for each in (world, weighted):
        found = each.plain()
        each.forest.refreshed()
        if any(each.forest.runtime(name) != due["runtime"] for name, due in found.items()):
            raise SystemExit("the tree and the plain model disagree")
    found.clear()
    # Garbage is collected as in the processes that hold such a tree: newcomers only.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1_000_000_000)
    # The first builds arrays of what is written.
    _refreshed(world, arguments.rounds)
    rounds = range(arguments.rounds)
    refreshed = [_refreshed(world, number) for number in rounds]
    plain = [_milliseconds(world.plain) for _ in rounds]
    events = [_event(world, arguments.events) for _ in rounds]
    hard = [_event(weighted, arguments.events) for _ in rounds]
    changed = [_changed(world, number) for number in rounds]
    rebuilt = [_rebuilt(world) for _ in rounds]
    size = f"{len(world.quotas)} quotas, 3 levels, 2 resources, processor time"
    anew = "the plain model, everything anew"
    figures.show(
        figures.plain("F9", f"refresh, {size}", "ms", refreshed, f"<= {_GOAL_REFRESH_MS}"),
        figures.paired("F9.ratio", f"refresh, {size}", "ms", refreshed, plain, anew),
        figures.plain("F9.pod", f"one pod, {size}", "us", events, f"<= {_GOAL_EVENT_US}"),
        figures.paired(
            "F9.pod.ratio", f"one pod, {size}", "us", events, [each * 1000 for each in plain], anew
        ),
        figures.plain("F9.pod.weighted", f"one pod, random weights, {size}", "us", hard),
        figures.plain("F9.quota", f"another minimum of one quota, {size}", "ms", changed),
        figures.plain("F9.rebuild", f"one more quota, {size}", "ms", rebuilt),
    )


if __name__ == "__main__":
    main()
