"""The admission policies among the plain manifests: no variables, and nothing that they hid."""

import re

import pytest

from tests.planes.install import chart, manifests, plain, policed

POLICIES = [
    pytest.param(document, id=f"{path.parent.name}-{document['metadata']['name']}")
    for path in sorted(chart.MANIFESTS.rglob("*.yaml"))
    for document in plain.of_kind(manifests.read(path.read_text()), policed.POLICIES[0])
]
each_policy = pytest.mark.parametrize("policy", POLICIES)
MACRO = re.compile(r"\.(?:all|exists|exists_one|filter|map)\((\w+),")
GIVEN = {"object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables"}
LONGEST = 3000


def test_every_policy_is_looked_at():
    templates = {path.name for path in (chart.CHART / "templates").glob("*-policy.yaml")}
    names = {case.values[0]["metadata"]["name"] for case in POLICIES}
    assert {f"{name.removeprefix('koord-')}-policy.yaml" for name in names} == templates


@each_policy
def test_no_policy_has_variables(policy):
    assert "variables" not in policy["spec"]
    assert not [one for one in policed.expressions(policy) if "variables." in one]


@each_policy
def test_no_loop_hides_what_an_expression_in_it_reads(policy):
    for one in policed.expressions(policy):
        assert GIVEN.isdisjoint(MACRO.findall(one)), one


@each_policy
def test_no_expression_multiplies_by_what_it_names(policy):
    assert max(map(len, policed.expressions(policy))) < LONGEST
