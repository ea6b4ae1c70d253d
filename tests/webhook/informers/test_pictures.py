"""The picture follows what watches bring, and says what it does not know yet."""

import json

import pytest

from api import names, resources
from api.koordinator import colocation
from api.koordinator.settings import configuration
from api.kubernetes import core
from domain.pods import required_labels
from kube.informers import store as stores
from webhook import gates, review
from webhook.informers import pictures


class Watched:
    """Stores by resource, and by the name of a configuration map, that a test fills."""

    def __init__(self):
        self.stores = {}
        self.projections = {}
        self.version = 0

    def add(self, projection):
        store = stores.Store()
        key = projection.fields.partition("=")[2] or projection.resource
        self.stores[key], self.projections[key] = store, projection
        return store

    def put(self, key, raw, name="x", namespace=""):
        """Bring an object, as its reflector would."""
        self.version += 1
        place = f"{namespace}/{name}" if namespace else name
        meta = stores.Meta(place, f"u-{name}", self.version)
        self.stores[key].put(meta, self.projections[key].project(raw))

    def complete(self, *keys):
        """Say that these lists are complete."""
        for key in keys or self.stores:
            self.version += 1
            self.stores[key].finish(set(), self.version)


VITAL = (resources.COLOCATION_PROFILES, resources.NAMESPACES, resources.PRIORITY_CLASSES)


def built(*on):
    vital, helpful = Watched(), Watched()
    fixed = review.Picture((), {}, {}, lambda _: 0, gates=frozenset(on))
    return pictures.Pictures(vital, fixed, helpful=helpful), vital, helpful


def meta(name, namespace="default", **more):
    return {"name": name, "namespace": namespace, **more}


def test_without_profiles_namespaces_and_classes_there_is_no_picture():
    seen, vital, _ = built()
    assert seen.present() is None
    vital.complete(*VITAL[:2])
    assert seen.present() is None
    vital.complete(VITAL[2])
    picture = seen.present()
    assert picture is not None
    assert picture.limits is None, "what is not known is told apart from nothing"
    assert picture.trees.by_name == {}


def test_the_same_picture_is_handed_out_until_something_changes():
    seen, vital, helpful = built()
    vital.complete()
    helpful.complete()
    first = seen.present()
    assert first is not None
    assert first.limits == {}
    assert seen.present() is first
    vital.put(resources.COLOCATION_PROFILES, {"metadata": {"name": "p"}, "spec": {}}, "p")
    second = seen.present()
    assert second is not first
    assert [profile.name for profile in second.profiles] == ["p"]
    assert second.namespaces is first.namespaces, "only what changed is built anew"


