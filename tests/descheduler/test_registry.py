"""Profiles are made of the plug-ins that a configuration enables."""

import pathlib

import pytest
import yaml

from descheduler import registry
from descheduler.configuration import document, points
from descheduler.configuration.arguments import models
from descheduler.framework.planning import pipeline, profiles
from tests.descheduler.builders import NOW, node, picture_of, pod
from tests.descheduler.framework.rounds import left

EXAMPLES = pathlib.Path(__file__).parent / "configuration" / "examples"
METHODS = {
    points.DESCHEDULE: "deschedule",
    points.BALANCE: "balance",
    points.FILTER: "for_round",
}


def made(**profile):
    reading = document.read(yaml.safe_dump({"profiles": [profile]}))
    assert reading.faults == ()
    return registry.made(reading.configuration.profiles[0])


def test_every_plug_in_of_the_table_has_arguments():
    assert registry.PLUGINS.keys() == models.MODELS.keys() == points.EXTENDED.keys()


@pytest.mark.parametrize("name", registry.PLUGINS)
def test_plug_ins_extend_the_points_that_they_are_listed_for(name):
    there = {point for point, method in METHODS.items() if hasattr(registry.PLUGINS[name], method)}
    assert there == points.EXTENDED[name] - {points.EVICT}


def test_the_shipped_example_makes_a_profile_that_suggests_nothing():
    found = document.read((EXAMPLES / "shipped.yaml").read_text()).configuration
    profile = registry.made(found.profiles[0])
    assert (profile.deschedule, profile.balance) == ((), ())
    assert [one.name for one in profile.filters] == ["MigrationController"]
    assert (profile.evictor, profile.dry_run) == ("MigrationController", False)


def test_a_profile_runs_what_it_enables():
    profile = made(
        name="old",
        plugins={"deschedule": {"enabled": [{"name": "PodLifeTime"}]}},
        pluginConfig=[
            {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 600}},
            {
                "name": "MigrationController",
                "args": {"dryRun": True, "defaultJobMode": "EvictDirectly"},
            },
        ],
    )
    assert profile.dry_run
    pods = [pod(f"web-{number}", "a", created=NOW - 100 * number) for number in range(10)]
    seen = picture_of([node("a"), node("b")], pods)
    plan = pipeline.plan_round([profile], profiles.Options(), profiles.Given(seen))
    assert left(plan) == ["web-9", "web-8"]
    assert all(move.dry_run for move in plan.moves)
