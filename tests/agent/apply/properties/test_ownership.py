"""Who else writes to the cgroups of pods, and what is put back after they did."""

import msgspec
import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.model import edits, kubelet_cgroup_values, state
from api.kubernetes import core

CPUSET, QUOTA, MEMORY = edits.Role.CPUSET, edits.Role.CPU_QUOTA, edits.Role.MEMORY_LIMIT
GIB = 1 << 30
UNLIMITED = {1: str(0x7FFFFFFFFFFFF000), 2: "max"}


def resized(pod, cpu="2", memory="1Gi", *, status_only=False):
    """The pod with other limits, as its kubelet tells of it when they are in force."""
    limits = {"cpu": cpu, "memory": memory}
    found = core.ResourceRequirements(requests=limits, limits=limits)
    inner = (msgspec.structs.replace(pod.spec.containers[0], resources=found),)
    statuses = (msgspec.structs.replace(pod.status.container_statuses[0], resources=found),)
    status = msgspec.structs.replace(pod.status, container_statuses=statuses)
    if status_only:
        return msgspec.structs.replace(pod, status=status)
    spec = msgspec.structs.replace(pod.spec, containers=inner)
    return msgspec.structs.replace(pod, spec=spec, status=status)


class Bench:
    """One pod with limits, an executor, and a kubelet that writes what it is told."""

    def __init__(self, host, folder):
        self.host, self.folder = host, folder
        pod = resized(host.add("one", "Burstable", 500))
        host.know(pods=(pod,), thresholds=state.Thresholds(True))
        self.look()
        self.pod_group = self.picture.pods[0].group
        self.group = self.picture.pods[0].containers[0].group
        self.version = host.tree.version
        self.start()
        self.kubelet(cpu=2000, memory=GIB)
        self.second = 0

    def start(self):
        self.journal = journal.Journal(self.folder, "boot")
        self.journal.load()
        self.knobs = property_files.Knobs(self.host.observer.layout)
        self.acting = executor.Executor(self.knobs, self.journal, writing=True)
        self.follow()

    def look(self, kubelet=None):
        self.picture = self.host.step()
        if kubelet is not None:
            self.picture = msgspec.structs.replace(self.picture, kubelet=kubelet)

    def follow(self):
        self.acting.follow(
            kubelet_cgroup_values.KubeletWrites(self.picture, self.host.observer.layout)
        )

    def text(self, cpu):
        return f"{cpu * 100} 100000" if self.version == 2 else str(cpu * 100)

    def kubelet(self, cpu=None, memory=None, cpus=None):
        """Write as a kubelet does, to the pod and to its container."""
        for group in (self.pod_group, self.group):
            if cpu is not None:
                self.knobs.write(QUOTA, group, self.text(cpu))
            if memory is not None:
                self.knobs.write(MEMORY, group, str(memory))
        if cpus is not None:
            self.knobs.write(CPUSET, self.group, cpus)

    def want(self, role, value, seconds=1):
        self.second += seconds
        groups = (self.group,) if role is CPUSET else (self.pod_group, self.group)
        wanted = [edits.Edit(role, group, value, "r") for group in groups]
        return [what for what, _, _ in self.acting.apply(wanted, self.second).records]

    def tell(self, pod):
        """The kubelet's list says something new."""
        self.host.know(pods=(pod,))
        self.look()
        self.follow()

    def read(self, role):
        return {self.knobs.read(role, group) for group in (self.pod_group, self.group)}


@pytest.fixture
def bench(host, tmp_path):
    return Bench(host, tmp_path / "state")


ORDERS = {
    "seen, then told": ("write", "tick", "tell"),
    "told, then seen": ("tell", "write", "tick"),
    "told only": ("tell", "tick"),
    "seen only": ("write", "tick"),
    "between two ticks": ("write", "tell", "tick"),
}


