"""Short ways to run a round with plug-ins made for a test."""

from descheduler.framework import objective, protocols
from descheduler.framework.planning import pipeline, profiles


class Suggests:
    """A plug-in that suggests given pods, and keeps what it was answered."""

    def __init__(self, *pods, purpose=protocols.Purpose.BALANCE, name="Test", **fields):
        self._pods, self._purpose, self._name, self._fields = pods, purpose, name, fields
        self.answers = []
        self.remembered = None

    def __call__(self, view, memory):
        self.remembered = memory
        for one in self._pods:
            answer = yield protocols.Suggestion(
                one, self._name, "because", self._purpose, **self._fields
            )
            self.answers.append(answer)
        return {"rounds": memory.get("rounds", 0) + 1, protocols.NOTES: ["looked"]}


class Scores:
    """An objective that accepts pods by name, and keeps what it accepted."""

    def __init__(self, accepted):
        self.worth = dict(accepted)
        self.made = []

    def judge(self, suggestion, targets):
        found = self.worth.get(suggestion.pod.name)
        if isinstance(found, Exception):
            raise found
        if found is None:
            return objective.Declined("no gain", "0.0")
        return objective.Accepted(protocols.Target(found), gain=1.0)

    def accept(self, suggestion, accepted):
        self.made.append((suggestion.pod.name, accepted.target.node))

    def cost(self, pod):
        return 1.0

    def spread(self):
        return objective.Spread(31.4, 12.3)


class Fork:
    """Targets that keep what was moved."""

    def __init__(self):
        self.moved, self.removed = [], []

    def target(self, pod, among, without):
        return protocols.NoTarget("not asked")

    def move(self, pod, node):
        self.moved.append((pod.name, node))

    def remove(self, pod):
        self.removed.append(pod.name)


def profile(*, deschedule=(), balance=(), name="p", **fields):
    """A profile of plug-ins, each under the name of its place."""
    return profiles.Profile(
        name,
        "MigrationController",
        tuple(profiles.Plugin(f"D{index}", one) for index, one in enumerate(deschedule)),
        tuple(profiles.Plugin(f"B{index}", one) for index, one in enumerate(balance)),
        **fields,
    )


def planned(seen, *configured, memory=None, objective_=None, targets=None, **options):
    """Run a round."""
    given = {"memory": memory} if memory is not None else {}
    if objective_ is not None:
        given["objective"] = objective_
    return pipeline.plan_round(
        configured, profiles.Options(**options), profiles.Given(seen, targets=targets, **given)
    )


def left(plan):
    """Return the names of the pods that leave."""
    return [move.suggestion.pod.name for move in plan.moves]
