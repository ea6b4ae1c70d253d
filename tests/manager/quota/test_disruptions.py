"""Victims of a reclaim are counted together against disruption budgets."""

import pytest

from domain.pods import disruption_budgets
from domain.quota import reclaim
from kube.informers import store
from manager.quota.overuse import disruptions
from tests import builders


def holder(name, namespace="default", uid=""):
    return reclaim.Holder(
        uid=uid or f"uid-{name}",
        key=f"{namespace}/{name}",
        quota="borrower",
        requests=(),
        node="n1",
        priority=0,
        started_at=0.0,
        preemptible=True,
        leaving=False,
    )


class Listing:
    def __init__(self, items):
        self.items = items


class Reader:
    """Lists pods by name, and counts how often that is asked for."""

    def __init__(self, *pods):
        self.pods = pods
        self.asked = []

    async def list(self, resource, namespace, *, fields):
        self.asked.append(fields.removeprefix("metadata.name="))
        return Listing(
            [
                pod
                for pod in self.pods
                if pod["metadata"]["namespace"] == namespace
                and pod["metadata"]["name"] == self.asked[-1]
            ]
        )


def pod(name, uid=""):
    raw = builders.a_pod(name, labels={"app": "web"})
    raw["metadata"]["uid"] = uid or f"uid-{name}"
    return raw


def watched(allowed):
    known = store.Store()
    selector = {"matchLabels": {"app": "web"}}
    found = disruption_budgets.Budget("default", "web", selector, allowed)
    known.put(store.Meta("default/web", "uid-web", 1), found)
    return known


@pytest.mark.parametrize(
    ("allowed", "victims", "kept", "asked"),
    [
        pytest.param(1, [holder("a"), holder("b")], {"uid-b"}, ["a", "b"], id="one-too-many"),
        pytest.param(2, [holder("a"), holder("b")], set(), [], id="enough-for-all"),
        pytest.param(1, [holder("a")], set(), [], id="one-alone"),
        pytest.param(1, [holder("a"), holder("b", "other")], set(), [], id="of-other-namespaces"),
        pytest.param(1, [holder("c"), holder("a")], set(), ["c", "a"], id="one-is-gone"),
        pytest.param(
            1, [holder("a", uid="before"), holder("b")], set(), ["a", "b"], id="one-was-replaced"
        ),
    ],
)
async def test_which_victims_stay_once_others_have_left(allowed, victims, kept, asked) -> None:
    reader = Reader(pod("a"), pod("b"))
    assert await disruptions.Disruptions(watched(allowed), reader).kept(victims) == kept
    assert reader.asked == asked
