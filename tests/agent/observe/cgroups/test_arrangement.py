"""Every way in which kubelets and runtimes arrange groups is found out, used and told."""

import msgspec
import pytest

from agent.host import files
from agent.model import cgroup_layout
from agent.observe import collectors as collecting
from agent.observe import controls, observation
from agent.observe.cgroups import arrangement, cgroup_files
from agent.store import time_series
from api.kubernetes import core
from process.runtime import metrics
from simulator.kubelet import cgroup_names, nodefs

GIB = 1 << 30
POD, SANDBOX = "a-b", "5" * 64
IDS = {"containerd": "containerd://", "cri-o": "cri-o://", "docker": "docker://"}
DRIVERS, ROOTS = ("systemd", "cgroupfs"), ("", "kubelet", "on/my-nodes")
NAMINGS = [
    cgroup_names.Naming(driver, runtime, below)
    for driver in DRIVERS
    for runtime in IDS
    for below in ROOTS
    # What lies above says nothing about what lies below.
    if not below or runtime == "containerd"
]


def told(naming):
    return f"{naming.driver}-{naming.runtime}-{naming.kubelet_root.replace('/', ':') or 'top'}"


def make(tmp_path, naming, version):
    tree = nodefs.HostTree(tmp_path, 4, 8 * GIB, version, naming=naming)
    tree.add_pod(POD, "Burstable", ["c1"])
    return tree


def pod_of(naming):
    raw = {
        "metadata": {"name": "a", "namespace": "default", "uid": POD},
        "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "containerStatuses": [{"name": "app", "containerID": f"{IDS[naming.runtime]}c1"}],
        },
    }
    return msgspec.convert(raw, core.Pod)


@pytest.mark.parametrize("version", [1, 2], ids=["v1", "v2"])
@pytest.mark.parametrize("naming", NAMINGS, ids=told)
def test_groups_are_found_and_measured(tmp_path, naming, version):
    tree = make(tmp_path, naming, version)
    tree.set_load(POD, 1000, GIB)
    roots = observation.Roots(str(tree.proc), str(tree.sys), str(tree.cgroup))
    observer = observation.Observer(roots, 1.0)
    known = observation.Known(pods=(pod_of(naming),))
    try:
        for at in (1.0, 2.0):
            tree.advance(1.0)
            picture = observer.observe(known, observation.Moment(at, at))
    finally:
        observer.close()
    assert not picture.problems
    (pod,) = picture.pods
    assert pod.usage.cpu == pytest.approx(1.0)
    assert pod.containers[0].usage.cpu == pytest.approx(1.0)
    assert (observer.layout.version, observer.layout.driver) == (version, naming.driver)
    assert observer.layout.base == "/".join(naming.above()[-1:])
    expected = naming.runtime
    if naming.driver == "cgroupfs" and expected != "cri-o":
        expected = ""
    assert cgroup_files.runtime(observer.layout) == expected


