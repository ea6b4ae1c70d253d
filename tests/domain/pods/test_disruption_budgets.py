"""Which evictions disruption budgets would refuse, however long their authors make them."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pytest

from domain.pods import disruption_budgets as budgets
from tests import processor_time


class Pod(NamedTuple):
    namespace: str
    name: str
    labels: Mapping[str, str]


class Victim(NamedTuple):
    id: str
    pod: Pod


def victim(name, app, namespace="default"):
    return Victim(f"uid-{name}", Pod(namespace, name, {"app": app}))


def budget(number, values, allowed=0, disrupted=()):
    expression = {"key": "app", "operator": "In", "values": values}
    raw = {
        "metadata": {"namespace": "default", "name": f"b{number}"},
        "spec": {"selector": {"matchExpressions": [expression]}},
        "status": {
            "disruptionsAllowed": allowed,
            "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
        },
    }
    return budgets.project(msgspec.convert(raw, budgets.WatchedBudget))


def test_budgets_with_thousands_of_values_hold_no_preemption_up() -> None:
    victims = [victim(f"p{number}", f"value-{number:06}") for number in range(50)]
    values = [f"value-{number:06}" for number in range(50, 60_000)]
    known = budgets.Budgets([budget(number, values) for number in range(20)])
    with processor_time.below(0.1):
        assert known.violating(victims) == frozenset()
    last = budgets.Budgets([budget(0, [*values, "value-000007"])])
    assert last.violating(victims) == {"uid-p7"}


WEB = [victim(name, "web") for name in ("p0", "p1", "p2")]


@pytest.mark.parametrize(
    ("known", "violating", "exhausted"),
    [
        pytest.param([budget(0, ["web"], 3)], set(), set(), id="enough"),
        pytest.param([budget(0, ["web"], 2)], {"uid-p2"}, {"uid-p2"}, id="all-but-the-last"),
        pytest.param([budget(0, ["web"], 0)], {"uid-p0", "uid-p1", "uid-p2"}, set(), id="none"),
        pytest.param([budget(0, ["db"], 0), budget(1, ["db"], 1)], set(), set(), id="of-others"),
        pytest.param([budget(0, ["web"], 2, ["p0"])], set(), set(), id="one-leaves-already"),
    ],
)
def test_the_first_evictions_use_up_what_is_allowed(known, violating, exhausted) -> None:
    made = budgets.Budgets(known)
    assert made.violating(WEB) == violating
    assert made.exhausted_by(WEB) == exhausted


@pytest.mark.parametrize(
    ("namespace", "allowed", "evictions", "may_be"),
    [
        ("default", 1, 1, False),
        ("default", 1, 2, True),
        ("default", 0, 2, False),
        ("elsewhere", 1, 2, False),
    ],
)
def test_whether_labels_matter_at_all(namespace, allowed, evictions, may_be) -> None:
    made = budgets.Budgets([budget(0, ["web"], allowed)])
    assert made.may_be_exhausted(namespace, evictions) is may_be
