"""The example of `koord dev` shows what the README says, and warns of nothing else."""

import pytest

from api import resources
from cli.dev import example_workload
from cli.install import apply
from tests.docs import commands, console, terminal_pictures

EXPECTED = {"whale", "latecomer"}
NODES = ("sim-1", "sim-2", "sim-3")


@pytest.mark.timeout(120)
async def test_the_story_ends_with_two_pods_that_wait_and_nothing_else_to_worry_about(world):
    for node in NODES:
        await world.add_node(node)
    told = world.supervisor.spawn("story", example_workload.play(world.kube, world.clock))
    await world.until(told.done, "the story is told", 400.0)
    told.result()

    def waiting():
        return {pod["metadata"]["name"] for pod in world.pods() if not pod["spec"].get("nodeName")}

    assert waiting() == EXPECTED
    # Through a whole wave of the load, and through the wake-ups of five minutes.
    await world.pass_time(310)
    assert waiting() == EXPECTED
    late = world.found(resources.PODS, "latecomer", "shop")
    (condition,) = [c for c in late["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert "3 node cpu usage exceeds the load-aware threshold" in condition["message"]
    warned = {
        event["involvedObject"]["name"]
        for event in world.plane.objects.list(resources.CORE_EVENTS).items
        if event["type"] == "Warning"
    }
    assert warned == EXPECTED
    batch = [pod for pod in world.pods() if pod["metadata"]["namespace"] == "analytics"]
    assert sum(1 for pod in batch if pod["spec"].get("nodeName")) == 3
    await shows_what_the_tutorial_shows(world)
    await terminal_pictures.check(console.Console(world))


async def shows_what_the_tutorial_shows(world):
    """Run here, where the story has been told already; its other commands need a real terminal."""
    terminal = console.Console(world)
    told = commands.of(commands.TUTORIALS / "laptop.md")
    asked = [one for one in told if one[0].startswith("koord ")]
    assert len(asked) > 3
    for command, shown in asked:
        said = await terminal.run(command)
        assert commands.shows(shown, said), f"{command}: {said}"


def test_the_example_asks_what_the_story_waits_for():
    (job,) = [one for one in apply.documents("batch.yaml") if one["kind"] == "Job"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert int(container["resources"]["requests"]["cpu"]) * 1000 == example_workload.ASKED_MILLI
