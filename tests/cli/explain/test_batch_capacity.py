"""How far a batch pod is from fitting anywhere, and what would help."""

import msgspec
import pytest

from api import names
from api.kubernetes import core
from cli.explain.pod import batch_capacity
from tests import builders

GI = 1 << 30
LESS = "less use or fewer requests by services"
JOB = {names.BATCH_CPU: "10k", names.BATCH_MEMORY: "20Gi"}
LABELS = {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}
ASKED = {"cpu": 10_000, "memory": 20 * GI}


def offer(name, cpu=0, memory=0, lent_cpu=0, lent_memory=0):
    lent = {"cpu": lent_cpu, "memory": lent_memory}
    return batch_capacity.Offer(name, {"cpu": cpu, "memory": memory}, lent)


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
    node = msgspec.convert(builders.a_node("a", extra={names.BATCH_CPU: "16k"}), core.Node)
    (found,) = batch_capacity.offers([node], [("a", ASKED), ("a", {"cpu": 2000})])
    assert found == offer("a", 16_000, 0, 12_000, 20 * GI)


@pytest.mark.parametrize(
    ("offered", "sentences", "helps", "nearest"),
    [
        pytest.param(
            [offer("a", 16_000, 32 * GI), offer("b")],
            ["1 of 2 nodes have that left: a."],
            [],
            "",
            id="some node has it",
        ),
        pytest.param(
            [offer("a", 8400, 32 * GI), offer("b", 9000, 32 * GI, 8000), offer("c")],
            [
                "None of 3 nodes has that left to lend.",
                "1 of them lend nothing at all: c.",
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
            [offer("b", 12_000, 16 * GI, 12_000, 16 * GI)],
            [
                "None of 1 nodes has that left to lend.",
                (
                    "The nearest miss is b: it lends 12 batch cores, 12 are taken, 0 are left, "
                    "10 are missing."
                ),
                (
                    "The nearest miss is b: it lends 16.0 GiB of batch memory, 16.0 GiB are taken, "
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
                "1 of them lend nothing at all: c.",
            ],
            ["a node that lends: see `koord explain node` for one of them"],
            "c",
            id="nobody lends",
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
