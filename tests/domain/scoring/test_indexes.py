"""Indexes that follow every change equal indexes that are built anew."""

import random
from typing import Any

import hypothesis
import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from api.kubernetes import core
from domain.scoring import columns, normalize, objects, pod, releases, terms
from domain.scoring.indexes import cluster, images, pods, remembered, taints, workloads
from tests import processor_time
from tests.domain.scoring import clusters, worlds

RELEASE = releases.RELEASES[36]


class World:
    """What is known, and indexes that were told of every change."""

    def __init__(self) -> None:
        self.followed = cluster.ClusterIndexes()
        self.nodes: dict[int, objects.Node] = {}
        self.pods: list[tuple[int, str, dict[str, str]]] = []

    def change(self, draw: random.Random, number: int) -> None:
        """Change something."""
        row = draw.randrange(12)
        match draw.randrange(5):
            case 0 | 1:
                self.nodes[row] = clusters.read_node(worlds.node(draw, number))
                self.followed.set_node(row, self.nodes[row])
            case 2:
                self.nodes.pop(row, None)
                self.followed.remove_node(row)
            case 3 if self.pods:
                self.followed.pods.remove(*self.pods.pop(draw.randrange(len(self.pods))))
            case _:
                written = worlds.pod(draw, "p")["metadata"]
                self.pods.append((row, written["namespace"], written["labels"]))
                self.followed.pods.add(*self.pods[-1])

    def anew(self) -> cluster.ClusterIndexes:
        """Return indexes of what is known now."""
        fresh = cluster.ClusterIndexes()
        for row, node in self.nodes.items():
            fresh.set_node(row, node)
        for one in self.pods:
            fresh.pods.add(*one)
        return fresh


def figures(found: columns.PodColumns, known: list[int], size: int) -> list[Any]:
    """Return everything but the numbers of zones, which depend on the order of events."""
    plain = [found.intolerable, found.preferred, found.image_bytes]
    told: list[Any] = [[0] * size if one is None else one.tolist() for one in plain]
    if found.spread is not None:
        spread = found.spread
        same = spread.zone[known][:, None] == spread.zone[known][None, :]
        counted = None if spread.counted is None else spread.counted[known].tolist()
        told += [spread.matching.tolist(), counted, same.tolist()]
        told += [spread.zoned.tolist(), spread.hosted.tolist()]
    return told


@hypothesis.given(st.integers(0, 2**32))
@hypothesis.settings(max_examples=25)
def test_what_is_followed_equals_what_is_built_anew(seed: int) -> None:
    draw, world = random.Random(seed), World()
    selector = terms.Selector(terms.equalities({"app": "web"}))
    asked = [
        pod.read(clusters.read_pod(worlds.pod(draw, "p")), RELEASE, draw.choice((None, selector)))
        for _ in range(4)
    ]
    size = 1
    for number in range(60):
        world.change(draw, number)
        size = max(
            [size, *(row + 1 for row in world.nodes), *(row + 1 for row, _, _ in world.pods)]
        )
        if number % 6 == 0:
            one = draw.choice(asked)
            known = sorted(world.nodes)
            followed = figures(world.followed.columns(one, size), known, size)
            assert followed == figures(world.anew().columns(one, size), known, size)


def test_pods_on_a_row_without_a_node_are_in_no_zone() -> None:
    index = cluster.ClusterIndexes()
    labels = {"kubernetes.io/hostname": "a", "topology.kubernetes.io/zone": ""}
    node = {"metadata": {"name": "a", "labels": labels}, "spec": {}, "status": {}}
    index.set_node(1, clusters.read_node(node))
    for row, number in ((0, 3), (1, 1), (2, 5)):
        for _ in range(number):
            index.pods.add(row, "default", {"app": "web"})
    selector = terms.Selector(terms.equalities({"app": "web"}))
    found = index.columns(pod.read(clusters.read_pod(worlds.APP), RELEASE, selector), 3).spread
    assert found is not None
    # One pod on one host and in one zone: log(3) * 1 + 2 + log(3) * 1 + 4.
    assert normalize.spread_raw(found, np.array([1])).tolist() == [8]


def test_what_is_returned_cannot_be_written_to() -> None:
    index = pods.PodIndex()
    index.add(0, "default", {"app": "web"})
    found = index.matching("default", terms.Selector(terms.equalities({"app": "web"})), 1)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 7


def test_the_least_recently_used_answers_are_forgotten() -> None:
    asked: list[str] = []

    def answer(question: str, _: int) -> int:
        asked.append(question)
        return len(question)

    index = remembered.Remembered[str](answer, lambda: iter([0]), most=2)
    assert [int(index.get(one, 1)[0]) for one in ("a", "bb", "a", "ccc", "a", "bb")] == [
        *(1, 2, 1, 3, 1, 2),
    ]
    assert asked == ["a", "bb", "ccc", "bb"]
    assert len(index) == 2


def test_counts_of_selectors_that_were_forgotten_are_right_when_asked_again() -> None:
    index = pods.PodIndex()
    chosen = terms.Selector(terms.equalities({"app": "web"}))
    index.add(1, "default", {"app": "web"})
    assert index.matching("default", chosen, 3).tolist() == [0, 1, 0]
    for number in range(600):
        index.matching("default", terms.Selector(terms.equalities({"app": str(number)})), 3)
    index.add(2, "default", {"app": "web"})
    index.remove(1, "default", {"app": "web"})
    assert index.matching("default", chosen, 3).tolist() == [0, 0, 1]


