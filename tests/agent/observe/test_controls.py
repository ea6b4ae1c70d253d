"""What only decisions need to know of a host."""

import msgspec
import pytest

from agent.host import files
from agent.model import cgroup_layout, edits, state, strategy_settings
from agent.observe import controls
from agent.observe.cgroups import cgroup_files
from agent.observe.node import kernel_features

AUTO = strategy_settings.Strategies(
    burst=strategy_settings.NodeBurst(strategy_settings.Burst("auto"))
)


@pytest.fixture
def seen(host):
    """A host on which something is enforced, with an online pod on it."""
    host.add("online", "Guaranteed", 1000)
    host.know(enforced=AUTO)
    return host


def group_file(host, controller, name, group="online"):
    pod = host.look().pods[0]
    folder = {"online": pod.group, "app": pod.containers[0].group}[group]
    root = host.tree.cgroup / controller if host.tree.version == 1 else host.tree.cgroup
    return root / folder / name


def test_pods_carry_their_groups_and_limits(host):
    host.add("online", "Burstable", 1000)
    host.know(enforced=AUTO)
    picture = host.step()
    (pod,) = picture.pods
    (container,) = pod.containers
    assert pod.group.endswith("podonline.slice")
    assert container.group == f"{pod.group}/cri-containerd-c-online.scope"
    assert container.container.resources.limits["cpu"] == "2"
    assert (pod.quota_us, container.quota_us) == (-1, -1)
    assert set(picture.qos_groups) == {"Guaranteed", "Burstable", "BestEffort"}
    assert "cpu-quota" in picture.kernel.roles
    assert "cpu-burst" not in picture.kernel.roles


def test_without_enforcement_nothing_more_is_read(seen):
    seen.know(enforced=None)
    picture = seen.step()
    assert picture.pods[0].quota_us is None
    assert picture.kernel == state.Kernel()
    seen.know(enforced=strategy_settings.Strategies())
    assert seen.step().pods[0].quota_us is None


@pytest.mark.parametrize(
    ("kubernetes_qos", "throttled"), [("Burstable", 0.5), ("Guaranteed", 0.5), ("BestEffort", None)]
)
def test_what_is_read_of_limits_follows_the_class(host, kubernetes_qos, throttled):
    host.add("one", kubernetes_qos, 1000)
    host.know(enforced=AUTO)
    file = group_file(host, "cpu", "cpu.stat", "app")
    for periods in (10, 20):
        used = "usage_usec 1\n" if host.tree.version == 2 else ""
        file.write_text(f"{used}nr_periods {periods}\nnr_throttled {periods // 2}\n")
        (pod,) = host.look().pods
    (container,) = pod.containers
    assert container.throttled == throttled
    quota = -1 if kubernetes_qos == "Burstable" else None
    assert (pod.quota_us, container.quota_us) == (quota, quota)


def test_throttling_is_a_share_of_the_periods_between_two_looks(seen):
    cgroups = cgroup_files.Cgroups(
        seen.observer.layout or cgroup_layout.Layout("", 1, "systemd"), files.Kept()
    )
    seen.step()
    cgroups = cgroup_files.Cgroups(seen.observer.layout, files.Kept())
    place = group_file(seen, "cpu", "cpu.stat", "app")
    measured = controls.Controls(controls.Place("", ""), files.Kept())
    group = seen.look().pods[0].containers[0].group

    def throttled(periods, times):
        place.write_text(f"nr_periods {periods}\nnr_throttled {times}\n")
        return measured.throttled(group, cgroups)

    assert throttled(100, 0) is None
    assert throttled(200, 30) == 0.3
    assert throttled(200, 30) == 0.0
    assert throttled(50, 0) is None
    place.unlink()
    assert (
        measured.throttled(group, cgroup_files.Cgroups(seen.observer.layout, files.Kept())) is None
    )
    measured.forget([])
    assert measured.throttled("gone", cgroups) is None


