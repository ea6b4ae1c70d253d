"""Trees of quotas, compared with recorded trees of the reference implementation."""

import dataclasses

import pytest

from domain.quota import model
from tests.domain.quota import forests, oracle
from tests.reference import cases

HUGE = {"cpu": (2**63 - 1) // 5, "memory": (2**63 - 1) // 5}
FIELDS = {
    "request": "request",
    "childRequest": "child_request",
    "autoScaleMin": "scaled_minimum",
    "used": "used",
    "nonPreemptibleUsed": "non_preemptible_used",
    "nonPreemptibleRequest": "non_preemptible_request",
}
GUARANTEE = {"guaranteed": "guaranteed", "allocated": "allocated"}


def world_of(given):
    quotas = [
        forests.a_quota(
            one["name"],
            one["min"],
            one["max"],
            parent=one["parent"],
            is_parent=one["isParent"],
            lends=one["allowLent"],
            weight=weight(one),
        )
        for one in given["quotas"]
    ]
    pods = [
        forests.a_pod(
            f"p{number}",
            pod["quota"],
            pod["requests"],
            assigned=pod["assigned"],
            preemptible=not pod.get("nonPreemptible"),
        )
        for number, pod in enumerate(given["pods"])
    ]
    rules = model.Rules(
        scale_min=given["scaleMin"],
        guarantee=given["guaranteeUsage"],
        default_max=HUGE,
        system_max=HUGE,
    )
    return oracle.World(tuple(quotas), tuple(pods), given["total"], rules)


def weight(one):
    """Return the weights that are recorded, with a 0 for each resource that they leave out.

    The reference takes what is left out for 0, so that a resource which max gains later is of no
    use until someone states a weight for it; here it counts as much as max, and 0 has to be stated.
    """
    written = one.get("sharedWeight") or {}
    return dict.fromkeys(one["max"], 0) | written if any(written.values()) else {}


def shaped(given, total, figures):
    """Return figures in the shape of the recorded ones: no zeros but in the runtime."""
    fields = FIELDS | (GUARANTEE if given["guaranteeUsage"] else {})
    quotas = {}
    for one in given["quotas"]:
        mine = figures[one["name"]]
        found = {written: nonzero(mine[field]) for written, field in fields.items()}
        if found["childRequest"] == found["request"]:
            del found["childRequest"]
        quotas[one["name"]] = {"runtime": dict(mine["runtime"])} | nonzero(found)
    return {"rootTotal": nonzero(total), "quotas": quotas}


def nonzero(amounts):
    return {key: value for key, value in amounts.items() if value}


def answer(case):
    world = world_of(case.given)
    forest = forests.a_forest(world.quotas, world.pods, world.total, world.rules)
    figures = {
        one["name"]: dataclasses.asdict(forest.figures(one["name"])) for one in case.given["quotas"]
    }
    return shaped(case.given, forest.total(), figures)


def expected(case):
    return case.expected | {"rootTotal": nonzero(case.expected["rootTotal"])}


def by_the_documents(quirk):
    """Return the answer of the slow model where a quirk of the reference decides the case."""

    def stated(case, _recorded):
        if case.quirk != quirk:
            return cases.UNSTATED
        world = world_of(case.given)
        return shaped(case.given, oracle.Oracle(world).total(), oracle.figures(world))

    return stated


DIFFERENCES = {
    "podless": cases.Difference(
        "a quota that does not lend keeps its minimum whether or not it ever had a pod: it takes "
        "part in the sharing with that minimum as its request, also when minimums are scaled",
        by_the_documents("podlessNonLendingRequest"),
    ),
    "reserved": cases.Difference(
        "what pods of the default and the system quota use is taken from the total once; these "
        "quotas stand outside the tree and take no part in its sharing",
        by_the_documents("reservedQuotaGuarantee"),
    ),
}


@pytest.mark.vectors
def test_trees_are_computed_like_the_reference():
    counted = cases.check("quota_runtime", answer, expected, DIFFERENCES)
    assert counted[""]


@pytest.mark.vectors
def test_the_slow_model_is_that_of_the_reference():
    """What stands in for the recorded answers agrees with them wherever no quirk decides."""
    for case in cases.read("quota_runtime")[::8]:
        if not case.quirk:
            world = world_of(case.given)
            got = shaped(case.given, oracle.Oracle(world).total(), oracle.figures(world))
            assert got == expected(case), case.name
