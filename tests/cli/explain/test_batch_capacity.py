"""How far a batch pod is from fitting anywhere, and what would help."""

import json

import msgspec
import pytest

from api import names
from api.kubernetes import core
from cli.explain.pod import batch_capacity
from manager.cluster_settings import plan
from tests import builders

GI = 1 << 30
LESS = "less use or fewer requests by services"
JOB = {names.BATCH_CPU: "10k", names.BATCH_MEMORY: "20Gi"}
LABELS = {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}
ASKED = {"cpu": 10_000, "memory": 20 * GI}


CAPACITY = {"cpu": 64_000, "memory": 256 * GI}


def offer(name, cpu=0, memory=0, lent_cpu=0, lent_memory=0, capacity=CAPACITY):
    lent = {"cpu": lent_cpu, "memory": lent_memory}
    return batch_capacity.Offer(name, {"cpu": cpu, "memory": memory}, lent, capacity)


def test_what_is_asked_and_held_comes_from_pods():
    raw = builders.a_pod(requests=JOB, labels=LABELS)
    pod = msgspec.convert(raw, core.Pod)
    assert batch_capacity.asked(pod) == ASKED
    assert batch_capacity.held(pod) is None
    raw["spec"]["nodeName"] = "a"
    placed = msgspec.convert(raw, core.Pod)
    assert batch_capacity.held(placed) == ("a", ASKED)
    online = msgspec.convert(builders.a_pod(node="a"), core.Pod)
    assert batch_capacity.held(online) is None
    raw = builders.a_node("a", cpu="64", memory="256Gi", extra={names.BATCH_CPU: "16k"})
    node = msgspec.convert(raw, core.Node)
    taken = [("a", ASKED), ("a", {"cpu": 2000})]
    (found,) = batch_capacity.offers([node], taken, settings({}))
    assert found == offer("a", 16_000, 0, 12_000, 20 * GI)


def settings(colocation):
    """Return the settings of a cluster with these values under colocation-config."""
    data = {"colocation-config": json.dumps(colocation)}
    return plan.read(None, data).settings


RATIO = {"cpuCalculatePolicy": "overcommitRatio", "overcommitPercent": 200}


@pytest.mark.parametrize(
    ("given", "notes", "capacity"),
    [
        pytest.param(settings({}), {}, CAPACITY, id="by default"),
        pytest.param(None, {}, {}, id="settings that were not read"),
        pytest.param(plan.read(None, {"colocation-config": "{"}).settings, {}, {}, id="no JSON"),
        pytest.param(settings(RATIO), {}, {"memory": 256 * GI}, id="cpu by a ratio"),
        pytest.param(
            settings({**RATIO, "batchCPUThresholdPercent": 90}), {}, CAPACITY, id="with a bound"
        ),
        pytest.param(
            settings({"memoryReclaimThresholdPercent": 120}),
            {},
            {"cpu": 64_000},
            id="more than all",
        ),
        pytest.param(
            settings({}),
            {names.ANNOTATION_CPU_NORMALIZATION: "1.50"},
            {"cpu": 96_000, "memory": 256 * GI},
            id="a faster node",
        ),
    ],
)
def test_a_node_lends_no_more_than_it_has_unless_settings_let_it(given, notes, capacity):
    raw = builders.a_node("a", cpu="64", memory="256Gi")
    raw["metadata"].setdefault("annotations", {}).update(notes)
    (found,) = batch_capacity.offers([msgspec.convert(raw, core.Node)], [], given)
    assert found.capacity == capacity


