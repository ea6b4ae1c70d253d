"""Which evictions disruption budgets would refuse, however long their authors make them."""

import msgspec

from extender.framework.eviction import budgets
from tests import processor_time


def budget(number, values):
    expression = {"key": "app", "operator": "In", "values": values}
    raw = {
        "metadata": {"namespace": "default", "name": f"b{number}"},
        "spec": {"selector": {"matchExpressions": [expression]}},
        "status": {"disruptionsAllowed": 0},
    }
    return budgets.project(msgspec.convert(raw, budgets.WatchedBudget))


def test_budgets_with_thousands_of_values_hold_no_preemption_up(picture, make):
    picture.add(make.node("n1"))
    for number in range(50):
        picture.add(make.pod(f"p{number}", node="n1", labels={"app": f"value-{number:06}"}))
    values = [f"value-{number:06}" for number in range(50, 60_000)]
    known = budgets.Budgets([budget(number, values) for number in range(20)])
    claims = picture.cluster.claims_on("n1")
    assert len(claims) == 50
    with processor_time.below(0.1):
        assert known.violating(claims) == frozenset()
    last = budgets.Budgets([budget(0, [*values, "value-000007"])])
    assert last.violating(claims) == {"uid-p7"}
