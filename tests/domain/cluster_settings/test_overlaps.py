"""Entries for the same nodes are found, among them and on nodes."""

from api.kubernetes import meta
from domain.cluster_settings import documents, overlaps


def entry(name, selector):
    chosen = None if selector is None else meta.LabelSelector.model_validate(selector)
    return documents.Entry(name, name, chosen, None, {})


def label(key, value):
    return {"matchLabels": {key: value}}


def condition(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(found):
    return [one.name for one in found]


def test_what_selects_nothing_meets_nobody() -> None:
    entries = [entry("a", None), entry("b", label("p", "x")), entry("c", None)]
    assert overlaps.imagined(entries) == []
    assert overlaps.real(entries, {"n": {"p": "x"}}) == ("", [])


def test_every_kind_of_condition_is_compared() -> None:
    entries = [
        entry("in", condition("p", "In", "x", "y", "y")),
        entry("not", condition("p", "NotIn", "x")),
        entry("there", condition("q", "Exists")),
        entry("gone", condition("p", "DoesNotExist")),
    ]
    assert named(overlaps.imagined(entries)) == ["in", "not"]
    assert overlaps.real(entries, {"n": {"p": "x"}}) == ("", [])
    name, found = overlaps.real(entries, {"n": {"p": "x"}, "m": {"p": "x", "q": ""}})
    assert (name, named(found)) == ("m", ["in", "there"])
    assert named(overlaps.real(entries, {"n": {}})[1]) == ["not", "gone"]


def test_nodes_that_differ_only_in_what_nobody_asks_for_are_one() -> None:
    entries = [entry("a", label("p", "x")), entry("b", condition("q", "Exists"))]
    nodes = {f"n{number}": {"p": "x", "name": f"n{number}"} for number in range(1000)}
    assert overlaps.real(entries, nodes) == ("", [])
    nodes["last"] = {"p": "x", "q": "y"}
    assert overlaps.real(entries, nodes)[0] == "last"
