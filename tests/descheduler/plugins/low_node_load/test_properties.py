"""What holds of every round of LowNodeLoad, on generated clusters."""

import hypothesis
import numpy as np

from descheduler.framework import protocols
from descheduler.framework.nodes import node_load
from descheduler.plugins.low_node_load import low_node_load, pools, thresholds
from tests import draws
from tests.descheduler.plugins.low_node_load import generated, naive, naive_objects, recorded

OURS = naive_objects.Switches(**dict.fromkeys(naive_objects.Switches.__dataclass_fields__, False))
FEW = hypothesis.settings(max_examples=draws.at_least(60), deadline=None, derandomize=True)


@hypothesis.given(generated.cases())
@FEW
def test_columns_come_to_what_a_plain_calculation_does(given):
    given["rounds"] = 2
    assert recorded.Case(given).answer() == naive.answer(given, OURS)


class _Model:
    """Load by node as the moves of one round leave it, and what it must stay below."""

    def __init__(self, case):
        (pool,) = case.settings.pools
        levels = pools.completed(pool)
        nodes = [node for node in case.view.nodes if pool.selects(node)]
        self.load = node_load.read(case.seen, nodes, levels.resources, 180.0)
        rows = np.arange(len(self.load.nodes))
        found = thresholds.bounds(levels, self.load, rows, deviation=pool.deviation)
        self.high, self.prod_high = found.node.high, found.prod.high
        self.usage, self.prod = self.load.usage.copy(), self.load.prod.copy()

    def is_over(self, name):
        row = self.load.rows[name]
        node = bool((self.usage[row] > self.high[row]).any())
        return node or bool((self.prod[row] > self.prod_high[row]).any())

    def move(self, pod, amounts, target):
        is_prod = pod.band == "koord-prod"
        for name, sign in ((pod.node, -1), (target, 1)):
            row = self.load.rows[name]
            self.usage[row] += sign * amounts
            self.prod[row] += sign * amounts * is_prod


def _round(case, memory=protocols.NO_MEMORY, choose=min):
    """Let every suggested pod move; yield the pod, its target, and the model before the move."""
    model = _Model(case)
    asked, answer = low_node_load.balance(case.settings, case.view, memory), None
    while True:
        try:
            one = asked.send(answer)
        except StopIteration:
            return
        targets = set(one.targets) if one.targets is not None else set()
        target = choose(targets) if targets else ""
        yield one.pod, target, model
        answer = protocols.Target(target) if target else True
        if target:
            used = case.seen.usage[one.pod.node].by_pod[one.pod.key]
            model.move(one.pod, model.load.amounts(used), target)


@hypothesis.given(generated.cases())
@FEW
def test_no_target_exceeds_a_threshold_by_what_comes_and_no_source_loses_more_than_it_must(given):
    given["args"]["nodeFit"] = True
    for choose in (min, max):
        case = recorded.Case(given)
        reached, model = set(), None
        for pod, target, model in _round(case, choose=choose):
            assert model.is_over(pod.node)
            assert not model.is_over(target)
            reached.add(target)
        assert not any(model.is_over(name) for name in reached)


@hypothesis.given(generated.cases(deviation=False))
@FEW
def test_rounds_end_and_no_pod_comes_back(given):
    given["args"]["nodeFit"] = True
    been = {}
    for _ in range(12):
        moves = {pod.key: (pod.node, to) for pod, to, _ in _round(recorded.Case(given))}
        if not moves:
            break
        for key, (left, target) in moves.items():
            been.setdefault(key, set()).add(left)
            assert target not in been[key]
        given = generated.moved(given, {key: to for key, (_, to) in moves.items()})
    else:
        raise AssertionError("pods still move after 12 rounds")
    assert all(len(nodes) == 1 for nodes in been.values())
