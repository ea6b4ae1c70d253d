"""`koord simulate rebalance` on a simulated cluster with a hot node."""

import argparse
import json

import pytest

from cli.rebalancing import simulation
from tests.cli.rebalancing import idle_cluster, test_round_preview

# Each test has an API server of its own, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(90)
it = idle_cluster.it


async def run(it, *words):
    parser = argparse.ArgumentParser()
    simulation.add_arguments(parser)
    given = [*words, "--kubeconfig", str(it.kubeconfig)]
    return await simulation.simulated(parser.parse_args(given))


async def test_a_hot_node_would_lose_a_pod_and_nothing_is_written(it, tmp_path, capsys):
    await it.report("n1", "1", [("web-0", "2"), ("web-1", "4")])
    await it.report("n2", "1")
    file = tmp_path / "descheduler.yaml"
    file.write_text(test_round_preview.LOW_NODE_LOAD)
    assert await run(it, "--configuration", str(file), "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["from"], one["to"]) for one in found["moves"]] == [("n1", "n2")]
    assert found["rounds"] == 4
    assert await it.jobs() == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "koord-descheduler-config"),
        (("--rounds", "0"), 2, "name a number from 1 to 100"),
        (("--configuration", "/nowhere"), 2, "/nowhere cannot be read"),
    ],
    ids=["no configuration", "no rounds", "no file"],
)
async def test_what_cannot_be_tried_is_refused(it, capsys, words, code, said):
    assert await run(it, *words) == code
    assert said in capsys.readouterr().err
