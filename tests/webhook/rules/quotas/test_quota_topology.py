"""What an ElasticQuota is compared with, and how long that takes."""

from api import names, resources
from domain.quota.tree import quota_trees
from webhook import quotas, review
from webhook.rules.quotas import quota_topology

PLAIN = resources.ELASTIC_QUOTAS


class Listed(tuple):
    """Namespaces that count how many of them are looked at."""

    looks = 0

    def __contains__(self, one):
        self.looks += len(self)
        return super().__contains__(one)

    def __iter__(self):
        self.looks += len(self)
        return super().__iter__()


def faults(new, *others):
    asked = quota_topology.Asked(new, None, quota_trees.trees(others, ()))
    return [fault.text for fault in quota_topology.namespaces(asked, new.namespaces)]


def member(name, *namespaces, created=""):
    return quota_trees.Member(name, "default", namespaces=Listed(namespaces), created=created)


def test_thousands_of_namespaces_are_not_compared_with_each_other():
    others = [member(f"q{at}", *(f"{at}-{number}" for number in range(1000))) for at in range(20)]
    new = member("new", *(f"x-{number}" for number in range(1000)), "7-999")
    (told,) = faults(new, *others)
    assert '"7-999": bound to ElasticQuota default/q7' in told
    assert sum(one.namespaces.looks for one in others) <= 4 * 20 * 1000


def test_each_quota_that_has_a_namespace_is_named_in_the_order_of_the_namespaces():
    told = faults(member("new", "b", "a", "b"), member("x", "a", "b"), member("y", "b", "b"))
    assert [text.partition("Invalid value: ")[2][:36] for text in told] == [
        '"b": bound to ElasticQuota default/x', '"b": bound to ElasticQuota default/y',
        '"a": bound to ElasticQuota default/x',
    ]  # fmt: skip


def test_of_several_quotas_the_oldest_has_a_namespace():
    found = [
        member("young", "n", "y", created="2026-02-01T00:00:00Z"),
        member("old", "n", created="2026-01-01T00:00:00Z"),
    ]
    trees = quota_trees.trees(found, ())
    assert {key: one.name for key, one in trees.by_namespace.items()} == {"n": "old", "y": "young"}


class Looked(dict):
    """What a quota allows; counts how often it is looked at."""

    looks = 0

    def keys(self):
        Looked.looks += 1
        return super().keys()


def test_no_more_faults_are_looked_for_than_are_told_and_none_is_endless():
    many = {f"example.com/{'x' * 40}-{number}": "1" for number in range(500)}
    labels, children = {names.LABEL_QUOTA_IS_PARENT: "true"}, []
    for at in range(300):
        cap = Looked(dict.fromkeys(many, 1))
        children.append(member(f"c{at:03}")._replace(parent="org", cap=cap))
    trees = quota_trees.trees([*children, member("org")._replace(is_parent=True)], ())
    metadata = {"name": "org", "namespace": "default", "labels": labels}
    new, old = (
        {"apiVersion": PLAIN.api_version, "metadata": metadata, "spec": {"max": {"cpu": amount}}}
        for amount in "12"
    )
    kind = (PLAIN.group, PLAIN.plural)
    asked = review.Review("UPDATE", "default", new, old, name="org", resource=kind)
    picture = review.Picture((), {}, {}, lambda _: 0, trees=trees)
    refusal = quotas.validate(asked, picture).refusal
    assert "-0, example.com" in refusal.message
    assert "and 485 more" in refusal.message
    assert len(refusal.message) < 64 << 10
    assert Looked.looks < 100
