"""How close together gangs are, with and without the network topology; and against the optimum.

python -m benchmarks.topology_gangs [--rounds 5] [--gangs 30] [--small 6]

No scheduler takes part: 30 gangs of many sizes come one after another to a network of 5 spines,
50 blocks and 1,000 nodes with 8 GPUs each, some of which other pods hold; half of the gangs leave
again. `topology` places a gang as the extender does; `spread` puts each member on the node with
the most free GPUs, as kube-scheduler's LeastAllocated does, and `packed` on the one with the fewest
that suffice, as MostAllocated does. On networks of 64 nodes each placement is compared with an
exhaustive search of all others.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from api.koordinator import topology as api
from benchmarks import figures
from domain.topology import layers, placement, spread, tree
from domain.topology import rules as gather
from tests.domain.topology import oracle

_GPUS = 8
_LAYERS = layers.read(
    api.NetworkSpec(
        network_topology_spec=(
            api.Layer(topology_layer="Spine", label_key=("spine",)),
            api.Layer(topology_layer="Block", parent_topology_layer="Spine", label_key=("block",)),
            api.Layer(topology_layer=layers.LEAF, parent_topology_layer="Block"),
        )
    )
)
_ANY = gather.Rules()
_MUST_SPINE = gather.Rules((gather.Gather("Spine", must=True),))
_MUST_BLOCK = gather.Rules((gather.Gather("Block", must=True),))


class Gang(NamedTuple):
    """Members that all have to be placed, each with so many GPUs of one node."""

    members: int
    gpus: int
    rules: gather.Rules = _ANY
    leaves_after: int = 0
    """How many gangs come before it leaves; 0: it stays."""


class Network:
    """A network and the free GPUs of its nodes."""

    def __init__(self, spines: int, blocks: int, nodes: int, rng: random.Random) -> None:
        self.places = {
            f"n{spine}-{block}-{node}": (f"s{spine}", f"b{spine}-{block}")
            for spine in range(spines)
            for block in range(blocks)
            for node in range(nodes)
        }
        labels = [
            (name, {"spine": spine, "block": block}) for name, (spine, block) in self.places.items()
        ]
        self.tree = tree.Tree.of(_LAYERS, labels)
        held = (0, 0, 0, 1, 2, 4, 8)
        self.free = {name: _GPUS - rng.choice(held) for name in self.places}

    def slots(self, gang: Gang) -> dict[str, int]:
        """Return how many members fit on each node."""
        return {name: free // gang.gpus for name, free in self.free.items()}

    def nested(self, gang: Gang) -> dict[str, dict[str, dict[str, int]]]:
        """Return the same by spine and block."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for name, count in self.slots(gang).items():
            spine, block = self.places[name]
            found.setdefault(spine, {}).setdefault(block, {})[name] = count
        return found

    def take(self, nodes: Sequence[str], gpus: int) -> None:
        """Count members on their nodes; a negative number of GPUs gives them back."""
        for name in nodes:
            self.free[name] -= gpus


Nodes = Sequence[str] | None
Place = Callable[[Network, Gang], Nodes]


def by_topology(network: Network, gang: Gang) -> Nodes:
    """Place a gang by the rules of its topology."""
    offer = placement.Offer(network.slots(gang))
    found = placement.place(network.tree, offer, gang.rules, gang.members)
    return found.nodes if isinstance(found, placement.Placement) else None


def _one_by_one(network: Network, gang: Gang, sign: int) -> Nodes:
    free, chosen = dict(network.free), list[str]()
    for _ in range(gang.members):
        fitting = [name for name, count in free.items() if count >= gang.gpus]
        if not fitting:
            return None
        best = min(fitting, key=lambda name: (sign * free[name], name))
        free[best] -= gang.gpus
        chosen.append(best)
    return chosen


def spread_out(network: Network, gang: Gang) -> Nodes:
    """Place members one by one where most is free."""
    return _one_by_one(network, gang, -1)


def packed(network: Network, gang: Gang) -> Nodes:
    """Place members one by one where the least is free that suffices."""
    return _one_by_one(network, gang, 1)


VARIANTS: dict[str, Place] = {"topology": by_topology, "packed": packed, "spread": spread_out}


class Outcome(NamedTuple):
    """How one gang was placed."""

    distance: float
    spines: int
    blocks: int
    nodes: int
    keeps: bool
    """Whether its own rules hold."""


def gangs(count: int, rng: random.Random, largest: int = 96) -> list[Gang]:
    """Return gangs of many sizes, some of which have to stay in one block or spine."""
    found = []
    for _ in range(count):
        members = min(largest, rng.choice((2, 4, 8, 12, 16, 24, 32, 48, 64, 96)))
        gpus = rng.choice((1, 2, 4, 8))
        size = members * gpus
        wanted = [_ANY, _MUST_SPINE if size <= 600 else _ANY, _MUST_BLOCK if size <= 64 else _ANY]
        found.append(Gang(members, gpus, rng.choice(wanted), rng.choice((0, 3, 6, 10))))
    return found


def outcome(network: Network, gang: Gang, nodes: Sequence[str]) -> Outcome:
    """Say how close together the members are."""
    apart = spread.spread(network.tree, nodes)
    spans = dict(apart.spans)
    keeps = all(spans[name] == 1 for name in gang.rules.must())
    return Outcome(apart.mean_distance, spans["Spine"], spans["Block"], spans[layers.LEAF], keeps)


