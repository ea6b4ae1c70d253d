"""Filters asked once for all pods of a kind: the same answers as asked pod by pod."""

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from descheduler.configuration.arguments import evictor, migration
from descheduler.framework import protocols
from descheduler.framework.filtering import chain, kinds, open_jobs, safeguards
from descheduler.framework.nodes import node_fit
from descheduler.framework.planning import history
from descheduler.model import objects, podinfo
from descheduler.plugins.default_evictor import default_evictor
from descheduler.plugins.migration_filter import migration_filter
from tests import draws
from tests.descheduler import builders
from tests.descheduler.builders import NOW

DIRECT = {"defaultJobMode": "EvictDirectly"}
SELECTOR = {"matchLabels": {"app": "web"}}
CONTROLLER = {
    "plain": DIRECT,
    "reservations": {"schedulerNames": ["default-scheduler"], "maxMigratingPerNode": 1},
    "limits": {
        **DIRECT,
        "maxMigratingGlobally": 2,
        "maxMigratingPerNamespace": 1,
        "maxMigratingPerWorkload": 1,
        "maxUnavailablePerWorkload": 2,
    },
    "checks": {
        **DIRECT,
        "evictFailedBarePods": True,
        "ignorePvcPods": True,
        "labelSelector": SELECTOR,
        "namespaces": {"exclude": ["team"]},
        "priorityThreshold": {"value": 1000},
    },
}
EVICTOR = {
    "plain": {},
    "checks": {
        "labelSelector": SELECTOR,
        "minReplicas": 2,
        "noEvictionPolicy": "Mandatory",
        "priorityThreshold": {"value": 1000},
        "podProtections": {
            "extraEnabled": ["PodsWithPVC", "PodsWithResourceClaims", "PodsWithoutPDB"],
            "defaultDisabled": ["FailedBarePods"],
        },
    },
    "age": {"minPodAge": "10m"},
}


def filters_of(controller, evicting):
    """Return both evictors."""
    return (
        migration_filter.MigrationFilter(
            migration.MigrationControllerArgs.model_validate(CONTROLLER[controller]).complete()
        ),
        default_evictor.DefaultEvictor(
            evictor.DefaultEvictorArgs.model_validate(EVICTOR[evicting]).complete()
        ),
    )


def asked(seen, moves, plugins):
    """Return the filters of one round, and what is being moved."""
    migrating = open_jobs.of(seen)
    view = protocols.FilterView(seen, migrating, node_fit.Table(seen))
    guards = safeguards.Safeguards(seen, migrating, moves, 600.0)
    return [guards, *(one.for_round(view) for one in plugins)], migrating


# Pods of one template share these mappings.
LABELS = ({}, {"app": "web"}, {"app": "web", names.LABEL_QUOTA_PREEMPTIBLE: "false"})
OWNERS = ((), *((builders.owner(name),) for name in ("ReplicaSet/web", "DaemonSet/log")))
NOTES = (
    {},
    {names.ANNOTATION_EXEMPT: "true"},
    {names.ANNOTATION_FORCE_EVICT: ""},
    {names.ANNOTATION_PREFER_NO_EVICTION: ""},
    {names.ANNOTATION_EVICTION_COST: "2147483647"},
    {names.ANNOTATION_POD_DELETION_COST: "7"},
)
AFTER_A_MOVE = {"old": history.Moved(NOW - 90, "default", "b", "web", "a")}
FIELDS = {
    "phase": ("Running", "Failed"),
    "priority": (None, 5000, 2_000_000_000),
    "scheduler_name": ("default-scheduler", "other"),
    "labels": LABELS,
    "annotations": NOTES,
    "owners": OWNERS,
    "created": (NOW - 10_000, NOW - 60),
    "started": (NOW - 10_000, NOW - 60),
    "leaves_at": (-1.0, NOW),
    "ready": (True, False),
    "is_mirror": (False, True),
    "has_local_storage": (False, True),
    "claims": ((), ("data",)),
    "has_resource_claims": (False, True),
    "gang": ("", "default/g"),
    "flaw": ("", "unreadable"),
}