def test_nothing_is_kept_of_namespaces_that_are_gone() -> None:
    counted, known = pods.PodIndex(), workloads.WorkloadIndex()
    for number in range(5000):
        name = f"ns-{number}"
        counted.add(0, name, {"app": "web"})
        counted.remove(0, name, {"app": "web"})
        known.set_service(name, "front", {"app": "web"})
        known.remove_service(name, "front")
        metadata = owned("ReplicaSet", app="web")
        known.selector(msgspec.structs.replace(metadata, namespace=name))
    kept = (counted._pods, counted._selecting, known._services, known._merged)
    assert [len(one) for one in kept[:3]] == [0, 0, 0]
    assert len(kept[3]) <= 4096


def soft(*keys: str) -> tuple[core.Taint, ...]:
    """Return PreferNoSchedule taints."""
    return tuple(core.Taint(key=key, effect="PreferNoSchedule") for key in keys)


def test_numbers_of_taint_sets_are_used_again() -> None:
    index = taints.TaintIndex()
    assert index.intolerable((), 2) is None
    for number in range(50):
        index.set(number % 3, soft(f"k{number}", "all"))
        found = index.intolerable((core.Toleration(key="all", operator="Exists"),), 4)
        assert found is not None
        assert found.tolist() == [int(row <= number) for row in range(3)] + [0]
    for row in range(3):
        index.set(row, ())
    assert index.intolerable((), 4) is None


def test_images_are_scaled_by_the_share_of_nodes_that_have_them() -> None:
    index = images.ImageIndex()
    large = objects.Image(("a:1", "a@sha256:0"), 900)
    small = objects.Image(("b:1",), 10)
    for row, held in enumerate(([large, small], [large], [], [large])):
        index.set(row, held)
    found = index.scaled(("a:1", "b:1", "b:1", "c:1"), nodes=4, size=5)
    assert found is not None
    assert found.tolist() == [675 + 2 + 2, 675, 0, 675, 0]
    index.set(0, [])
    assert not index.reported(("b:1",))
    assert index.reported(("c:1", "a@sha256:0"))
    assert index.scaled(("b:1",), nodes=4, size=5) is None


def owned(kind: str, version: str = "apps/v1", **labels: str) -> core.ObjectMeta:
    """Return the metadata of a pod of a controller called web."""
    owner = core.OwnerReference(api_version=version, kind=kind, name="web", controller=True)
    return core.ObjectMeta(namespace="default", labels=labels, owner_references=(owner,))


OWNERS = {
    "ReplicaSet": (owned("ReplicaSet", app="web"), {"app": "web", "track": "stable"}),
    "StatefulSet": (owned("StatefulSet", app="web"), {"app": "web", "set": "yes"}),
    "ReplicationController": (
        owned("ReplicationController", "v1", app="web"),
        {"app": "web", "controller": "yes"},
    ),
    "a ReplicaSet of another group": (
        owned("ReplicaSet", "extensions/v1", app="web"),
        {"app": "web"},
    ),
    "a Job": (owned("Job", "batch/v1", app="web"), {"app": "web"}),
    "nobody, and no Service": (core.ObjectMeta(namespace="default"), None),
    "another namespace": (core.ObjectMeta(namespace="other", labels={"app": "web"}), None),
}


@pytest.mark.parametrize(("metadata", "selected"), OWNERS.values(), ids=OWNERS)
def test_selectors_of_services_and_controllers(
    metadata: core.ObjectMeta, selected: dict[str, str] | None
) -> None:
    index = workloads.WorkloadIndex()
    index.set_service("default", "front", {"app": "web"})
    index.set_service("default", "db", {"app": "db"})
    index.set_service("default", "external", None)
    stable = [{"key": "track", "operator": "In", "values": ["stable"]}]
    index.set_controller(
        "ReplicaSet", "default", "web", {"matchLabels": {"app": "web"}, "matchExpressions": stable}
    )
    index.set_controller("StatefulSet", "default", "web", {"matchLabels": {"set": "yes"}})
    index.set_controller("ReplicationController", "default", "web", {"controller": "yes"})
    due = None if selected is None else terms.Selector(terms.equalities(selected))
    assert index.selector(metadata) == due
    assert index.selector(metadata) == due


def test_selectors_follow_services_and_controllers() -> None:
    index, metadata = workloads.WorkloadIndex(), owned("ReplicaSet", app="web")
    assert index.selector(metadata) is None
    index.set_controller("ReplicaSet", "default", "web", {"matchLabels": {"app": "web"}})
    index.set_service("default", "front", {"app": "web"})
    both = index.selector(metadata)
    assert both == terms.Selector(terms.equalities({"app": "web"}))
    index.remove_controller("ReplicaSet", "default", "web")
    assert index.selector(metadata) == both
    index.remove_service("default", "front")
    assert index.selector(metadata) is None
    index.set_controller("ReplicaSet", "default", "web", {})
    index.set_controller("ReplicaSet", "default", "web", None)
    assert index.selector(metadata) is None


def test_arrays_grow_with_rows() -> None:
    assert remembered.grown(np.array([1, 2]), 3).tolist() == [1, 2, 0, 0]


def test_an_image_that_a_pod_has_thousands_of_times_counts_as_often() -> None:
    index = images.ImageIndex()
    for row in range(5000):
        index.set(row, [objects.Image(("a:1",), 100 + row % 2)])
    index.set(7, [objects.Image(("a:1",), 100), objects.Image(("b:1",), 50_000)])
    once = index.scaled(["a:1", "b:1"], 5000, 5000)
    assert once is not None
    with processor_time.below(0.05):
        often = index.scaled(["a:1", "b:1"] * 12_000, 5000, 5000)
    assert often is not None
    assert (often == once * 12_000).all()
