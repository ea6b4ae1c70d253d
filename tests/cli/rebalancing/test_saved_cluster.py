"""`koord simulate rebalance` on a snapshot says what it says on the cluster that was saved."""

import argparse
import json

import pytest

from api import resources
from cli.rebalancing import simulation
from cli.snapshot import reader, renaming
from process.runtime import clock as clocks
from tests.cli.rebalancing import idle_cluster, test_round_preview

pytestmark = pytest.mark.timeout(90)
it = idle_cluster.it


async def run(*words):
    parser = argparse.ArgumentParser()
    simulation.add_arguments(parser)
    return await simulation.simulated(parser.parse_args(words))


async def test_a_snapshot_gives_the_moves_of_its_cluster_also_with_other_names(
    it, tmp_path, capsys
):
    await it.report("n1", "1", [("web-0", "2"), ("web-1", "4")])
    await it.report("n2", "1")
    configuration = tmp_path / "descheduler.yaml"
    configuration.write_text(test_round_preview.LOW_NODE_LOAD)
    words = ("--configuration", str(configuration), "-o", "json")
    assert await run(*words, "--kubeconfig", str(it.kubeconfig)) == 0
    live = json.loads(capsys.readouterr().out)
    assert live["moves"]
    taken = await reader.taken(it.kube, clocks.SystemClock())
    for number, snapshot in enumerate((taken, renaming.renamed(taken))):
        path = tmp_path / f"{number}.snapshot"
        reader.save(path, snapshot)
        assert await run(*words, "--snapshot", str(path)) == 0
        saved = json.loads(capsys.readouterr().out)
        if not number:
            del saved["warnings"], live["warnings"]
            assert saved == live
        assert [one["gain"] for one in saved["moves"]] == [one["gain"] for one in live["moves"]]
        assert saved["kept"] == live["kept"]


async def test_an_older_snapshot_is_refused_with_a_remedy(it, tmp_path, capsys):
    configuration = tmp_path / "descheduler.yaml"
    configuration.write_text(test_round_preview.LOW_NODE_LOAD)
    wanted = (resources.NODES, resources.NODE_METRICS)
    taken = await reader.taken(it.kube, clocks.SystemClock(), wanted=wanted)
    path = tmp_path / "old.snapshot"
    reader.save(path, taken)
    assert await run("--configuration", str(configuration), "--snapshot", str(path)) == 1
    assert "holds no replicasets.apps: an older release took it" in capsys.readouterr().err
