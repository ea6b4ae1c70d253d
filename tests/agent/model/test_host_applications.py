"""Processes outside of Kubernetes are measured where the NodeSLO says that they run."""

import pytest

from agent.model import cgroup_layout, host_applications, state
from api.koordinator.settings import strategies
from simulator.kubelet import nodefs

GIB = 1 << 30


def application(name="nginx", **fields):
    return strategies.HostApplication.model_validate({"name": name, **fields})


def path(base="", parent="", relative=""):
    return {"base": base, "parentDir": parent, "relativePath": relative}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"qos": "LS"}, "host-latency-sensitive/nginx"),
        ({"qos": "LSE"}, "host-latency-sensitive/nginx"),
        ({"qos": "BE"}, "host-best-effort/nginx"),
        ({}, "nginx"),
        ({"cgroupPath": path("CgroupRoot", "host-ls/", "nginx/")}, "host-ls/nginx"),
        ({"cgroupPath": path("Kubepods", "", "own")}, "kubepods.slice/own"),
        (
            {"qos": "BE", "cgroupPath": path("KubepodsBesteffort", "a", "b")},
            "kubepods.slice/kubepods-besteffort.slice/a/b",
        ),
    ],
    ids=["LS", "LSE", "BE", "none", "root", "kubepods", "best effort"],
)
def test_where_an_application_runs(given, expected):
    arranged = cgroup_layout.Layout("/cgroup", 2, "systemd")
    assert host_applications.group(arranged, application(**given)) == expected


@pytest.mark.parametrize("bad", [path("CgroupRoot", "..", "etc"), path("CgroupRoot", "", "")])
def test_where_no_application_can_run(bad):
    arranged = cgroup_layout.Layout("/cgroup", 2, "systemd")
    with pytest.raises(cgroup_layout.LayoutError):
        host_applications.group(arranged, application(cgroupPath=bad))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"qos": "BE", "cgroupPath": path("KubepodsBesteffort", "a", "b")}, True),
        ({"qos": "BE"}, False),
        ({"qos": "LS", "cgroupPath": path("KubepodsBesteffort", "a", "b")}, False),
    ],
)
def test_only_below_the_best_effort_pods_it_counts_as_such(given, expected):
    assert host_applications.seen(application(**given), state.Usage()).best_effort is expected


def test_use_is_measured_and_is_no_use_of_the_system(host):
    host.know(
        host_applications=(
            application(qos="LS", priority="koord-prod"),
            application("gone", qos="LS"),
            application("wrong", cgroupPath=path("CgroupRoot", "..", "x")),
        )
    )
    host.tree.set_load(nodefs.SYSTEM, 3000, 4 * GIB)
    groups = host.tree._groups
    for folder in ("host-latency-sensitive", "host-latency-sensitive/nginx"):
        groups.make(folder)
    for second in range(4):
        groups.write_usage("host-latency-sensitive/nginx", second * 2_000_000_000, GIB)
        picture = host.step()
    nginx, gone, wrong = picture.host_applications
    assert (nginx.name, nginx.cpu, nginx.memory) == ("nginx", pytest.approx(2.0), GIB)
    assert (nginx.priority, nginx.qos) == ("koord-prod", "LS")
    assert gone.cpu is None
    assert wrong.cpu is None
    assert list(picture.problems) == ["host application wrong"]
    assert picture.system.cpu == pytest.approx(1.0, abs=0.05)
    assert picture.system.memory == pytest.approx(3 * GIB, rel=0.01)
