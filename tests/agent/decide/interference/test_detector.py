"""Interference: a pod against its own baseline, and the neighbours that are suspected."""

import random

import msgspec
import pytest

from agent.decide.interference import baselines, detector, findings, suspects
from agent.model import state
from agent.store import time_series

MIB = 1 << 20
WALL = 1.7e9
SERIES = {
    "cpu": "cpu",
    "memory": "memory",
    "read": "disk-read",
    "wait": "pressure-cpu-some",
    "full": "pressure-cpu-full",
    "stall": "pressure-memory-some",
    "io": "pressure-io-some",
}


class World:
    """One victim `web`, a batch pod `batch` and an online pod `api`; a look takes ten seconds."""

    def __init__(self, placed, rules=None):
        self.pods = {
            "web": placed("web", limits={"cpu": "8", "memory": "4Gi"}),
            "batch": placed("batch", quality="BE", kubernetes_qos="BestEffort"),
            "api": placed("api"),
        }
        self.samples = time_series.Histories()
        self.detector = detector.Detector(rules)
        self.now = 0.0
        self.figures = {
            "web": {"cpu": 1.0, "memory": 100.0 * MIB, "read": MIB, "wait": 2.0, "io": 1.0},
            "batch": {"cpu": 0.5, "memory": 100.0 * MIB, "read": MIB},
            "api": {"cpu": 0.5, "memory": 100.0 * MIB, "read": MIB},
        }
        self.throttled, self.cpus, self.processors = frozenset(), {}, ()

    def set(self, pod, **figures):
        self.figures.setdefault(pod, {}).update(figures)

    def look(self, count=1, *, seconds=10.0, vary=lambda figure, value: value):
        found = ()
        for _ in range(count):
            self.now += seconds
            pods = []
            for name, pod in self.pods.items():
                values = {key: vary(key, value) for key, value in self.figures[name].items()}
                uid = pod.pod.metadata.uid
                for figure, value in values.items():
                    if figure == "cpi":
                        self.add(("container", uid, "app", "instructions"), 1e9)
                        self.add(("container", uid, "app", "cycles"), value * 1e9)
                    else:
                        self.add(("pod", uid, SERIES[figure]), value)
                usage = state.Usage(values.get("cpu"), int(values.get("memory", 0)))
                pods.append(msgspec.structs.replace(pod, usage=usage))
            scene = suspects.Scene(pods, self.samples, self.now, self.processors, self.cpus)
            found = self.detector.step(detector.Look(scene, WALL + self.now, self.throttled))
        return found

    def add(self, key, value):
        self.samples.add(key, self.now, value, 300.0)


@pytest.fixture
def world(placed):
    return World(placed)


@pytest.fixture
def learned(world):
    assert world.look(70) == ()
    return world


def test_a_step_is_found_within_three_looks_and_the_batch_pod_is_named(learned):
    learned.set("web", wait=40.0)
    learned.set("batch", cpu=4.5)
    assert learned.look(2) == ()
    assert learned.detector.suspicious
    (one,) = learned.look()
    assert (one.uid, one.signal, one.value, round(one.usual)) == ("uid-web", "cpu-some", 40.0, 2)
    assert one.since == WALL + 710.0
    assert one.confidence is findings.Confidence.HIGH
    (held,) = one.suspects
    assert (held.key, held.qos, held.rise, held.share) == ("default/batch", "BE", 4.0, 1.0)
    assert one.note() == (
        "some of its tasks wait for cpu 40 % of the time, usually 2 % (15.2 deviations above); "
        "suspected with high confidence: default/batch (BE), which added 4.00 cores"
    )


def test_it_lasts_through_short_lulls_and_ends_after_six_quiet_looks(learned):
    learned.set("web", wait=40.0)
    learned.set("batch", cpu=4.5)
    first = learned.look(3)
    learned.set("web", wait=2.0)
    assert [len(learned.look()) for _ in range(5)] == [1] * 5
    learned.set("web", wait=40.0)
    (again,) = learned.look()
    assert again.episode == first[0].episode
    learned.set("web", wait=2.0)
    assert [len(learned.look()) for _ in range(6)] == [1, 1, 1, 1, 1, 0]


def test_the_baseline_is_held_while_it_lasts(learned):
    learned.set("web", wait=40.0)
    learned.set("batch", cpu=4.5)
    (one,) = learned.look(3)
    (later,) = learned.look(200)
    assert later.usual == one.usual
    assert later.suspects == one.suspects


