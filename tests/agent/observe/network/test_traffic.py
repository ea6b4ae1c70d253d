"""What pods send and receive is seen through their processes, and told while they are there."""

import msgspec
import pytest

from agent.host import files
from agent.model import cgroup_layout
from agent.observe import collectors
from agent.observe.network import traffic
from agent.observe.node import kernel_features
from process.runtime import metrics

HEAD = "Inter-|   Receive | Transmit\n face |bytes packets errs drop | bytes packets errs drop\n"


def interface(name, received, sent, dropped=0):
    return f"{name}: {received} 2 0 {dropped} 0 0 0 0 {sent} 3 0 0 0 0 0 0\n"


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (HEAD, []),
        (HEAD + interface("  eth0", 1, 2), ["eth0"]),
        (interface("lo", 1, 2) + interface("e.1", 3, 4), ["lo", "e.1"]),
    ],
)
def test_interfaces(data, names):
    assert list(traffic.interfaces(data.encode())) == names


def test_counters_that_are_none():
    with pytest.raises(files.ReadingError, match="no counters"):
        traffic.interfaces(interface("eth0", "many", 2).encode())


@pytest.fixture
def talking(host):
    host.add("a", "Burstable", 100)
    host.registry = metrics.Registry()
    made = traffic.Traffic(host.registry, 10.0)
    host.observer._collectors = collectors.Collectors([made])

    def write(process, text):
        path = host.tree.proc / str(process) / "net" / "dev"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text)

    host.write = write
    ends = interface("veth1", 9, 9) + interface("lo", 9, 9)
    write(1, interface("eth0", 1000, 2000, 5) + interface("bond0", 1, 1) + ends)
    (pod,) = host.look().pods
    place = cgroup_layout.Layout(str(host.tree.cgroup), host.tree.version, "systemd")
    host.procs = files.os.path.realpath(
        place.path(cgroup_layout.File.PROCESSES, pod.containers[0].group)
    )
    return host


def run(host, text):
    with open(host.procs, "w") as file:  # noqa: PTH123
        file.write(text)


def of_pod(host, name="bytes", direction="received"):
    labels = {"pod_namespace": "default", "pod_name": "name-a", "direction": direction}
    return host.registry.value(f"koord_agent_network_{name}_total", labels)


def of_node(host, interface, name="bytes", direction="received"):
    labels = {"interface": interface, "direction": direction}
    return host.registry.value(f"koord_agent_node_network_{name}_total", labels)


def test_pods_and_node(talking):
    run(talking, "0\n")
    assert "network" not in talking.step(10).problems
    assert of_pod(talking) is None
    run(talking, "77\n78\n")
    talking.write(77, interface("lo", 7, 7) + interface("eth0", 100, 200) + interface("net1", 1, 1))
    talking.step(10)
    assert (of_pod(talking), of_pod(talking, direction="sent")) == (101, 201)
    assert of_pod(talking, "packets", "sent") == 6
    assert of_node(talking, "eth0") == 1000
    assert of_node(talking, "eth0", "dropped_packets") == 5
    assert of_node(talking, "bond0") == 1
    assert (of_node(talking, "veth1"), of_node(talking, "lo")) == (None, None)
    talking.write(77, interface("eth0", 301, 200))
    talking.step(10)
    samples = talking.observer.samples
    assert samples.get(("pod", "a", "network-received-bytes")).newest[1] == 20.0
    talking.know(pods=())
    talking.step(10)
    assert of_pod(talking) is None
    assert of_node(talking, "eth0") == 1000
    talking.observer.close()
    assert of_node(talking, "eth0") is None


def test_a_pod_in_the_network_of_the_node_is_left_out(talking):
    run(talking, "77\n")
    talking.write(77, interface("eth0", 100, 200))
    (pod,) = talking.known.pods
    talking.know(
        pods=(
            msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, host_network=True)),
        )
    )
    talking.step(10)
    assert of_pod(talking) is None


def test_a_process_that_is_gone_is_no_failure(talking):
    run(talking, "99\n")
    assert "network" not in talking.step(10).problems
    assert of_pod(talking) is None


def test_without_the_process_ids_of_the_host_it_is_named(host, monkeypatch):
    monkeypatch.setattr(kernel_features, "names_processes", lambda: False)
    sight = collectors.Sight(
        1.0, cgroup_layout.Layout("/none", 2, "systemd"), files.Kept(), host.observer.samples
    )
    with pytest.raises(files.ReadingError, match=r"agent\.measure\.network of the chart"):
        traffic.Traffic(metrics.Registry(), 10.0).collect(sight)
