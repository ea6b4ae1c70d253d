"""Whatever tenants and agents write into objects, a preview leaves the bad ones out."""

import json
import random

from api import names, resources
from api.wire import durations
from cli.placement import answer, asked_pod, preview
from cli.snapshot import format as formats
from cli.snapshot import projection, renaming
from tests import builders
from tests.cli.placement import clusters
from tests.hostile import broken

ROUNDS = 60


def a_report():
    now = durations.timestamp(clusters.NOW)
    return builders.a_node_metric("n1", cpu="1", memory="1Gi", update_time=now)


def made():
    return {
        resources.NODES: builders.a_node("n1", extra={clusters.GPU: "2"}),
        resources.PODS: clusters.holds_gpu(),
        resources.DEVICES: clusters.a_device(),
        resources.NODE_RESOURCE_TOPOLOGIES: clusters.a_topology(),
        resources.RESERVATIONS: clusters.a_reservation(),
        resources.NODE_METRICS: a_report(),
        resources.RESOURCE_SLICES: clusters.a_slice(),
        resources.RESOURCE_CLAIMS: clusters.a_claim(7),
    }


def a_snapshot(rng):
    """Good objects, and of one kind a broken one beside or instead of the good one."""
    good = made()
    chosen = rng.choice(list(good))
    found = {kind.review_name(): [projection.kept(kind, raw)] for kind, raw in good.items()}
    bad = broken(good[chosen], rng)
    metadata = bad.get("metadata") if isinstance(bad, dict) else None
    if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
        listed = found[chosen.review_name()]
        listed[:] = [bad] if rng.random() < 0.5 else [*listed, bad]
    return formats.Snapshot(clusters.NOW, {kind: tuple(raws) for kind, raws in found.items()})


def test_no_object_breaks_a_preview():
    rng, answered = random.Random("placement"), 0
    for _ in range(ROUNDS):
        asked = asked_pod.added(a_snapshot(rng), clusters.wants_gpu(), "default")
        found = preview.preview(asked, ("NodeNUMAResource",))
        assert list(answer.lines(found))
        assert json.dumps(answer.document(found))
        answered += found.leaving is not None
    assert answered > ROUNDS / 4


def test_no_annotation_about_hardware_breaks_the_renaming():
    rng = random.Random("renaming")
    texts = ["", "null", "7", "[]", "{}", "[7]", '{"gpu":7}', '{"gpu":[7]}', '{"gpu":[{"id":7}]}',
             '{"gpu":{"selector":7}}', '[{"name":7,"uid":{}}]', "{" * 5000]  # fmt: skip
    kinds = (names.ANNOTATION_DEVICE_ALLOCATED, names.ANNOTATION_DEVICE_HINT,
             names.ANNOTATION_POD_CPU_ALLOCS, names.ANNOTATION_RESOURCE_STATUS)  # fmt: skip
    for _ in range(ROUNDS):
        notes = {key: rng.choice(texts) for key in kinds}
        pod = projection.kept(resources.PODS, clusters.low(annotations=notes))
        found = renaming.renamed(formats.Snapshot(clusters.NOW, {"pods": (pod,)}))
        assert found.objects["pods"][0]["metadata"]["name"] == "pod-1"