@pytest.mark.parametrize("version", [1, 2], ids=["v1", "v2"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_root_that_somebody_names(tmp_path, driver, version):
    naming = cgroup_names.Naming(driver, kubelet_root="deep/er/than/we-look")
    tree = make(tmp_path, naming, version)
    assert cgroup_files.detect(str(tree.cgroup)) is None
    found = cgroup_files.detect(str(tree.cgroup), "/deep/er/than/we-look")
    assert found.pod_group(POD, "Burstable") == naming.pod_folder(POD, "Burstable")
    assert cgroup_files.detect(str(tree.cgroup), "elsewhere") is None


def test_of_several_none_is_guessed(tmp_path):
    for root in ("one", "other"):
        make(tmp_path, cgroup_names.Naming("cgroupfs", kubelet_root=root), 2)
    observer = observation.Observer(
        observation.Roots(cgroup=str(tmp_path / "cgroup"), proc=str(tmp_path / "proc")), 1.0
    )
    picture = observer.observe(observation.Known(), observation.Moment(1.0, 1.0))
    assert "below one, other; name the one" in picture.problems["cgroup"]
    observer.close()
    chosen = msgspec.structs.replace(observer.roots, kubelet_root="other")
    observer = observation.Observer(chosen, 1.0)
    observer.observe(observation.Known(), observation.Moment(1.0, 1.0))
    assert observer.layout.base == "other"
    observer.close()
    make(tmp_path, cgroup_names.Naming("cgroupfs"), 2)
    assert cgroup_files.detect(str(tmp_path / "cgroup")).base == ""


@pytest.mark.parametrize(
    "above", ["system.slice/x", "user.slice", "machine.slice/m.scope", "docker/abc", "a/b/c/d"]
)
def test_groups_inside_of_others_are_theirs(tmp_path, above):
    (tmp_path / "cgroup.controllers").write_text("cpu\n")
    (tmp_path / above / "kubepods").mkdir(parents=True)
    assert cgroup_files.detect(str(tmp_path)) is None


def test_version_2_beside_version_1_is_told(tmp_path):
    tree = make(tmp_path, cgroup_names.Naming(), 1)
    assert str(cgroup_files.detect(str(tree.cgroup))) == "cgroup v1, systemd"
    (tree.cgroup / "unified").mkdir()
    (tree.cgroup / "unified" / "cgroup.procs").write_text("")
    assert str(cgroup_files.detect(str(tree.cgroup))) == "cgroup v1 with v2 beside it, systemd"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cri-containerd-1.scope", "containerd"),
        ("docker-1.scope", "docker"),
        ("crio-1.scope", "cri-o"),
        ("crio-1", "cri-o"),
        ("docker-1", ""),
        ("0123abc", ""),
        ("rkt://1", ""),
        ("docker://1", "docker"),
    ],
)
def test_names_of_runtimes(name, expected):
    assert cgroup_layout.runtime_of(name) == expected


SCOPES = {
    "containerd-systemd": ("cri-containerd-s.scope", ["cri-containerd-c1.scope"]),
    "containerd-cgroupfs": (SANDBOX, ["c1"]),
    "docker-systemd": ("docker-s.scope", ["docker-c1.scope"]),
    "cri-o-scope": (
        "crio-s.scope",
        ["crio-c1.scope", "crio-conmon-c1.scope", "crio-conmon-s.scope"],
    ),
    "cri-o-plain": ("crio-s", ["crio-c1.scope", "crio-conmon-c1.scope", "crio-old.scope"]),
    "cri-o-cgroupfs": ("crio-s", ["crio-c1", "crio-conmon-c1", "crio-conmon-s"]),
    "cri-o-without": ("", ["crio-c1.scope", "crio-conmon-c1.scope"]),
}


@pytest.mark.parametrize(("sandbox", "others"), SCOPES.values(), ids=SCOPES)
def test_the_sandbox_is_told_from_what_accompanies_containers(tmp_path, sandbox, others):
    for name in filter(None, [sandbox, *others]):
        (tmp_path / "p" / name).mkdir(parents=True)
    looking = controls.Controls(controls.Place("", ""), files.Kept())
    arranged = cgroup_layout.Layout(str(tmp_path), 2, "systemd")
    found = looking.sandbox(arranged, "p", [f"p/{others[0]}"], 1.0)
    assert found == (f"p/{sandbox}" if sandbox else "")


def test_the_layout_is_told_and_told_again_when_it_is_known_better(tmp_path):
    naming = cgroup_names.Naming("cgroupfs")
    tree = make(tmp_path, naming, 2)
    registry = metrics.Registry()
    telling = arrangement.Stated(registry)
    arranged = cgroup_files.detect(str(tree.cgroup))
    sight = collecting.Sight(1.0, arranged, files.Kept(), time_series.Histories())
    telling.collect(sight)
    labels = {"version": "2", "hybrid": "no", "driver": "cgroupfs", "below": ""}
    assert registry.value("koord_agent_layout_info", labels | {"runtime": ""}) == 1
    before = telling.seconds
    roots = observation.Roots(str(tree.proc), str(tree.sys), str(tree.cgroup))
    observer = observation.Observer(roots, 1.0)
    known = observation.Known(pods=(pod_of(naming),))
    picture = observer.observe(known, observation.Moment(1.0, 1.0))
    observer.close()
    telling.collect(msgspec.structs.replace(sight, pods=picture.pods))
    assert registry.value("koord_agent_layout_info", labels | {"runtime": ""}) is None
    assert registry.value("koord_agent_layout_info", labels | {"runtime": "containerd"}) == 1
    assert before < telling.seconds == arrangement.SECONDS
    telling.close()
