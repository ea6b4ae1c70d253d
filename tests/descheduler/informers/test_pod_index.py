import collections

from hypothesis import given
from hypothesis import strategies as st

from descheduler.informers import pod_index
from descheduler.model import podinfo
from kube.informers import store
from tests.descheduler import builders

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "remove", "look"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["1", "2"]),
        st.sampled_from(["", "n1", "n2"]),
        st.sampled_from(["", "ReplicaSet/x", "ReplicaSet/y"]),
        st.sampled_from([{"labels": {"app": "x"}}, {"labels": {"app": "y"}, "phase": "Failed"}]),
    ),
    max_size=40,
)


def grouped(pods, word):
    found = collections.defaultdict(list)
    for pod in sorted(pods, key=lambda pod: pod.key):
        if word(pod):
            found[word(pod)].append(pod)
    return {name: tuple(group) for name, group in found.items()}


@given(STEPS)
def test_a_snapshot_is_what_one_finds_by_looking_through_all_pods(steps):
    pods = store.Store()
    index = pod_index.PodIndex(pods)
    for version, (what, name, uid, node, controller, fields) in enumerate(steps, 1):
        pod = builders.pod(name, node, uid=f"{name}-{uid}", controller=controller, **fields)
        match what:
            case "put":
                pods.put(store.Meta(pod.key, pod.uid, version), pod)
            case "remove":
                pods.remove(pod.key, version)
            case _:
                index.snapshot()
    held = list(pods)
    seen = index.snapshot()
    assert seen.pods == {pod.uid: pod for pod in held}
    assert seen.on_node == grouped(held, lambda pod: pod.node)
    assert seen.by_controller == grouped(held, lambda pod: pod.controller and pod.controller.uid)
    running = [pod for pod in held if pod.node and not pod.has_ended]
    assert seen.alike == grouped(running, podinfo.likeness)


def test_a_snapshot_does_not_change():
    pods = store.Store()
    index = pod_index.PodIndex(pods)
    pod = builders.pod("web-0", "n")
    pods.put(store.Meta(pod.key, pod.uid, 1), pod)
    before = index.snapshot()
    pods.remove(pod.key, 2)
    assert index.snapshot().pods == {}
    assert before.pods == {pod.uid: pod}
    assert before.on_node == {"n": (pod,)}
