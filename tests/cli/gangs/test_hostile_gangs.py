"""Whatever tenants write into pods, PodGroups and files: bad ones are left out, not obeyed."""

import json
import random

from api import names, resources
from cli.explain import gang_story, gang_trial, stories
from cli.gangs import answer, asked_gang, cluster, preview, table
from cli.snapshot import format as formats
from cli.snapshot import projection, renaming
from tests import builders
from tests.cli.gangs.test_cluster import a_pod_group, in_group, planned
from tests.cli.gangs.test_simulate import a_gang
from tests.cli.placement import clusters
from tests.hostile import broken

ROUNDS = 60
NATIVE = {
    "apiVersion": resources.NATIVE_POD_GROUPS[0].api_version, "kind": "PodGroup",
    "metadata": {"name": "n", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}  # fmt: skip


def made():
    return {
        resources.NODES: builders.a_node("n1", cpu="8"),
        resources.PODS: planned("a", gang="h"),
        resources.POD_GROUPS: a_pod_group(),
        resources.NATIVE_POD_GROUPS[0]: NATIVE,
    }


def a_snapshot(rng):
    """Good objects and a gang that waits, and one broken object beside or instead of a good one."""
    good = made()
    chosen = rng.choice(list(good))
    found = {kind.review_name(): [projection.kept(kind, raw)] for kind, raw in good.items()}
    found["pods"] += [projection.kept(resources.PODS, in_group(f"g{i}")) for i in range(2)]
    bad = broken(good[chosen], rng)
    metadata = bad.get("metadata") if isinstance(bad, dict) else None
    if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
        listed = found[chosen.review_name()]
        listed[:1] = [bad] if rng.random() < 0.5 else [listed[0], bad]
    return formats.Snapshot(clusters.NOW, {kind: tuple(raws) for kind, raws in found.items()})


def test_no_object_hides_the_gangs_of_others():
    rng, answered = random.Random("gangs"), 0
    for _ in range(ROUNDS):
        snapshot = a_snapshot(rng)
        found = cluster.build(snapshot)
        assert len(found.gangs["default/g"].members) == 2
        assert list(table.lines(found))
        assert json.dumps(table.document(found))
        told = gang_story.told(gang_trial.facts(snapshot, "default/g"))
        assert told.found
        assert json.dumps(stories.document(told))
        answered += "as things are now" in [one.name for one in told.chapters]
    assert answered > ROUNDS / 2


TEXTS = ["", "null", "7", "[]", "[7]", '["a/b", 7]', '["/"]', "[" * 5000, "acme"]
KEYS = (names.ANNOTATION_GANG_GROUPS, names.ANNOTATION_GANG_NAME, names.ANNOTATION_PLAN)


def test_no_annotation_breaks_the_renaming():
    rng = random.Random("renaming")
    for _ in range(ROUNDS):
        notes = {key: rng.choice(TEXTS) for key in KEYS}
        pod = projection.kept(resources.PODS, builders.a_pod("acme", annotations=notes))
        found = renaming.renamed(formats.Snapshot(clusters.NOW, {"pods": (pod,)}))
        assert "acme" not in json.dumps(found.objects)


def test_no_file_breaks_a_simulation():
    rng, answered = random.Random("files"), 0
    snapshot = formats.Snapshot(
        clusters.NOW,
        {"nodes": (projection.kept(resources.NODES, builders.a_node("n1", cpu="8")),)},
    )
    for _ in range(ROUNDS):
        bad = broken(rng.choice([a_gang(2), a_pod_group(), NATIVE]), rng)
        documents = [one for one in (bad, a_gang(1)) if isinstance(one, dict)]
        try:
            asked = asked_gang.of_file(snapshot, documents, "default")
        except asked_gang.AskedGangError:
            continue
        found = preview.preview(asked)
        assert list(answer.lines(found))
        assert json.dumps(answer.document(found))
        answered += 1
    assert answered > ROUNDS / 4