def test_quotas_limits_and_nodes_are_found():
    seen, vital, helpful = built(gates.QUOTA_TREES, gates.CONFIG_MAPS)
    vital.complete()
    helpful.complete()
    labels = {names.LABEL_QUOTA_TREE: "t", names.LABEL_QUOTA_IS_PARENT: "true"}
    quota = {"apiVersion": resources.ELASTIC_QUOTAS.api_version,
             "metadata": meta("q", labels=labels), "spec": {}}  # fmt: skip
    helpful.put(resources.ELASTIC_QUOTAS, quota, "q", "default")
    pool = {"metadata": meta("p", labels={names.LABEL_QUOTA_TREE: "t"}),
            "spec": {"quotaName": "q", "nodeSelector": {"matchLabels": {"a": "b"}}}}  # fmt: skip
    helpful.put(resources.ELASTIC_QUOTA_PROFILES, pool, "p", "default")
    limits = {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
    helpful.put(resources.LIMIT_RANGES, {"spec": limits}, "l", "default")
    node = core.Node(metadata=core.ObjectMeta(name="n", labels={"a": "b"}))
    helpful.put(resources.NODES, node, "n")
    picture = seen.present()
    assert picture is not None
    assert picture.trees.by_name["q"].is_parent
    assert picture.trees.pools["t"].key == "default/p"
    assert [name for name, _ in picture.limits["default"]] == ["l"]
    assert picture.nodes == {"n": {"a": "b"}}


@pytest.mark.parametrize(
    ("resource", "raw"),
    [
        (resources.ELASTIC_QUOTAS, {"metadata": meta("q"), "spec": {"max": {"cpu": "much"}}}),
        (resources.ELASTIC_QUOTA_PROFILES, {"metadata": meta("p"), "spec": {}}),
        (resources.ELASTIC_QUOTA_PROFILES,
         {"metadata": meta("p"), "spec": {"quotaName": "q", "nodeSelector": {}}}),
    ],
    ids=["quota", "profile", "profile without tree"],
)  # fmt: skip
def test_what_cannot_be_read_or_says_nothing_is_left_out(resource, raw):
    seen, vital, helpful = built(gates.QUOTA_TREES)
    vital.complete()
    helpful.put(resource, raw, "q", "default")
    trees = seen.present().trees
    assert (trees.by_name, trees.pools) == ({}, {})


def test_settings_are_followed_where_a_rule_needs_them():
    seen, vital, helpful = built(gates.NODES)
    vital.complete()
    data = {configuration.COLOCATION: "{}"}
    helpful.put(names.CONFIG_MAP_SLO, core.ConfigMap(data=data), names.CONFIG_MAP_SLO)
    assert seen.present().settings == data
    assert names.CONFIG_MAP_SLO not in built()[2].stores


DISABLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: koord-scheduler
    plugins: {%s: {disabled: [{name: "%s"}]}}
"""
PLACING = {
    "nothing disabled": ("", {"a", "b"}),
    "its filter disabled": (DISABLED % ("filter", "Coscheduling"), set()),
    "disabled everywhere": (DISABLED % ("multiPoint", "*"), set()),
    "another one disabled": (DISABLED % ("filter", "Reservation"), {"a", "b"}),
    "its score disabled": (DISABLED % ("score", "Coscheduling"), {"a", "b"}),
    "a document with a fault": ("kind: [", {"before"}),
}


@pytest.mark.parametrize(("document", "due"), PLACING.values(), ids=PLACING)
def test_schedulers_that_place_gangs(document, due):
    seen, vital, helpful = built()
    vital.complete()
    for listed, text in ((" before ,", ""), ("a, b", document)):
        annotations = {names.ANNOTATION_SCHEDULERS: listed}
        written = core.ConfigMap(
            metadata=core.ObjectMeta(annotations=annotations),
            data={names.CONFIG_MAP_SCHEDULER: text} if text else {},
        )
        helpful.put(names.CONFIG_MAP_SCHEDULER, written, names.CONFIG_MAP_SCHEDULER)
        seen.present()
    assert seen.present().gang_schedulers == due


def test_a_status_that_cannot_be_read_leaves_the_quota_in_place():
    seen, vital, helpful = built()
    vital.complete()
    quota = {"apiVersion": resources.ELASTIC_QUOTAS.api_version, "metadata": meta("q"),
             "spec": {"max": {"cpu": "2"}}, "status": {"used": {"cpu": "much"}}}  # fmt: skip
    helpful.put(resources.ELASTIC_QUOTAS, quota, "q", "default")
    assert seen.present().trees.by_name["q"].cap == {"cpu": 2000}


def scheduler_config(**gates_written):
    args = {"featureGates": gates_written} if gates_written else {}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "ElasticQuota", "args": args}]}],
    }
    return core.ConfigMap(data={names.CONFIG_MAP_SCHEDULER: json.dumps(document)})


def test_gates_of_quota_are_those_that_extender_and_manager_follow():
    seen, vital, helpful = built(gates.QUOTA_TREES, gates.DEVICES)
    vital.complete()
    key = names.CONFIG_MAP_SCHEDULER

    def follow(written):
        helpful.put(key, written, key)
        return seen.present().gates

    assert seen.present().gates == {gates.QUOTA_TREES, gates.DEVICES}
    # What the cluster does not say, the settings of the process do.
    assert follow(scheduler_config()) == {gates.QUOTA_TREES, gates.DEVICES}
    written = {gates.QUOTA_TREES: False, gates.NO_DEFAULT_QUOTA: True, gates.GUARANTEE: True}
    followed = {gates.NO_DEFAULT_QUOTA, gates.GUARANTEE, gates.DEVICES}
    assert follow(scheduler_config(**written)) == followed
    # A document with a fault changes nothing.
    assert follow(scheduler_config(Zzz=True)) == followed
    assert follow(core.ConfigMap()) == {gates.QUOTA_TREES, gates.DEVICES}


def test_demanded_labels_stay_while_their_rules_cannot_be_read():
    seen, vital, helpful = built(gates.REQUIRED_LABELS)
    vital.complete()
    key = required_labels.CONFIG_MAP

    def write(text):
        data = {required_labels.ENABLE: "true", required_labels.RULES: text}
        helpful.put(key, core.ConfigMap(data=data), key)
        return [rule.name for rule in seen.present().demanded]

    assert write(json.dumps([{"name": "a", "requiredLabels": ["x"]}])) == ["a"]
    assert write("[{") == ["a"]
    assert write("[]") == []


def test_a_profile_is_read_as_reviews_read_it():
    assert pictures._profile({"metadata": {"name": "p"}, "spec": {"probability": "x"}}) is None
    read = pictures._profile({"metadata": {"name": "p"}, "spec": {}})
    assert isinstance(read, colocation.ClusterColocationProfile)
