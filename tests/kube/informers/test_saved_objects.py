"""Saved objects fill stores; one that cannot be read is named and keeps no other out."""

from api import resources
from api.kubernetes import core
from kube.client import access, client
from kube.informers import informer_set, reflector, saved_objects
from process.runtime import clock as clocks


def test_stores_are_filled_and_flaws_are_named():
    clock = clocks.ManualClock()
    api = client.Client(access.Access("http://127.0.0.1:9"), clock=clock)
    members = informer_set.InformerSet(api, clock)
    nodes = members.add(reflector.whole(resources.NODES, core.Node))
    pods = members.add(reflector.whole(resources.PODS, core.Pod))
    saved = {
        resources.NODES: [
            {"metadata": {"name": "a"}},
            {"metadata": {"name": "b", "labels": 7}},
            {"metadata": 7},
        ]
    }
    flaws = saved_objects.fill(members, lambda one: saved.get(one.resource, ()))
    assert list(nodes.keys()) == ["a"]
    assert nodes.synced
    assert pods.synced
    assert not len(pods)
    assert [flaw.partition(":")[0] for flaw in flaws] == ["nodes b", "nodes"]