RESIZES = {
    "2 to 4 cores": (QUOTA, "300000", (2000, GIB), (4000, GIB)),
    # The resize asks for the very value that a burst has reached.
    "to what a burst had": (QUOTA, "400000", (2000, GIB), (4000, GIB)),
    "4 to 1 cores": (QUOTA, "800000", (4000, GIB), (1000, GIB)),
    "memory grows": (MEMORY, str(2 * GIB), (2000, GIB), (2000, 4 * GIB)),
    "memory shrinks": (MEMORY, str(GIB // 2), (2000, GIB), (2000, GIB // 4)),
}
ENDS = ("release", "undo", "restart", "kill")
CASES = [
    pytest.param(*resize, order, how, id=f"{name}, {when}, {how}")
    for name, resize in RESIZES.items()
    for when, order in ORDERS.items()
    for how in (ENDS if when == "told only" else ENDS[len(name) % 4 :][:1])
    # Nobody could tell a text of ours from the same one of the kubelet that says nothing.
    if (name, when) != ("to what a burst had", "seen only")
]


@pytest.mark.parametrize(("role", "ours", "before", "after", "order", "how"), CASES)
def test_undo_never_writes_a_value_from_before_a_resize(
    bench, role, ours, before, after, order, how
):
    cpu, _ = before
    if cpu != 2000:
        bench.kubelet(cpu=cpu)
        bench.tell(resized(bench.host.known.pods[0], cpu=str(cpu // 1000)))
    bench.want(role, ours)
    pod = resized(bench.host.known.pods[0], cpu=str(after[0] // 1000), memory=str(after[1]))
    for step in order:
        if step == "write":
            bench.kubelet(cpu=after[0], memory=after[1])
        elif step == "tell":
            bench.tell(pod)
        else:
            bench.want(role, ours, 11)
    if how == "release":
        bench.want(role, None)
    else:
        if how != "undo":
            bench.start()
        bench.acting.put_back(how)
    text = bench.text(after[0]) if role is QUOTA else str(after[1])
    assert bench.read(role) == {text}
    assert bench.journal.entries == () or role is not QUOTA


def test_a_resize_that_waits_changes_nothing(bench):
    """The spec asks for more; the status says what the runtime still enforces."""
    bench.want(QUOTA, "300000")
    pod = bench.host.known.pods[0]
    waiting = resized(resized(pod, cpu="4"), cpu="2", status_only=True)
    bench.tell(waiting)
    bench.want(QUOTA, None)
    assert bench.read(QUOTA) == {bench.text(2000)}


def test_a_kubelet_that_sets_no_quota_gets_none_back(bench):
    """The prediction did not agree with the file, so it is not believed later either."""
    nothing = "max 100000" if bench.version == 2 else "-1"
    for group in (bench.pod_group, bench.group):
        bench.knobs.write(QUOTA, group, nothing)
    bench.want(QUOTA, "300000")
    bench.tell(resized(bench.host.known.pods[0], cpu="4"))
    bench.want(QUOTA, None)
    assert bench.read(QUOTA) == {nothing}


def test_a_resize_while_the_agent_is_away_is_followed(bench):
    bench.want(QUOTA, "300000")
    bench.kubelet(cpu=4000)
    bench.start()
    bench.want(QUOTA, "300000")
    assert bench.acting.given_up == {}
    bench.want(QUOTA, None)
    assert bench.read(QUOTA) == {bench.text(4000)}


STATIC = state.KubeletCpus(policy="static", problems={"kubelet cpus": "notes cannot be read"})
POOLS = ["0-7", "0-5", "0-3,6-7", "1-7", "0-6"]


@pytest.mark.parametrize(
    "kubelet", [STATIC, None, state.KubeletCpus()], ids=["static", "silent", "unasked"]
)
def test_a_static_cpu_manager_that_moves_its_pool_for_hours_never_wins(bench, kubelet):
    bench.look(kubelet)
    bench.follow()
    bench.kubelet(cpus=POOLS[0])
    bench.want(CPUSET, "0-1")
    for minute in range(1, 6 * 60):
        bench.kubelet(cpus=POOLS[minute % len(POOLS)])
        said = [word for _ in range(3) for word in bench.want(CPUSET, "0-1", 20)]
        assert said == ["written"]
        assert bench.knobs.read(CPUSET, bench.group) == "0-1"
        assert bench.acting.given_up == {}
        if minute % 60 == 7:
            bench.start()
            bench.look(kubelet)
            bench.follow()
    bench.acting.put_back("uninstall")
    assert bench.knobs.read(CPUSET, bench.group) == POOLS[minute % len(POOLS)]


def test_a_cpu_manager_is_put_right_at_a_limited_rate(bench):
    bench.look(STATIC)
    bench.follow()
    bench.want(CPUSET, "0-1")
    written = []
    for second in range(1, 30):
        bench.kubelet(cpus=f"0-{3 + second % 4}")
        written += [second] * bench.want(CPUSET, "0-1").count("written")
    assert written == [1, 11, 21]
    assert bench.acting.given_up == {}


def test_the_pool_that_the_kubelet_notes_is_followed_unseen(bench):
    notes = state.KubeletCpus(policy="static")
    bench.look(notes)
    bench.follow()
    bench.kubelet(cpus="0-7")
    bench.want(CPUSET, "0-1")
    given = state.GivenCpus("other", frozenset({6, 7}))
    bench.look(msgspec.structs.replace(notes, given=(given,)))
    bench.follow()
    bench.want(CPUSET, None)
    assert bench.knobs.read(CPUSET, bench.group) == "0-5"


def test_somebody_unknown_wins_where_the_cpu_manager_is_off(bench):
    bench.look(state.KubeletCpus(policy="none"))
    bench.follow()
    bench.want(CPUSET, "0-1")
    said = []
    for _ in range(4):
        bench.kubelet(cpus="0-4")
        said.append(bench.want(CPUSET, "0-1", 11))
    assert said == [["conflict", "written"]] * 2 + [["given up"], []]
    assert bench.knobs.read(CPUSET, bench.group) == "0-4"


def test_an_unknown_writer_of_one_value_still_wins_after_a_restart(bench):
    """What it wrote is what has to be put back, and no sign that it is the owner."""
    bench.look(state.KubeletCpus(policy="none"))
    bench.follow()
    bench.want(CPUSET, "0-1")
    bench.kubelet(cpus="0-4")
    bench.want(CPUSET, "0-1")
    bench.start()
    bench.look(state.KubeletCpus(policy="none"))
    bench.follow()
    said = []
    for _ in range(5):
        said += bench.want(CPUSET, "0-1")
        bench.kubelet(cpus="0-4")
    assert said.count("given up") == 1


def test_resizes_that_are_seen_before_they_are_told_are_no_quarrel(bench):
    bench.want(QUOTA, "900000")
    for cpu in (3, 4, 5, 6, 7, 8):
        bench.kubelet(cpu=cpu * 1000)
        bench.want(QUOTA, "900000", 11)
        bench.tell(resized(bench.host.known.pods[0], cpu=str(cpu)))
    assert bench.acting.given_up == {}
    bench.want(QUOTA, None)
    assert bench.read(QUOTA) == {bench.text(8000)}


def test_a_file_given_up_to_the_kubelet_is_taken_back_when_it_is_told(bench):
    bench.want(QUOTA, "900000")
    for cpu in (3, 4, 5):
        bench.kubelet(cpu=cpu * 1000)
        bench.want(QUOTA, "900000", 11)
    assert bench.acting.given_up
    bench.tell(resized(bench.host.known.pods[0], cpu="5"))
    assert bench.want(QUOTA, "900000", 30) == ["written", "written"]
    assert bench.acting.given_up == {}
    bench.want(QUOTA, None)
    assert bench.read(QUOTA) == {bench.text(5000)}


@pytest.mark.parametrize("role", [QUOTA, MEMORY, CPUSET])
def test_a_reload_of_systemd_is_put_right_for_ever(bench, role):
    """It sets what units say nothing about to what it takes for the default."""
    default = {QUOTA: "max 100000", MEMORY: "max", CPUSET: ""}[role]
    if bench.version == 1:
        default = {QUOTA: "-1", MEMORY: "-1", CPUSET: ""}[role]
    value = {QUOTA: "300000", MEMORY: str(GIB), CPUSET: "0-1"}[role]
    bench.look(state.KubeletCpus(policy="none"))
    bench.follow()
    bench.want(role, value)
    for _ in range(8):
        for group in (bench.pod_group, bench.group):
            bench.knobs.write(role, group, default)
        bench.want(role, value, 30)
        assert bench.knobs.read(role, bench.group) == bench.knobs.aim(role, "", value)[0]
    assert bench.acting.given_up == {}


def test_a_limit_that_the_kernel_rounded_is_no_stranger_after_a_kill(bench):
    """The kernel counts memory in pages; a crash between write and look leaves its text."""
    before = bench.knobs.read(MEMORY, bench.group)
    bench.want(MEMORY, str(GIB - 1))
    bench.knobs.write(MEMORY, bench.group, str(GIB - 4096))
    bench.start()
    bench.acting.put_back("undo")
    assert bench.knobs.read(MEMORY, bench.group) == before


@pytest.mark.parametrize("restarts", [False, True], ids=["one life", "two lives"])
def test_what_somebody_unknown_wrote_once_is_not_put_back_over_what_the_pod_asks_for(
    bench, restarts
):
    bench.want(MEMORY, str(GIB // 2))
    for group in (bench.pod_group, bench.group):
        bench.knobs.write(MEMORY, group, str(3 * GIB))
    assert bench.want(MEMORY, str(GIB // 2)).count("conflict") == 2
    if restarts:
        bench.start()
    for _ in range(4):
        bench.want(MEMORY, str(GIB // 2), 20)
    bench.want(MEMORY, None)
    assert bench.read(MEMORY) == {str(GIB)}