def test_what_lasts_a_day_is_the_new_normal(placed):
    world = World(placed, detector.Rules(longest_seconds=600.0))
    world.look(70)
    world.set("web", wait=40.0)
    assert len(world.look(5)) == 1
    assert world.look(60) == ()
    assert world.look(100) == ()
    world.set("web", wait=80.0)
    assert len(world.look(3)) == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"web": {"wait": 40.0, "cpu": 2.0}}, "its own load"),
        ({"web": {"wait": 40.0, "cpu": 7.5}}, "its cpu limit"),
        ({"web": {"stall": 40.0, "memory": 4000.0 * MIB}}, "its memory limit"),
        ({"web": {"io": 60.0, "read": 50.0 * MIB}}, "its own reads"),
        ({"web": {"wait": 11.0}}, "too small a rise"),
        ({"batch": {"wait": 90.0, "cpu": 4.0}}, "best effort is no victim"),
    ],
)  # fmt: skip
def test_what_is_no_interference(world, changes, why):
    world.set("web", stall=0.0)
    world.set("batch", wait=0.0)
    world.look(70)
    for pod, figures in changes.items():
        world.set(pod, **figures)
    assert world.look(20) == (), why


def test_a_throttled_pod_is_no_victim(learned):
    learned.throttled = frozenset({"uid-web"})
    learned.set("web", wait=40.0)
    assert learned.look(20) == ()


def test_a_starting_pod_is_no_victim(world):
    world.look(30)
    world.set("web", wait=60.0)
    assert world.look(5) == ()


@pytest.mark.parametrize("change", ["restart", "resize"])
def test_new_containers_and_new_amounts_are_learned_anew(learned, placed, change):
    if change == "restart":
        (container,) = learned.pods["web"].containers
        again = (msgspec.structs.replace(container, group="web/other"),)
        learned.pods["web"] = placed("web", limits={"cpu": "8"}, containers=again)
    else:
        learned.pods["web"] = placed("web", limits={"cpu": "9", "memory": "4Gi"})
    learned.set("web", wait=60.0)
    learned.set("batch", cpu=4.5)
    assert learned.look(100) == ()


def test_a_slower_processor_is_found_though_the_same_work_takes_more_time(world):
    world.set("web", cpi=1.0)
    world.look(70)
    world.set("web", cpi=2.0, cpu=2.0)
    world.set("batch", cpu=3.5)
    (one,) = world.look(20)
    assert (one.signal, one.container, one.value) == ("cpi", "app", 2.0)
    assert one.suspects[0].key == "default/batch"
    assert "container app: 2.00 cycles per instruction, usually 1.00" in one.note()


def test_more_work_at_a_higher_cpi_is_not_interference(world):
    world.set("web", cpi=1.0)
    world.look(70)
    world.set("web", cpi=1.5, cpu=3.0)
    assert world.look(20) == ()


def test_without_figures_of_its_own_disks_nothing_is_certain(world):
    for figures in world.figures.values():
        del figures["read"]
    world.look(70)
    world.set("web", io=60.0)
    (one,) = world.look(3)
    assert (one.confidence, one.suspects) == (findings.Confidence.LOW, ())
    assert "no neighbour is suspected" in one.note()


def test_one_finding_for_each_resource_the_strongest(world):
    world.set("web", full=0.0)
    world.look(70)
    world.set("web", wait=40.0, full=40.0, io=30.0)
    found = world.look(3)
    assert [one.signal for one in found] == ["cpu-full", "io-some"]


# -- suspects ----------------------------------------------------------------------------------


def test_lower_classes_come_first_and_trifles_are_left_out(learned, placed):
    for number in range(5):
        learned.pods[f"b{number}"] = placed(f"b{number}", quality="BE", kubernetes_qos="BestEffort")
        learned.set(f"b{number}", cpu=0.1)
    learned.look(20)
    learned.set("web", wait=60.0)
    learned.set("api", cpu=5.5)
    learned.set("batch", cpu=1.5)
    learned.set("b1", cpu=2.1)
    learned.set("b2", cpu=0.2)
    (one,) = learned.look(3)
    assert [held.name for held in one.suspects] == ["b1", "batch", "api"]
    assert one.confidence is findings.Confidence.MEDIUM


def test_a_pod_that_came_with_the_rise_is_suspected_for_all_it_uses(learned, placed):
    learned.pods["new"] = placed("new", quality="BE", kubernetes_qos="BestEffort")
    learned.set("new", cpu=3.0)
    learned.set("web", wait=60.0)
    (one,) = learned.look(3)
    assert [(held.name, held.rise) for held in one.suspects] == [("new", 3.0)]