@st.composite
def pods(draw):
    """Some pods, most of which differ from an ordinary one in a field or two."""
    found = []
    for at in range(draw(st.integers(1, 9))):
        changed = draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2))
        fields = {"labels": LABELS[1], "owners": OWNERS[1]}
        fields |= {name: draw(st.sampled_from(FIELDS[name])) for name in changed}
        namespace = draw(st.sampled_from(("default", "default", "team")))
        node = draw(st.sampled_from(("a", "a", "b", "")))
        found.append(builders.pod(f"{namespace}/p{at}", node, **fields))
    return found


@st.composite
def pictures(draw):
    """A cluster in which some pods are being moved, or have moved."""
    listed = draw(pods())
    moving = draw(st.lists(st.sampled_from(listed), max_size=2, unique_by=lambda one: one.uid))
    jobs = [
        builders.job(f"j{at}", one.key, uid=one.uid if draw(st.booleans()) else "gone")
        for at, one in enumerate(moving)
    ]
    uids = {one.controller.uid for one in listed if one.controller is not None}
    workloads = [
        builders.workload(
            uid,
            draw(st.sampled_from((1, 4, 30))),
            is_rolling_out=draw(st.booleans()) and draw(st.booleans()),
            is_exempt=draw(st.booleans()) and draw(st.booleans()),
        )
        for uid in sorted(uids)
    ]
    seen = builders.picture_of(
        [builders.node("a"), builders.node("b")],
        listed,
        workloads=workloads,
        jobs=jobs,
        exempt_namespaces=draw(st.sampled_from((frozenset(), frozenset({"team"})))),
        budgets=(builders.budget(allowed=1, labels={"app": "web"}),),
        gangs={"default/g": objects.Gang("default/g", draw(st.integers(1, 3)))},
    )
    return seen, draw(st.sampled_from((history.NONE, AFTER_A_MOVE)))


@settings(max_examples=draws.at_least(150))
@given(pictures(), st.sampled_from(sorted(CONTROLLER)), st.sampled_from(sorted(EVICTOR)))
def test_pods_are_refused_together_as_they_are_one_by_one(cluster, controller, evicting):
    seen, moves = cluster
    plugins = filters_of(controller, evicting)
    listed = list(seen.pods.values())
    one_by_one, together = (chain.Chain(*asked(seen, moves, plugins)) for _ in range(2))
    assert together.refusals(listed) == [one_by_one.refusal(pod) for pod in listed]
    assert together.kept() == one_by_one.kept()


@pytest.mark.parametrize("controller", sorted(CONTROLLER))
@pytest.mark.parametrize("evicting", sorted(EVICTOR))
@pytest.mark.parametrize("moves", [history.NONE, AFTER_A_MOVE], ids=["rest", "after a move"])
def test_whatever_sets_a_pod_apart_is_told_apart(controller, evicting, moves):
    """Two pods of a workload, in both orders, of which the second has one other field."""
    plugins = filters_of(controller, evicting)
    workloads = [builders.workload("web", 30), builders.workload("log", 30)]
    around = {
        "budgets": (builders.budget(allowed=1, labels={"app": "web"}),),
        "gangs": {"default/g": objects.Gang("default/g", 2)},
    }
    changes = [{name: one} for name, values in FIELDS.items() for one in values]
    ordinary = {"labels": LABELS[1], "owners": OWNERS[1]}
    third = builders.pod("third", "b", gang="default/g", **ordinary)
    for gang, change in itertools.product(
        ("", "default/g"), ({"key": "team/q"}, {"node": ""}, *changes)
    ):
        base = builders.pod("p", "a", gang=gang, **ordinary)
        other = msgspec.structs.replace(base, **{"key": "default/q", "uid": "q", **change})
        seen = builders.picture_of([], [base, other, third], workloads=workloads, **around)
        for listed in ([base, other], [other, base]):
            one_by_one, together = (chain.Chain(*asked(seen, moves, plugins)) for _ in range(2))
            assert together.refusals(listed) == [one_by_one.refusal(pod) for pod in listed], change


