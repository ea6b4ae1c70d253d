"""Every write of a preemption names the pod that it is meant for, not another one of its name."""

import types

import pytest

from extender.preemption import preemption_record, writes
from process.runtime import clock

POD = types.SimpleNamespace(key="default/high", namespace="default", name="high", uid="uid-high")
RECORD = preemption_record.Record("id", "n1", ("uid-low",), 0.0, 60.0)
WRITES = {
    "note": lambda one: one.note(POD, RECORD),
    "clear": lambda one: one.clear(POD, "n1"),
    "nominate": lambda one: one.nominate(POD, "n1"),
    "nudge": lambda one: one.nudge(POD),
}


class Client:
    """Keeps what is written; the pod is nominated."""

    def __init__(self):
        self.bodies = []

    async def patch(self, resource, name, body, *, namespace, subresource=""):
        del resource, name, namespace, subresource
        self.bodies.append(body)
        return {"status": {"nominatedNodeName": "n1"}}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_write_holds_for_one_pod_alone(write):
    client = Client()
    pods = types.SimpleNamespace(version_of=lambda _: 7)
    await write(writes.Writes(client, pods, clock.ManualClock()))
    assert client.bodies
    assert [body["metadata"]["uid"] for body in client.bodies] == [POD.uid] * len(client.bodies)
