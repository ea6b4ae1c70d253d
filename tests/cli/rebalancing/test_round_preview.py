"""What rounds of the descheduler would do, on pictures: moves, reasons, faults in files."""

import json

import pytest

from cli.rebalancing import round_preview
from descheduler.framework import protocols
from tests.descheduler import builders

LOW_NODE_LOAD = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 60s
profiles:
- name: balance
  plugins:
    balance: {enabled: [{name: LowNodeLoad}]}
  pluginConfig:
  - name: LowNodeLoad
    args:
      lowThresholds: {cpu: 40, memory: 60}
      highThresholds: {cpu: 60, memory: 80}
      anomalyCondition: {consecutiveAbnormalities: 3, consecutiveNormalities: 3}
  - name: MigrationController
    args: {schedulerNames: [default-scheduler]}
"""


class Anywhere:
    """Targets that take every pod; the first by name of those that are asked about."""

    def target(self, pod, among, without):
        names = sorted(set(among or ()) - {*without, pod.node})
        return protocols.Target(names[0]) if names else protocols.NoTarget("no node")

    def move(self, pod, node):
        del pod, node

    def remove(self, pod):
        del pod

    def mark(self):
        return 0

    def undo(self, mark):
        del mark


def hot_cluster(hot="12"):
    """A node of 16 cores of which `hot` are used by four pods, and two idle ones."""
    nodes = [builders.node(name) for name in ("n1", "n2", "n3")]
    pods = [builders.pod(f"web-{n}", "n1", cpu="1") for n in range(4)]
    each = {"cpu": f"{int(hot) * 1000 // 4}m", "memory": "1Gi"}
    usages = [
        builders.usage("n1", {"cpu": "0", "memory": "1Gi"}, {pod.name: each for pod in pods}),
        builders.usage("n2", {"cpu": "1", "memory": "1Gi"}),
        builders.usage("n3", {"cpu": "1", "memory": "1Gi"}),
    ]
    return builders.picture_of(nodes, pods, usages)


def previewed(seen, *, text=LOW_NODE_LOAD, most=10):
    return round_preview.preview(round_preview.configured(text), seen, Anywhere(), most)


def test_it_repeats_rounds_until_a_node_counts_as_overloaded():
    found = previewed(hot_cluster())
    assert found.rounds == 4
    assert [move.suggestion.pod.node for move in found.plan.moves] == ["n1"]
    said = list(round_preview.lines(found))
    assert said[0].startswith("Would move 1 pod, spread ")
    assert said[0].endswith("(round 4 of unchanged load).")
    assert "n1 to n2 (LowNodeLoad: node is overutilized, node cpu usage(75.00%)" in said[1]


def test_no_more_rounds_are_tried_than_that():
    found = previewed(hot_cluster(), most=3)
    assert (found.rounds, found.plan.moves) == (3, ())


def test_a_balanced_cluster_moves_nothing():
    found = previewed(hot_cluster("4"))
    assert found.plan.moves == ()
    assert next(iter(round_preview.lines(found))) == (
        "Would move no pod (round 10 of unchanged load)."
    )


def test_what_the_filters_keep_is_counted_by_reason():
    seen = hot_cluster()
    exempt = builders.picture_of(
        seen.nodes.values(),
        [
            builders.pod(f"web-{n}", "n1", annotations={"koord.sh/descheduler-exempt": "true"})
            for n in range(4)
        ],
        seen.usage.values(),
    )
    found = previewed(exempt)
    assert found.plan.moves == ()
    kept = [line for line in round_preview.lines(found) if line.startswith("The filters")]
    assert len(kept) == 1
    assert "keep 4 pods: it is exempt" in kept[0]


def test_the_document_holds_the_same():
    found = previewed(hot_cluster())
    document = json.loads(json.dumps(round_preview.document_of(found)))
    assert (document["rounds"], len(document["moves"])) == (4, 1)
    assert document["moves"][0]["to"] == "n2"
    assert document["spread"]["after"] < document["spread"]["before"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("- 1", "write a DeschedulerConfiguration", id="a list"),
        pytest.param("kind: Other", "kind", id="another kind"),
        pytest.param("profiles: [{}]", "enables a plug-in", id="nothing enabled"),
        pytest.param(
            "profiles: [{plugins: {balance: {enabled: [{name: LowNodeload}]}}}]",
            "did you mean LowNodeLoad",
            id="misspelt",
        ),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused_by_field(text, said):
    with pytest.raises(round_preview.ConfigurationError, match=said):
        round_preview.configured(text)