class Counting:
    """A filter that says how often it is asked."""

    def __init__(self, varying=()):
        self.asked = []
        self._varying = varying

    def varies(self, pod):
        return pod.name in self._varying

    def refusal(self, pod):
        self.asked.append(pod.name)
        return "kept" if pod.name == "p2" else ""

    def late_refusal(self, pod):
        return ""


@pytest.mark.parametrize(
    ("varying", "jobs", "questions", "said"),
    [
        pytest.param((), (), ["p0"], ["", "", ""], id="alike"),
        pytest.param(("p0",), (), ["p0", "p1", "p2"], ["", "", "kept"], id="they may differ"),
        pytest.param(
            *((), (builders.job("j", "p1"),), ["p0", "p1", "p2"], ["", "", "kept"]),
            id="one of their node is being moved",
        ),
    ],
)
def test_how_often_a_filter_is_asked(varying, jobs, questions, said):
    labels, owners = {"app": "web"}, (builders.owner("ReplicaSet/web"),)
    listed = [builders.pod(f"p{at}", "a", labels=labels, owners=owners) for at in range(3)]
    seen = builders.picture_of([builders.node("a")], listed, jobs=jobs)
    one = Counting(varying)
    assert chain.Chain([one], open_jobs.of(seen)).refusals(listed) == said
    assert one.asked == questions


def test_a_filter_that_does_not_say_by_what_it_goes_is_asked_about_each_pod():
    class Plain:
        def refusal(self, pod):
            return "kept" if pod.name == "p1" else ""

        def late_refusal(self, pod):
            return ""

    labels, owners = {"app": "web"}, (builders.owner("ReplicaSet/web"),)
    listed = [builders.pod(f"p{at}", "a", labels=labels, owners=owners) for at in range(3)]
    seen = builders.picture_of([builders.node("a")], listed)
    found = chain.Chain([Counting(), Plain()], open_jobs.of(seen))
    assert found.refusals(listed) == ["", "kept", "kept"]


class Notes(dict[str, str]):
    """Annotations that keep what they are asked for."""

    def __init__(self, read, written):
        super().__init__(written)
        self._read = read

    def get(self, key, default=None):
        self._read.add(key)
        return super().get(key, default)

    def __contains__(self, key):
        self._read.add(key)
        return super().__contains__(key)

    def __getitem__(self, key):
        self._read.add(key)
        return super().__getitem__(key)

    def items(self):
        raise AssertionError("all annotations are read: kinds compares some")


class Watched:
    """A pod that keeps what is read of it."""

    def __init__(self, pod, fields, notes):
        self._pod, self._fields, self._notes = pod, fields, notes

    def __getattr__(self, name):
        known = getattr(podinfo.Pod, name)
        if isinstance(known, property):
            return known.fget(self)
        self._fields.add(name)
        value = getattr(self._pod, name)
        return Notes(self._notes, value) if name == "annotations" else value


@pytest.mark.parametrize("controller", sorted(CONTROLLER))
@pytest.mark.parametrize("evicting", sorted(set(EVICTOR) - {"age"}))
def test_filters_read_nothing_but_what_kinds_compares(controller, evicting):
    gang = {"default/g": objects.Gang("default/g", 1)}
    fields, notes = set(), set()
    for change in ({}, *({name: one} for name, values in FIELDS.items() for one in values)):
        pod = builders.pod("p", "a", **{"labels": LABELS[1], "owners": OWNERS[1], **change})
        others = [builders.pod(f"o{at}", "b", owners=OWNERS[1]) for at in range(3)]
        seen = builders.picture_of([builders.node("a")], [pod, *others], gangs=gang)
        filters, _ = asked(seen, history.NONE, filters_of(controller, evicting))
        watched = Watched(pod, fields, notes)
        assert not any(one.varies(watched) for one in filters)
        said = [one.refusal(watched) for one in filters]
        assert said == [one.refusal(pod) for one in filters]
    assert fields <= kinds.FIELDS | {"uid"}, "uids say who is being moved"
    assert notes <= set(kinds.ANNOTATIONS)
    assert {"owners", "labels", "gang"} <= fields
