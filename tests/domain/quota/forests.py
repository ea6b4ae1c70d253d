"""Builds quotas, pods and forests for tests."""

from api import names, resources
from api.koordinator import quota
from domain.quota import model
from domain.quota.tree import forest as forests

ROOT = names.ROOT_QUOTA


def a_quota(name, minimum=(), maximum=(), **other):
    """Return a quota that states no weights."""
    given = {
        "namespace": "quotas",
        "resource": resources.ELASTIC_QUOTAS,
        "weight": {},
        "used": {},
        "hard": {},
        "uid": f"uid-{name}",
    } | other
    return quota.Quota(name=name, minimum=dict(minimum), maximum=dict(maximum), **given)


def a_pod(uid, quota, requests, *, assigned=False, preemptible=True, namespace="pods"):
    """Return what a pod means to its quota."""
    pairs = tuple(sorted(dict(requests).items()))
    return model.PodUse(uid, quota, namespace, pairs, assigned, preemptible)


def a_forest(quotas=(), pods=(), total=(), rules=None):
    """Return the forest of some quotas, of pods, and of one node that has the total."""
    made = forests.Forest.empty(rules)
    for one in quotas:
        made = made.with_quota(None, one)
    for pod in pods:
        made = made.with_pod(None, pod)
    return made.with_node(None, tuple(sorted(dict(total).items())))
