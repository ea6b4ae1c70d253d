"""Generated pods, profiles and pictures, made of few names so that they meet."""

import random

from hypothesis import strategies as st

from api import names
from api.koordinator import colocation
from api.kubernetes import meta
from domain.pods import namespace_limits
from domain.quota.tree import quota_trees
from webhook import gates, review

NOTES = ("note", "copy", "x/y")
KEYS = ("app", "team", "tier", "x/y", names.LABEL_QOS, names.LABEL_PRIORITY_CLASS)
VALUES = ("", "a", "b", "web", "BE", "LS", "LSR", "koord-batch", "koord-mid")
AMOUNTS = ("0", "1", "500m", "2.5", "1Gi", "100", "200", "150", "1e3")
RESOURCES = (
    names.CPU, names.MEMORY, names.BATCH_CPU, names.BATCH_MEMORY, names.GPU, names.GPU_CORE,
    names.GPU_MEMORY, names.GPU_MEMORY_RATIO, names.GPU_SHARED, "example.com/disk",
    *names.DEPRECATED_RESOURCES,
)  # fmt: skip
CLASSES = {
    name: review.PriorityClass(name, value, policy)
    for name, value, policy in (
        ("koord-prod", 9000, ""),
        ("koord-mid", 7000, "Never"),
        ("koord-batch", 5000, "PreemptLowerPriority"),
        ("other", 12, ""),
    )
}
PATCHES = (
    {"metadata": {"labels": {"app": "patched"}}},
    {"metadata": {"labels": {"team": None}, "annotations": {"note": "patched"}}},
    {"spec": {"tolerations": [{"key": "lent", "operator": "Exists"}]}},
    {"spec": {"containers": [{"name": "c0", "resources": {"requests": {"cpu": "2"}}}]}},
    {
        "spec": {
            "containers": [{"name": "side", "image": "i", "resources": {"limits": {"cpu": "1"}}}]
        }
    },
    {
        "spec": {
            "containers": [{"name": "c0", "resources": {"requests": {"kubernetes.io/gpu": "50"}}}]
        }
    },
    {"spec": {"containers": [{"$patch": "delete", "name": "c1"}]}},
    {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "priority": 9100}},
    {"spec": {"nodeSelector": {"$patch": "replace", "pool": "lent"}}},
)

_rng = random.Random(20)


def _some(keys, values, most=3):
    chosen = _rng.sample(keys, _rng.randint(0, min(most, len(keys))))
    return {key: _rng.choice(values) for key in chosen}


def _container(name):
    parts = {part: _some(RESOURCES, AMOUNTS, 4) for part in ("requests", "limits")}
    kept = {part: found for part, found in parts.items() if _rng.random() < 0.7}
    return {"name": name, "image": "i", "resources": kept}


def _containers(prefix, least=1):
    return [_container(f"{prefix}{number}") for number in range(_rng.randint(least, 3))]


def _pod():
    spec = {"containers": _containers("c")}
    if _rng.random() < 0.5:
        spec["initContainers"] = _containers("i")
    if _rng.random() < 0.3:
        spec["overhead"] = {"cpu": "10m", "memory": "1Mi"}
    if _rng.random() < 0.5:
        spec["priority"] = _rng.choice((0, 3000, 5500, 7000, 9500))
    if _rng.random() < 0.3:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
        required = {"nodeSelectorTerms": [term] * _rng.randint(1, 2)}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    metadata = {"name": "p", "namespace": "default"}
    if _rng.random() < 0.8:
        metadata["labels"] = _some(KEYS, VALUES)
    if _rng.random() < 0.5:
        metadata["annotations"] = _some(NOTES, VALUES)
    return {"metadata": metadata, "spec": spec}


OPTIONS = {
    "selector": lambda: {"matchLabels": _some(KEYS, VALUES, 1)},
    "namespaceSelector": lambda: _rng.choice(({}, {"matchLabels": {"home": "yes"}})),
    "probability": lambda: _rng.choice((0, 1, 50, "30%", 99, 100)),
    "qosClass": lambda: _rng.choice(("BE", "LS", "LSR")),
    "priorityClassName": lambda: _rng.choice(tuple(CLASSES)),
    "koordinatorPriority": lambda: _rng.randint(-5, 5),
    "labels": lambda: _some(KEYS, VALUES),
    "annotations": lambda: _some(NOTES, VALUES),
    "labelKeysMapping": lambda: _some(KEYS[:4], KEYS[:4]),
    "annotationKeysMapping": lambda: _some(NOTES, NOTES, 2),
    "labelSuffixes": lambda: _some(KEYS[:4], ("-x", "", "1")),
    "schedulerName": lambda: "koord-scheduler",
    "patch": lambda: _rng.choice(PATCHES),
}


def _spec():
    chosen = _rng.sample(tuple(OPTIONS), _rng.randint(0, 6))
    return {name: OPTIONS[name]() for name in chosen}


def _profile(number):
    metadata = {"name": f"{_rng.choice('zab')}-{number}"}
    if _rng.random() < 0.1:
        metadata["annotations"] = {names.ANNOTATION_SKIP_UPDATE_RESOURCES: ""}
    return colocation.read_profile({"metadata": metadata, "spec": _spec()})


PODS = tuple(_pod() for _ in range(1500))
PROFILES = tuple(_profile(number) for number in range(1500))
TREES = quota_trees.trees(
    [
        quota_trees.Member("web", "default", tree="t"),
        quota_trees.Member("default", "default", tree="t"),
        quota_trees.Member("all", "default", is_parent=True),
    ],
    [quota_trees.Pool("default/p", "t", meta.LabelSelector(match_labels={"pool": "t"}))],
)
DEFAULTS = namespace_limits.of_limit_range(
    {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}}]}}
)
SWITCHED = (frozenset(), frozenset({gates.QUOTA_TREES}),
            frozenset({gates.QUOTA_TREES, gates.DISABLE_RECORD, gates.DEVICES}))  # fmt: skip

pods = st.sampled_from(PODS)
injected = st.sampled_from([_containers("injected") for _ in range(100)])


def _picture(found, lot, on):
    unique = {profile.name: profile for profile in found}
    return review.Picture(
        profiles=tuple(unique.values()),
        namespaces={"default": {"home": "yes"}},
        priority_classes=CLASSES,
        draw=lambda _: lot,
        gates=on,
        trees=TREES,
        limits={"default": [("limits", DEFAULTS)]},
        opens_gates=lot % 2 == 0,
    )


pictures = st.builds(
    _picture,
    st.lists(st.sampled_from(PROFILES), min_size=1, max_size=4),
    st.integers(0, 99),
    st.sampled_from(SWITCHED),
)
"""Up to four profiles, some gates and one lot for all."""
