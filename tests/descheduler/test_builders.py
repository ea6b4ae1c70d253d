from api.koordinator.metadata import qos
from api.kubernetes import core
from tests.descheduler import builders


def test_a_picture_finds_pods_by_node_and_controller():
    running = builders.pod("web-0", "node-0", cpu="500m")
    waiting = builders.pod("jobs/w", controller="", labels={"koordinator.sh/qosClass": "BE"})
    seen = builders.picture_of(
        [builders.node("node-0", ready=False)],
        [running, waiting],
        [builders.usage("node-0", {"cpu": "1"}, {"web-0": {"cpu": "250m", "memory": "1Gi"}})],
        jobs=[builders.job("j", "web-0")],
    )
    assert seen.on_node == {"node-0": (running,)}
    assert seen.by_controller == {"web": (running,)}
    assert seen.workloads["web"].replicas == 1
    assert seen.usage["node-0"].by_pod["default/web-0"] == {"cpu": 250, "memory": 1 << 30}
    assert seen.jobs["j"].pod_key == running.key
    assert seen.jobs["j"].spec.pod_ref.uid == running.uid
    assert not seen.nodes["node-0"].is_ready
    assert running.requests == {"cpu": 500, "memory": 1 << 30, "pods": 1}
    assert (waiting.key, waiting.uid, waiting.band) == ("jobs/w", "uid-jobs-w", qos.Band.BATCH)
    assert set(seen.namespaces) == {"default", "jobs"}


def test_a_pod_requires_what_it_is_given():
    tolerates = core.Toleration(key="dedicated", operator="Exists")
    pod = builders.pod(selector={"zone": "a"}, tolerations=[tolerates])
    assert pod.wanted.nodes is not None
    assert pod.wanted.nodes.matches("n", {"zone": "a"})
    assert pod.wanted.tolerations == (tolerates,)
