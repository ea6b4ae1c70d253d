from tests.planes import invariants


def pod_on(pod, name, node, **options):
    return pod(name, nodeName=node, status={"phase": "Running"}, **options)


def test_too_much_on_a_node_is_told(pod, node):
    pods = [pod_on(pod, name, "n", requests={"cpu": "3"}) for name in ("x", "y")]
    assert list(invariants.overcommitted([node()], pods)) == ["n: 6000 of 4000 cpu are requested"]
    assert list(invariants.overcommitted([node()], pods[:1])) == []


def test_too_many_on_a_node_are_told(pod, node):
    pods = [pod_on(pod, name, "n") for name in ("x", "y")]
    assert list(invariants.overcommitted([node(pods="1")], pods)) == [
        "n: 2 of 1 pods are requested"
    ]


def test_a_pod_without_node_and_reason_is_lost(pod):
    refused = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    pods = [pod("lost"), pod("told", status=refused), pod_on(pod, "placed", "n")]
    assert list(invariants.lost(pods)) == ["lost"]
