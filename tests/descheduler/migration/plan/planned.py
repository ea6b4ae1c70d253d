"""What the next step of a job is, as tests look at it."""

from descheduler.migration.plan import job_plan, steps
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import NOW, RULES

DIRECTLY = {"mode": "EvictDirectly"}
TERMINATING = builders.pod("web-0", "node-0", leaves_at=NOW + 20)
TAKEN = [{"namespace": "default", "name": "web-1", "uid": "uid-web-1"}]


def planned(facts_, rules=RULES, now=NOW):
    return job_plan.planned(facts_, rules, now)


def status(plan):
    """The fields of the status that a plan sets, without conditions."""
    for step in plan.steps:
        if isinstance(step, steps.PatchStatus):
            return {key: value for key, value in step.fields.items() if key != "conditions"}
    return None


def told(plan, kind):
    """The condition of a type as a plan leaves it."""
    for step in plan.steps:
        if isinstance(step, steps.PatchStatus):
            found = [one for one in step.fields["conditions"] if one["type"] == kind]
            return (found[0]["status"], found[0]["reason"]) if found else None
    return None


def kinds(plan):
    return [type(step).__name__ for step in plan.steps]
