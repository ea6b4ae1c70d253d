"""What a record of bindings tells of gangs: no start of one in part is overlooked."""

import json
import types

import pytest

from tests.planes.gangs import gang_stand, ganging
from tests.planes.processes import gate


class Stream:
    """Events of a watch."""

    def __init__(self, *events):
        self._events = [*events, None]

    async def next(self, _timeout):
        return self._events.pop(0)


def event(text):
    """`+a-0` is bound, `-a-0` is deleted, ` a-0` waits."""
    node = "" if text[0] == " " else "n"
    pod = {"metadata": {"name": text[1:]}, "spec": {"nodeName": node}}
    return {"type": "DELETED" if text[0] == "-" else "MODIFIED", "object": pod}


async def record(*texts):
    found = ganging.Record()
    await found.follow(Stream(*map(event, texts)))
    return found


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        pytest.param([" a-0", " a-1"], [], id="nothing bound"),
        pytest.param(["+a-0", "+a-0", "+a-1"], [(True, [])], id="whole"),
        pytest.param(["+a-0"], [(None, [])], id="in part"),
        pytest.param(["+a-0", "-a-0"], [(False, ["a-0"])], id="taken back"),
        pytest.param(
            ["+a-0", "-a-0", "+a-1", "+a-2"], [(False, ["a-0"]), (True, [])], id="then whole"
        ),
        pytest.param(["+a-0", "+a-1", "-a-0", "-a-1"], [(True, [])], id="removed later"),
        pytest.param(["-a-0", "+b-0"], [], id="of others"),
    ],
)
async def test_starts_of_a_gang(texts, wanted):
    found = (await record(*texts)).starts("a", 2)
    told = [(one.whole if one.until < float("inf") else None, one.left) for one in found]
    assert told == wanted


def stand(found, binds=(), bindings=()):
    """What has been sent, by time and name of a pod."""
    front = [
        gate.Call("POST", "/bind", json.dumps({"PodName": name}).encode(), at=at)
        for at, name in binds
    ]
    uplink = [gate.Call("POST", f"/pods/{name}/binding", b"", at=at) for at, name in bindings]
    calls = types.SimpleNamespace
    made = types.SimpleNamespace(
        gangs=calls(record=found),
        pair=calls(front=calls(calls=[]), uplink=calls(calls=[])),
    )
    bursts = gang_stand.Bursts(made, ["a"], 2)
    made.pair.front.calls += front
    made.pair.uplink.calls += uplink
    return bursts


async def test_a_gang_that_stays_in_part_is_a_problem():
    bursts = stand(await record("+a-0"))
    (problem,) = bursts.problems((), 10.0)
    assert "for too long" in problem


async def test_a_gang_that_was_taken_back_without_a_death_is_a_problem():
    bursts = stand(await record("+a-0", "-a-0"))
    (problem,) = bursts.problems((), 10.0)
    assert "no process died" in problem


@pytest.mark.parametrize(
    ("binds", "found"),
    [([(1.0, "a-0")], 1), ([(1.0, "a-0"), (1.5, "a-1")], 0), ([(1.0, "a-0"), (2.5, "a-1")], 1)],
    ids=["alone", "together", "one later"],
)
async def test_a_binding_before_the_quorum_has_arrived_is_a_problem(binds, found):
    bursts = stand(await record(), binds, [(2.0, "a-0")])
    assert len(list(bursts.problems((), 10.0))) == found
