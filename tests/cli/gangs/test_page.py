"""docs/gangs.md: every YAML document can be read, and declares the gang that the page says."""

import functools
import pathlib
import re

import pytest
import yaml

from api import names
from cli.gangs import cluster, workloads
from domain.gangs import declaration
from tests.cli.placement import clusters

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "gangs.md"
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@functools.cache
def blocks():
    return [list(yaml.safe_load_all(text)) for text in BLOCK.findall(PAGE.read_text())]


def read(documents):
    """The gangs of the documents of one block, with their members."""
    found = workloads.expand(documents)
    made = []
    for number, pod in enumerate((*found.pods, *found.groups)):
        metadata = {"namespace": "default", **pod["metadata"], "uid": f"u{number}"}
        made.append({**pod, "metadata": metadata})
    return cluster.build(clusters.snapshot(*made))


def gangs():
    """What the page declares, block by block: gangs with members, minimum and source."""
    return [
        {
            gang.name.removeprefix("default/"): (
                len(gang.members), gang.declared.min_member, gang.declared.source
            )
            for gang in read(documents).gangs.values()
        }
        for documents in blocks()
    ]  # fmt: skip


ANNOTATIONS, GROUP = declaration.Source.ANNOTATIONS, declaration.Source.POD_GROUP


def test_every_example_is_a_whole_gang_as_its_text_says():
    assert gangs() == [
        {"train": (8, 8, ANNOTATIONS)},
        {"train": (0, 8, GROUP)},
        {"pretrain": (9, 9, GROUP)},
        {"llm": (4, 4, ANNOTATIONS)},
        {"allreduce": (5, 5, ANNOTATIONS)},
        {"tune": (5, 5, ANNOTATIONS)},
        {"ps": (5, 3, ANNOTATIONS)},
        {"ps": (5, 3, GROUP)},
        {"team-a/servers": (0, 2, GROUP), "team-a/workers": (0, 6, GROUP)},
        {},
        {"near": (0, 16, GROUP)},
        {"native": (1, 4, declaration.Source.NATIVE)},
    ]


@pytest.mark.parametrize("number", range(12))
def test_every_example_is_read_without_a_fault(number):
    found = read(blocks()[number])
    assert found.notes == ()
    assert all(gang.declared.initialised for gang in found.gangs.values())
    for documents in blocks()[number : number + 1]:
        for pod in workloads.expand(documents).pods:
            asked = pod["spec"].get("schedulerName")
            volcano = str(documents[0]["apiVersion"]).startswith("batch.volcano.sh")
            assert volcano or asked == names.SCHEDULER, pod["metadata"]["name"]


def test_options_of_the_examples_are_those_of_the_text():
    page = [read(documents).gangs for documents in blocks()]
    written = page[1]["default/train"].declared
    assert (written.mode, written.wait_seconds) == (declaration.Mode.STRICT, 600)
    together = read(blocks()[8])
    servers = together.named("team-a/servers")
    assert [one.name for one in together.group(servers)] == ["team-a/servers", "team-a/workers"]
    assert together.absent(servers) == ()
    near = page[10]["default/near"].declared.topology
    assert [(rule.layer, rule.must) for rule in near.rules] == [
        ("SpineLayer", True), ("BlockLayer", False),
    ]  # fmt: skip
