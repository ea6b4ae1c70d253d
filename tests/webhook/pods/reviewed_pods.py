"""Reviews of pods against a picture of a cluster, all rules together."""

from api.kubernetes import meta
from domain.quota.tree import quota_trees
from webhook import pods, review

CLASSES = {
    "koord-batch": review.PriorityClass("koord-batch", 5000),
    "koord-prod": review.PriorityClass("koord-prod", 9000),
}
TREES = quota_trees.trees(
    [
        quota_trees.Member("team", "default", tree="t", namespaces=("bound",)),
        quota_trees.Member("all", "default", is_parent=True),
        quota_trees.Member("parent", "parent", is_parent=True),
    ],
    [
        quota_trees.Pool("default/b", "t", meta.LabelSelector(match_labels={"pool": "later"})),
        quota_trees.Pool(
            "default/a",
            "t",
            meta.LabelSelector(
                match_labels={"pool": "t"},
                match_expressions=(meta.Requirement(key="zone", operator="Exists"),),
            ),
        ),
    ],
)
PICTURE = review.Picture((), {"default": {}}, CLASSES, lambda _: 0, trees=TREES)


def asking(pod, operation="CREATE", old=None, namespace="default"):
    return review.Review(operation, namespace, pod, old)


def mutated(pod, picture=PICTURE, namespace="default"):
    decision = pods.mutate(asking(pod, namespace=namespace), picture)
    assert decision.refusal is None, decision.refusal
    return decision.object


def refused(pod, picture=PICTURE, **more):
    refusal = pods.validate(asking(pod, **more), picture).refusal
    return None if refusal is None else (refusal.group, refusal.message)