CPUS = {"uid-web": frozenset({0, 1}), "uid-batch": frozenset({2, 3}), "uid-api": frozenset({1, 2})}
HALVES = tuple(state.Processor(cpu, cpu, 0, cpu // 3) for cpu in range(6))


@pytest.mark.parametrize(
    ("figures", "cpus", "named"),
    [
        ({"wait": 60.0}, CPUS, ["api"]),
        ({"wait": 60.0}, {"uid-web": frozenset({0, 1})}, ["batch", "api"]),
        # CPU 2 is of the victim's NUMA node.
        ({"cpi": 3.0}, CPUS, ["batch", "api"]),
        ({"cpi": 3.0}, {**CPUS, "uid-batch": frozenset({3, 4})}, ["api"]),
        ({"stall": 60.0}, CPUS, ["batch"]),
    ],
)
def test_only_those_that_share_what_is_short_are_suspected(world, figures, cpus, named):
    world.set("web", cpi=1.0, stall=0.0)
    world.look(70)
    world.cpus, world.processors = cpus, HALVES
    world.set("web", **figures)
    world.set("batch", cpu=3.0, memory=900.0 * MIB)
    world.set("api", cpu=3.0)
    (one,) = world.look(3)
    assert [held.name for held in one.suspects] == named


def test_processes_outside_of_pods_are_suspected_as_well(learned):
    for _ in range(20):
        learned.look()
        learned.add(("system", "cpu"), 0.2)
        learned.add(("host", "backup", "cpu"), 0.1)
    learned.set("web", wait=60.0)
    backup = state.HostApplication("backup", best_effort=True, qos="BE")
    for _ in range(3):
        learned.add(("system", "cpu"), 2.2)
        learned.add(("host", "backup", "cpu"), 1.1)
        learned.look()
    pods = [learned.pods["web"]]
    scene = suspects.Scene(pods, learned.samples, learned.now, host_applications=(backup,))
    found = suspects.of(scene, pods[0], findings.Signal.CPU_SOME, learned.now - 20)
    assert [held.key for held in found] == ["host application backup", suspects.OUTSIDE]


# -- for ever and for everything ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_interference(placed, seed):
    draw = random.Random(seed)
    spread = draw.choice([1.0, 5.0, 20.0])
    world = World(placed)
    world.set("web", wait=30.0, cpi=1.5)

    def vary(figure, value):
        if figure == "wait":
            return min(100.0, max(0.0, draw.gauss(value, spread)))
        return value * draw.uniform(0.85, 1.15)

    assert all(world.look(vary=vary) == () for _ in range(300))


@pytest.mark.parametrize("seed", range(5))
def test_a_step_out_of_any_noise_is_found_in_time(placed, seed):
    draw = random.Random(seed)
    spread, world = draw.uniform(0.0, 5.0), World(placed)
    world.set("web", wait=draw.uniform(0.0, 20.0))

    def vary(figure, value):
        return max(0.0, draw.gauss(value, spread)) if figure == "wait" else value

    world.look(draw.randint(80, 140), vary=vary)
    world.set("web", wait=80.0)
    world.set("batch", cpu=3.0)
    looks = next(n for n in range(1, 100) if world.look(vary=vary))
    assert looks <= 3


@pytest.mark.parametrize("seed", range(6))
def test_decayed_statistics_equal_those_of_all_samples_where_nothing_decays(seed):
    draw = random.Random(seed)
    values = [draw.gauss(50, 9) for _ in range(200)]
    base = baselines.Baseline()
    for at, value in enumerate(values):
        base = base.learned(value, float(at), 1e12)
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    assert (base.mean, base.variance) == (pytest.approx(mean), pytest.approx(variance))
    assert base.learned(float("nan"), 999.0, 1.0) == base
    assert base.learned(float("inf"), 999.0, 1.0) == base


def test_old_samples_count_less_by_the_half_life():
    base = baselines.Baseline().learned(10.0, 0.0, 100.0).learned(40.0, 100.0, 100.0)
    assert base.mean == pytest.approx((0.5 * 10 + 40) / 1.5)


def test_memory_is_bounded_and_pods_that_left_are_forgotten(placed):
    many = [placed(f"p{number}") for number in range(detector.MOST_PODS + 40)]
    looked = detector.Detector()
    samples = time_series.Histories()
    looked.step(detector.Look(suspects.Scene(many, samples, 1.0), WALL))
    assert (len(looked), looked.unwatched) == (detector.MOST_PODS, 40)
    looked.step(detector.Look(suspects.Scene(many[:3], samples, 2.0), WALL))
    assert (len(looked), looked.unwatched) == (3, 0)


def test_many_victims_at_once_are_judged_a_few_in_each_look(placed):
    world = World(placed)
    for number in range(40):
        world.pods[f"p{number}"] = placed(f"p{number}")
        world.set(f"p{number}", cpu=1.0, wait=2.0)
    world.look(70)
    for number in range(40):
        world.set(f"p{number}", wait=60.0)
    world.set("batch", cpu=4.0)
    counts = [len(world.look()) for _ in range(4)]
    assert counts == [0, 0, detector.MOST_JUDGED, 40]


def test_figures_that_stop_end_what_was_found(learned):
    learned.set("web", wait=60.0)
    assert len(learned.look(3)) == 1
    del learned.figures["web"]["wait"]
    learned.look(31)
    assert learned.look() == ()
    assert not learned.detector.suspicious
