"""Whatever tenants write into pods, nodes and quotas, every view of quotas stays usable."""

import json
import os
import random

from api import names, resources
from cli.explain import quota_story, stories
from cli.quota import cluster, comparison, preemptor, table
from cli.snapshot import format as formats
from tests import builders
from tests.cli.commands.test_get import PLAIN, a_pod, a_quota
from tests.hostile import broken

ROUNDS = int(os.environ.get("KOORD_FUZZ", "1500")) // 10


def a_snapshot(rng):
    """A small cluster in which objects of each kind are joined by broken ones."""
    made = {
        resources.PODS: [a_pod("a", "t", "2"), a_pod("b", "t", "3", "", gates=[names.GATE_QUOTA])],
        resources.NODES: [builders.a_node("n0", cpu="8")],
        PLAIN: [a_quota("t", "t", PLAIN), a_quota("u", "u", PLAIN, parent="t")],
        resources.POD_DISRUPTION_BUDGETS: [
            {"metadata": {"name": "p", "namespace": "t"}, "spec": {"minAvailable": 1}}
        ],
    }
    found = {}
    for resource, objects in made.items():
        bad = broken(rng.choice(objects), rng)
        # A reader of files lets nothing through that has no name.
        metadata = bad.get("metadata") if isinstance(bad, dict) else None
        named = isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
        found[resource.review_name()] = (*objects, bad) if named else tuple(objects)
    return formats.Snapshot("2026-07-01T13:00:00Z", found)


def test_no_object_breaks_what_is_shown_of_quotas():
    rng, left_out = random.Random("quotas"), 0
    for _ in range(ROUNDS):
        found = cluster.build(a_snapshot(rng))
        left_out += bool(found.notes)
        rows = table.rows(found)
        assert list(table.lines(rows))
        assert json.dumps(table.document(rows, found.notes))
        for name in list(found.forest.names())[:3]:
            assert json.dumps(stories.document(quota_story.told(found, name)))
        outcome = preemptor.play(found, 60.0, {})
        compared = comparison.Comparison(found, (), found.forest, outcome, outcome)
        assert list(comparison.lines(compared))
        assert json.dumps(comparison.document(compared))
    assert left_out > ROUNDS / 20
