"""`koord simulate gang` and `koord explain gang` say which pods would leave, before any does."""

import pytest

from api import names
from cli.explain import gang_story, gang_trial
from cli.gangs import answer, asked_gang, preview, victims
from tests import builders
from tests.cli.gangs.test_simulate import EIGHT, a_gang
from tests.cli.placement import clusters

ARGUMENTS = "{profiles: [{pluginConfig: [{name: Coscheduling, args: {enablePreemption: %s}}]}]}"


def settings(allowed="true"):
    data = {names.CONFIG_MAP_SCHEDULER: ARGUMENTS % allowed}
    metadata = {"name": names.CONFIG_MAP_SCHEDULER, "namespace": names.NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def running(gang, priority, nodes=("n1", "n1", "n2", "n2"), least=0, **more):
    """Members of a gang that run, one on each of these nodes."""
    notes = {
        names.ANNOTATION_GANG_NAME: gang,
        names.ANNOTATION_GANG_MIN_AVAILABLE: str(least or len(nodes)),
    }
    return [
        builders.a_pod(
            f"{gang}-{number}", node=node, cpu="4", priority=priority, annotations=notes,
            phase="Running", **more,
        )
        for number, node in enumerate(nodes)
    ]  # fmt: skip


def tried(*held, gang=None, priority=10):
    asked = asked_gang.of_file(
        clusters.snapshot(*EIGHT, *held), [gang or a_gang(2, priority=priority)], "default"
    )
    (found,) = preview.preview(asked).previews
    return found


def test_a_gang_of_lower_priority_would_leave_as_a_whole():
    found = tried(settings(), *running("low", 1))
    assert not found.fits
    assert [one.pod for one in found.leaving.evicted] == [f"default/low-{i}" for i in range(4)]
    text = list(answer.leaving(found.leaving))
    assert text[0] == "It would preempt 4 pods of lower priority, all or none:"
    assert text[1] == "  default/low-0 (priority 1) on n1"
    assert answer.group(found)["preemption"]["evicted"][0] == {
        "pod": "default/low-0", "priority": 1, "node": "n1"
    }  # fmt: skip


def test_members_beyond_a_minimum_would_leave_alone():
    found = tried(settings(), *running("low", 1, least=2))
    assert len(found.leaving.evicted) == 2


NOBODY = {
    "the argument is off": ((settings("false"), *running("low", 1)), victims.SWITCHED_OFF),
    "nothing says so": (tuple(running("low", 1)), victims.SWITCHED_OFF),
    "equal priority": (
        (settings(), *running("low", 10)), "no pods of lower priority hold what it lacks"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("held", "reason"), NOBODY.values(), ids=NOBODY)
def test_why_no_pod_would_leave(held, reason):
    found = tried(*held)
    assert found.leaving.reason == reason
    assert list(answer.leaving(found.leaving)) == [f"It preempts no pod: {reason}."]


def test_explain_says_who_would_leave_for_a_gang_that_waits():
    notes = {
        names.ANNOTATION_GANG_NAME: "high",
        names.ANNOTATION_GANG_MIN_AVAILABLE: "2",
    }
    waits = [
        builders.a_pod(
            f"high-{number}", cpu="4", priority=10, annotations=notes, gates=[names.GATE_GANG]
        )
        for number in range(2)
    ]
    snapshot = clusters.snapshot(*EIGHT, settings(), *running("low", 1), *waits)
    story = gang_story.told(gang_trial.facts(snapshot, "default/high"))
    said = [text for chapter in story.chapters for text in chapter.sentences]
    assert "It would preempt 4 pods of lower priority, all or none:" in said
