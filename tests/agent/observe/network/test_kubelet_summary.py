"""What pods send is asked of the kubelet where the agent sees no processes."""

import json

import pytest

from agent.informers import kubelet_client as kubelets
from agent.observe import collectors
from agent.observe.network import kubelet_summary
from process.runtime import clock as clocks
from process.runtime import metrics


def network(received, sent, **more):
    return {"name": "eth0", "rxBytes": received, "rxErrors": 0, "txBytes": sent, **more}


def answer(received=100):
    several = [network(received, 200), {"name": "net1", "rxBytes": 1, "txBytes": 1}]
    return {
        "node": {
            "nodeName": "n",
            "network": network(1, 1, interfaces=[network(7, 8), {"name": "veth1", "rxBytes": 9}]),
        },
        "pods": [
            {"podRef": {"uid": "a"}, "network": network(1, 1, interfaces=several)},
            {"podRef": {"uid": "gone"}, "network": network(1, 1)},
            {"podRef": {"uid": "b"}},
        ],
    }


class Kubelet:
    """Answers what it is told to."""

    def __init__(self):
        self.body, self.asked = json.dumps(answer()).encode(), []

    async def get(self, path):
        self.asked.append(path)
        if self.body is None:
            raise kubelets.KubeletError("403")
        return self.body


@pytest.fixture
def asking(host):
    host.kubelet, host.registry = Kubelet(), metrics.Registry()
    clock = clocks.ManualClock()
    host.summary = kubelet_summary.Summary(host.kubelet.get, clock, host.registry, 10.0)
    host.observer._collectors = collectors.Collectors([host.summary])
    host.add("a", "Burstable", 100)
    host.add("b", "Burstable", 100)
    return host


def of_pod(host, name, direction="received", kind="bytes"):
    labels = {"pod_namespace": "default", "pod_name": f"name-{name}", "direction": direction}
    return host.registry.value(f"koord_agent_network_{kind}_total", labels)


def of_node(host, interface):
    labels = {"interface": interface, "direction": "received"}
    return host.registry.value("koord_agent_node_network_bytes_total", labels)


async def test_what_it_answers_is_told(asking):
    assert "not been asked" in asking.step().problems["network"]
    await asking.summary.step()
    assert asking.kubelet.asked == ["stats/summary"]
    assert "network" not in asking.step().problems
    assert (of_pod(asking, "a"), of_pod(asking, "a", "sent")) == (101, 201)
    assert of_pod(asking, "a", kind="packets") is None
    assert of_pod(asking, "b") is None
    assert (of_node(asking, "eth0"), of_node(asking, "veth1")) == (7, None)
    asking.kubelet.body = json.dumps(answer(300)).encode()
    asking.step(8)
    assert of_pod(asking, "a") == 101
    await asking.summary.step()
    asking.step(1)
    newest = asking.observer.samples.get(("pod", "a", "network-received-bytes")).newest[1]
    assert newest == pytest.approx(200 / 9, rel=0.2)
    asking.observer.close()
    assert of_pod(asking, "a") is None


@pytest.mark.parametrize(
    "body",
    [None, b"nonsense", b"[]", b'{"pods": [{"podRef": {"uid": "\xff"}}]}'],
    ids=["refused", "no json", "no object", "no text"],
)
async def test_what_it_does_not_answer_is_named(asking, body):
    await asking.summary.step()
    asking.step()
    asking.kubelet.body = body
    await asking.summary.step()
    assert "let the agent get nodes/stats" in asking.step().problems["network"]
    assert of_pod(asking, "a") is None


async def test_a_kubelet_that_counts_nothing(asking):
    asking.kubelet.body = b"{}"
    await asking.summary.step()
    assert "network" not in asking.step().problems
    assert of_node(asking, "eth0") is None