def run(place: Place, listed: Sequence[Gang], network: Network) -> list[Outcome | None]:
    """Place gangs one after another, those that leave in between taken out."""
    found: list[Outcome | None] = []
    present: list[tuple[int, Sequence[str], int]] = []
    for number, gang in enumerate(listed):
        for leaves, nodes, gpus in [one for one in present if one[0] <= number]:
            network.take(nodes, -gpus)
            present.remove((leaves, nodes, gpus))
        nodes = place(network, gang) or ()
        found.append(outcome(network, gang, nodes) if nodes else None)
        network.take(nodes, gang.gpus)
        if gang.leaves_after and nodes:
            present.append((number + gang.leaves_after, nodes, gang.gpus))
    return found


class Compared(NamedTuple):
    """One placement beside the best that an exhaustive search finds."""

    ours: tuple[float, ...]
    """Mean distance, spines, blocks, nodes."""
    closest_below: float
    """The least mean distance within the smallest domain that fits."""
    closest: float
    """The least mean distance of all placements, whatever domains they span."""
    is_best: bool
    """Whether no placement is closer together, the upper layers first."""


def compare(network: Network, gang: Gang, nodes: Sequence[str]) -> Compared:
    """Compare a placement with every other one."""
    levels = (1,) * (_LAYERS.depth + 1)
    start = max((_LAYERS.level(name) or 0 for name in gang.rules.must()), default=0)
    ordered = oracle.Search(network.nested(gang), levels)
    linear = oracle.Search(network.nested(gang), levels, worth=sum)
    best, close = ordered.answer(start, gang.members), linear.answer(start, gang.members)
    assert best is not None
    assert close is not None
    placed = [(*network.places[name], name) for name in nodes]
    level = best[0]
    far = [linear.best(path, gang.members) for path in linear.domains(start)]
    apart = outcome(network, gang, nodes)
    return Compared(
        (apart.distance, apart.spines, apart.blocks, apart.nodes),
        _distance(close[1], gang.members),
        min(_distance(one, gang.members) for one in far if one is not None),
        oracle.closeness(placed, level) == best[1],
    )


def _distance(closeness: Sequence[int], members: int) -> float:
    pairs = members * (members - 1)
    return sum((members * members - one) / pairs for one in closeness) if pairs else 0.0


def small(rounds: int) -> list[Compared]:
    """Compare all placements on networks of 64 nodes."""
    found = []
    for seed in range(rounds):
        rng = random.Random(seed)
        network = Network(4, 4, 4, rng)
        for gang in gangs(30, rng, largest=12):
            nodes = by_topology(network, gang)
            if nodes is None:
                continue
            found.append(compare(network, gang, nodes))
            network.take(nodes, gang.gpus)
            if rng.random() < 0.6:
                network.take(nodes, -gang.gpus)
    return found


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _large(rounds: int, count: int) -> dict[str, list[tuple[int, list[Outcome]]]]:
    found: dict[str, list[tuple[int, list[Outcome]]]] = {name: [] for name in VARIANTS}
    for seed in range(rounds):
        listed = gangs(count, random.Random(seed))
        for name, place in VARIANTS.items():
            network = Network(5, 10, 20, random.Random(seed))
            outcomes = run(place, listed, network)
            found[name].append((len(listed), [one for one in outcomes if one is not None]))
    return found


def _table(found: dict[str, list[tuple[int, list[Outcome]]]]) -> None:
    print("variant    placed  rules kept  distance  spines  blocks  nodes  (means over gangs)")
    for name, each in found.items():
        every = [one for _, outcomes in each for one in outcomes]
        print(
            f"{name:10} {len(every):3}/{sum(count for count, _ in each):3} "
            f"{sum(one.keeps for one in every):8}    "
            f"{_mean([one.distance for one in every]):8.3f} "
            f"{_mean([one.spines for one in every]):7.2f} "
            f"{_mean([one.blocks for one in every]):7.2f} "
            f"{_mean([one.nodes for one in every]):6.1f}"
        )


def _show_small(found: Sequence[Compared]) -> None:
    print(f"\n64 nodes, {len(found)} gangs beside an exhaustive search:")
    best = sum(one.is_best for one in found)
    ours = _mean([one.ours[0] for one in found])
    print(f"  nothing is closer, the upper layers first: {best}/{len(found)}")
    print(
        f"  mean distance {ours:.4f}; least in the smallest domain that fits "
        f"{_mean([one.closest_below for one in found]):.4f}; least of all "
        f"{_mean([one.closest for one in found]):.4f}"
    )


def main() -> None:
    """Place gangs in all ways, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gangs", type=int, default=30)
    parser.add_argument("--small", type=int, default=6)
    arguments = parser.parse_args()
    found = _large(arguments.rounds, arguments.gangs)
    _table(found)
    compared = small(arguments.small)
    _show_small(compared)
    network, gang = Network(25, 10, 20, random.Random(0)), Gang(512, 8)
    spent = []
    for _ in range(5):
        started = time.process_time()
        assert by_topology(network, gang) is not None
        spent.append((time.process_time() - started) * 1000)
    by_round = {
        name: [_mean([one.distance for one in outcomes]) for _, outcomes in each]
        for name, each in found.items()
    }
    what = "mean distance of members, 30 gangs on 1,000 nodes in 50 blocks and 5 spines"
    shares = [sum(one.is_best for one in compared) / len(compared)]
    figures.show(
        figures.paired(
            "gangs.distance", what, "levels", by_round["topology"], by_round["packed"], "packed"
        ),
        figures.paired(
            "gangs.distance.spread", what, "levels", by_round["topology"], by_round["spread"],
            "spread",
        ),
        figures.plain(
            "gangs.best", "placements on 64 nodes that no other beats", "share", shares, "1"
        ),
        figures.plain(
            "gangs.place", "512 members placed on 5,000 nodes, processor time", "ms", spent
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
