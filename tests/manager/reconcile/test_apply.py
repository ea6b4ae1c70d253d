"""Plans become writes in one place; what was said is not said again."""

import pytest

from api import resources
from kube.client import errors
from kube.informers import store
from manager.reconcile import actions, apply
from process.runtime import metrics


class Client:
    """Answers as told; remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = []

    async def patch(self, resource, name, body, **options):
        self.calls.append((resource.plural, name, options))
        return self._next()

    async def delete(self, resource, name, _namespace="", **options):
        self.calls.append((resource.plural, name, options))
        self._next()

    def _next(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Events:
    """Remembers reason and note of every event."""

    def __init__(self):
        self.said = []

    def event(self, _regarding, _kind, reason, note):
        self.said.append((reason, note))
        return True


@pytest.fixture
def writer(clock):
    def build(*answers):
        client, events = Client(*answers), Events()
        return apply.Writer(client, events, clock, metrics.Registry()), client, events.said

    return build


SLO = resources.NODE_SLOS
APPLY = actions.Apply(SLO, "n1", {})


def answer(version):
    return {"metadata": {"resourceVersion": version}}


async def test_deleting_what_is_gone_is_no_failure(writer) -> None:
    gone = errors.NotFound(404, "NotFound", "gone")
    written, client, _ = writer(gone)
    outcome = await written.carry_out(actions.Plan("done", (actions.Delete(SLO, "n1", "u"),)))
    assert outcome.changed
    assert client.calls == [("nodeslos", "n1", {"uid": "u"})]


async def test_other_failures_are_for_the_caller(writer) -> None:
    conflict = errors.Conflict(409, "Conflict", "somebody else owns a field")
    written, _, _ = writer(conflict)
    with pytest.raises(errors.Conflict):
        await written.carry_out(actions.Plan("no", (APPLY,)))


async def test_waits_for_its_own_write_but_not_for_ever(writer, clock) -> None:
    written, _, _ = writer(answer("7"), answer("9"))
    seen = store.Store()
    assert written.unseen(SLO, "n1", seen) is None
    await written.carry_out(actions.Plan("done", (APPLY,)))
    assert not written.unseen(SLO, "n1", seen).changed
    assert written.unseen(SLO, "n2", seen) is None
    seen.bookmark(7)
    assert written.unseen(SLO, "n1", seen) is None
    await written.carry_out(actions.Plan("done", (APPLY,)))
    assert written.unseen(SLO, "n1", seen) is not None
    await clock.advance(10)
    assert written.unseen(SLO, "n1", seen) is None


async def test_the_same_is_said_once_until_something_else_was_said(writer) -> None:
    written, _, said = writer()
    for note in ("a", "a", "b", "b", "a"):
        told = actions.Tell(SLO, "n1", "u", "Reason", note)
        outcome = await written.carry_out(actions.Plan("told", (told,)))
        assert not outcome.changed
    assert said == [("Reason", "a"), ("Reason", "b"), ("Reason", "a")]


async def test_what_was_said_is_remembered_within_bounds(writer) -> None:
    written, _, said = writer()
    for number in range(10_001):
        written._tell(actions.Tell(SLO, f"n{number}", "u", "Reason", "a"))
    written._tell(actions.Tell(SLO, "n10000", "u", "Reason", "a"))
    assert len(said) == 10_001
    written._tell(actions.Tell(SLO, "n0", "u", "Reason", "a"))
    assert len(said) == 10_002


async def test_what_was_written_of_objects_that_are_gone_is_forgotten(writer, clock) -> None:
    """They are never looked up again, and names of Reservations and PodGroups are used once."""
    made, _, _ = writer(*(answer(str(number)) for number in range(100)))
    for number in range(100):
        await made.carry_out(actions.Plan("", (actions.Apply(SLO, f"n{number}", {}),)))
        await clock.advance(1.0)
    assert len(made._written) <= 11