def test_the_pause_container_is_the_one_that_nobody_names(seen):
    assert seen.step().pods[0].sandbox == ""
    pod = seen.look().pods[0]
    root = seen.tree.cgroup / "cpuset" if seen.tree.version == 1 else seen.tree.cgroup
    (root / pod.group / "cri-containerd-pause.scope").mkdir()
    for _ in range(2):
        assert seen.look().pods[0].sandbox == ""
    assert seen.step(61).pods[0].sandbox == f"{pod.group}/cri-containerd-pause.scope"


def test_pressure_is_read_where_somebody_asks(seen):
    pressure = seen.tree.proc / "pressure"
    pressure.mkdir()
    (pressure / "cpu").write_text("some avg10=12.50 avg60=1.00 avg300=0.00 total=5\n")
    (pressure / "memory").write_text("some avg10=3.00 total=1\nfull avg10=1.00 total=1\n")
    assert seen.step().pressure == state.Pressure()
    bounds = strategy_settings.CpuEviction(used=strategy_settings.Bounds(85, 80))
    seen.know(enforced=msgspec.structs.replace(AUTO, cpu_eviction=bounds))
    assert seen.step().pressure == state.Pressure(12.5, 3.0, 1.0)
    assert seen.look().online_pressure == state.Pressure()
    seen.observer.watching_pressure = True
    own = group_file(seen, "cpuacct", "cpu.pressure")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("some avg10=40.00 avg60=1.00 avg300=0.00 total=5\n")
    assert seen.step().online_pressure.cpu == 40.0
    own.write_text("nonsense\n")
    assert seen.step().online_pressure.cpu is None


def test_devices_of_the_machine(tmp_path):
    for name, number in (("vda", "254:0"), ("loop0", "7:0")):
        folder = tmp_path / "block" / name
        (folder / f"{name}1").mkdir(parents=True)
        (folder / "dev").write_text(f"{number}\n")
    (tmp_path / "block" / "broken").mkdir()
    assert kernel_features.disks(str(tmp_path)) == {
        "device:/dev/vda": "254:0",
        "device:/dev/vda1": "254:0",
        "device:/dev/loop0": "7:0",
        "device:/dev/loop01": "7:0",
    }
    assert kernel_features.disks(str(tmp_path / "none")) == {}


CPUINFO = "processor : 0\nvendor_id : GenuineIntel\nflags : fpu cat_l3 mba\n\nprocessor : 1\n"


@pytest.fixture
def machine(tmp_path):
    info = tmp_path / "fs" / "resctrl" / "info" / "L3"
    info.mkdir(parents=True)
    (info / "cbm_mask").write_text("7ff\n")
    (tmp_path / "fs" / "resctrl" / "schemata").write_text(
        "    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n"
    )
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    return tmp_path


def test_caches_that_can_be_divided(machine):
    place = str(machine)
    assert kernel_features.caches(place, place) == state.Caches((0, 1), 0x7FF, "GenuineIntel")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cpuinfo", "vendor_id : X\nflags : fpu\n"),
        ("fs/resctrl/schemata", "MB:0=100\n"),
        ("fs/resctrl/schemata", "L3:x=1\n"),
        ("fs/resctrl/info/L3/cbm_mask", "zz\n"),
    ],
    ids=["no flag", "no line", "no number", "no mask"],
)
def test_caches_that_cannot_be_divided(machine, name, text):
    (machine / name).write_text(text)
    assert kernel_features.caches(str(machine), str(machine)) is None


def test_the_kernel_is_asked_for_core_scheduling():
    assert kernel_features.has_core_scheduling() in (True, False)


def test_a_role_of_the_host_is_found_by_its_file(tmp_path):
    arranged = cgroup_layout.Layout(str(tmp_path), 2, "systemd", proc=str(tmp_path / "proc"))
    (tmp_path / "proc" / "sys" / "kernel").mkdir(parents=True)
    (tmp_path / "proc" / "sys" / "kernel" / "sched_core").write_text("0")
    found = kernel_features.kernel(arranged, ("kubepods.slice",)).roles
    assert found == {edits.Role.SCHED_CORE.value}