@pytest.mark.parametrize(
    ("offered", "sentences", "helps", "nearest"),
    [
        pytest.param(
            [offer("a", 16_000, 32 * GI), offer("b")],
            ["1 of 2 nodes has that left: a."],
            [],
            "",
            id="some node has it",
        ),
        pytest.param(
            [offer("a", 8400, 32 * GI), offer("b", 9000, 32 * GI, 8000), offer("c")],
            [
                "None of 3 nodes has that left to lend.",
                "1 of them lends nothing at all: c.",
                (
                    "The nearest miss is a: it lends 8.4 batch cores, 0 are taken, 8.4 are left, "
                    "1.6 are missing."
                ),
            ],
            [
                f"{LESS} on a, so that it lends 1.6 batch cores more",
                "a pod that asks for 8.4 batch cores or less",
            ],
            "a",
            id="cpu is short",
        ),
        pytest.param(
            [offer("b", 12_000, 32 * GI, 12_000, 32 * GI)],
            [
                "None of 1 nodes has that left to lend.",
                (
                    "The nearest miss is b: it lends 12 batch cores, 12 are taken, 0 are left, "
                    "10 are missing."
                ),
                (
                    "The nearest miss is b: it lends 32.0 GiB of batch memory, 32.0 GiB are taken, "
                    "0 are left, 20.0 GiB are missing."
                ),
            ],
            [
                "10 batch cores and 20.0 GiB of batch memory given back by batch pods of b",
                (f"{LESS} on b, so that it lends 10 batch cores and 20.0 GiB of batch memory more"),
            ],
            "b",
            id="both are taken",
        ),
        pytest.param(
            [offer("c")],
            [
                "None of 1 nodes has that left to lend.",
                "1 of them lends nothing at all: c.",
            ],
            ["a node that lends: see `koord explain node` for one of them"],
            "c",
            id="nobody lends",
        ),
        pytest.param(
            [offer("a", 8000, 32 * GI, 3000)],
            [
                "None of 1 nodes has that left to lend.",
                (
                    "The nearest miss is a: it lends 8 batch cores, 3 are taken, 5 are left, "
                    "5 are missing."
                ),
            ],
            [
                f"{LESS} on a, so that it lends 5 batch cores more",
                "a pod that asks for 5 batch cores or less",
            ],
            "a",
            id="batch pods hold less than is missing",
        ),
        pytest.param(
            [offer("a", 8000, 32 * GI, 7000, capacity={"cpu": 16_000})],
            [
                "None of 1 nodes has that left to lend.",
                (
                    "The nearest miss is a: it lends 8 batch cores, 7 are taken, 1 is left, "
                    "9 are missing."
                ),
            ],
            ["a pod that asks for 1 batch core or less"],
            "a",
            id="the machine is too small for all",
        ),
        pytest.param(
            [
                offer("a", 6000, 32 * GI, 3000, capacity={"cpu": 8000}),
                offer("b", 2000, 32 * GI, capacity={"cpu": 9500}),
                offer("c", capacity={"cpu": 4000}),
            ],
            [
                "None of 3 nodes has that left to lend.",
                "1 of them lends nothing at all: c.",
                "No node has 10 cores at all: the largest has 9.5.",
                (
                    "The nearest miss is a: it lends 6 batch cores, 3 are taken, 3 are left, "
                    "7 are missing."
                ),
            ],
            ["a node with more than 10 cores", "a pod that asks for 3 batch cores or less"],
            "a",
            id="no machine is large enough",
        ),
        pytest.param(
            [offer("a", 6000, 32 * GI, capacity={"cpu": 8000}), offer("b", 2000, 32 * GI)],
            [
                "None of 2 nodes has that left to lend.",
                (
                    "The nearest miss is a: it lends 6 batch cores, 0 are taken, 6 are left, "
                    "4 are missing."
                ),
            ],
            ["a pod that asks for 6 batch cores or less"],
            "a",
            id="another machine is large enough",
        ),
        pytest.param([], ["None of 0 nodes has that left to lend."], [], "", id="no node"),
    ],
)
def test_the_outlook(offered, sentences, helps, nearest):
    found = batch_capacity.outlook(ASKED, offered)
    head = "It asks for 10 batch cores and 20.0 GiB of batch memory."
    assert list(found.sentences) == [head, *sentences]
    assert list(found.helps) == helps
    assert found.nearest == nearest
