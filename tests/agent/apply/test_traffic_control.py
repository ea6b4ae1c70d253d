"""What an interface is told, against a kernel that keeps what it is told."""

import dataclasses
import errno
import os

import pytest

from agent.apply import executor, journal, traffic_control
from agent.apply.properties import property_files
from agent.host import files, netlink_socket, tc_messages
from agent.model import cgroup_layout, edits
from agent.observe.network import interfaces as looking

R = edits.Role
WHERE = "42/eth0"
TREE = "htb 4b00:\n1 0 1000 1000 0\n2 1 500 1000 1\ntables"
LIMIT = f"{WHERE}/1a2b"
V4, V6 = f"{LIMIT}/10.0.0.7", f"{WHERE}/2/fd00::7"


@dataclasses.dataclass
class Kept:
    """A kernel with one interface; what was made is dumped as it was asked for."""

    root: bytes = b""
    classes: dict[int, bytes] = dataclasses.field(default_factory=dict)
    rules: list[bytes] = dataclasses.field(default_factory=list)
    number: int = 42
    refused: dict[int, OSError] = dataclasses.field(default_factory=dict)
    gone: bool = False
    dumps: int = 0

    def namespace(self):
        return self.number

    def index(self, interface):
        if self.gone or interface != "eth0":
            raise OSError(errno.ENODEV, f"no network interface {interface}")
        return 7

    def dump(self, request):
        self.dumps += 1
        (asked,) = tc_messages.answers(request)
        default = tc_messages.message(
            36, 0, tc_messages.new_queue(7, 0, 0)[16:36] + b"\x07\0\x01\0mq\0\0"
        )
        found = {
            tc_messages.GET_QUEUE: [self.root or default],
            tc_messages.GET_CLASS: list(self.classes.values()),
            tc_messages.GET_FILTER: self.rules,
            tc_messages.GET_ADDRESS: [
                tc_messages.message(20, 0, bytes(8) + b"\x08\0\x02\0" + bytes([10, 0, 0, 1]))
            ],
        }[asked.kind]
        return [answer for one in found for answer in tc_messages.answers(one)]

    def talk(self, request):
        (asked,) = tc_messages.answers(request)
        if asked.kind in self.refused:
            raise self.refused[asked.kind]
        handle = int.from_bytes(asked.body[8:12], "little")
        if asked.kind == tc_messages.NEW_QUEUE:
            self.root = request
        elif asked.kind == tc_messages.DELETE_QUEUE:
            self.root, self.classes, self.rules = b"", {}, []
        elif asked.kind == tc_messages.NEW_CLASS:
            self.classes[handle] = request
        elif asked.kind == tc_messages.DELETE_CLASS:
            del self.classes[handle]
        elif asked.kind == tc_messages.NEW_FILTER:
            self.rules.append(request)
        else:
            assert asked.kind == tc_messages.DELETE_FILTER
            rules = [
                (tc_messages.read_filter(next(tc_messages.answers(one))), one) for one in self.rules
            ]
            self.rules.remove(next(one for rule, one in rules if rule.source))


@pytest.fixture
def kernel():
    return Kept()


@pytest.fixture
def acting(kernel, tmp_path):
    return restarted(kernel, tmp_path)


def restarted(kernel, folder, *, writing=True):
    kept = journal.Journal(folder, "boot")
    kept.load()
    handles = property_files.Knobs(cgroup_layout.Layout("/nowhere", 1, "cgroupfs"), None, kernel)
    return executor.Executor(handles, kept, writing=writing)


def wanted(**values):
    everything = {
        (R.NETWORK_QUEUE, WHERE): TREE,
        (R.NETWORK_LIMIT, LIMIT): "1 10 20 3",
        (R.NETWORK_RULE, V4): "present",
        (R.NETWORK_RULE, V6): "present",
    }
    everything |= {(R(role.replace("_", "-")), group): v for role, (group, v) in values.items()}
    return [edits.Edit(role, group, value, "r") for (role, group), value in everything.items()]


def outcomes(outcome):
    assert not outcome.problem
    return [(what, write.role) for what, write, _ in outcome.records]


def test_what_is_made_is_found_and_taken_away(acting, kernel):
    assert {what for what, _ in outcomes(acting.apply(wanted(), 0))} == {"written"}
    assert len(kernel.classes) == 3
    assert acting.apply(wanted(), 1).records == []
    assert {what for what, _ in outcomes(acting.put_back("stop"))} == {"put back"}
    assert kernel == Kept(dumps=kernel.dumps)


def test_an_interface_is_looked_at_once_per_round(acting, kernel):
    acting.apply(wanted(), 0)
    before = kernel.dumps
    acting.apply(wanted(), 1)
    assert kernel.dumps - before == 3


def test_half_a_tree_of_a_crash_is_ours(acting, kernel, tmp_path):
    acting.apply(wanted(), 0)
    kernel.classes.clear()
    assert ("put back", R.NETWORK_QUEUE) in outcomes(restarted(kernel, tmp_path).put_back("start"))
    assert kernel.root == b""


def test_a_limit_that_changes_is_changed(acting, kernel):
    acting.apply(wanted(), 0)
    acting.apply(wanted(network_limit=(LIMIT, "1 10 30 3")), 1)
    answer = next(tc_messages.answers(kernel.classes[traffic_control.HANDLE | 0x1A2B]))
    assert tc_messages.read_class(answer).ceiling == 30
    assert len(kernel.classes) == 3


def test_what_somebody_takes_away_comes_back(acting, kernel):
    acting.apply(wanted(), 0)
    whole = list(kernel.rules)
    kernel.rules.clear()
    kernel.classes.popitem()
    assert {what for what, _ in outcomes(acting.apply(wanted(), 30))} <= {"written", "conflict"}
    assert kernel.rules == whole
    assert len(kernel.classes) == 3


def test_a_tree_that_cannot_be_finished_is_taken_away(acting, kernel):
    kernel.refused[tc_messages.NEW_CLASS] = OSError(errno.EINVAL, "a rate of nothing")
    outcome = acting.apply(wanted(), 0)
    assert kernel.root == b""
    assert outcomes(outcome) == [("failed", R.NETWORK_QUEUE)]
    assert "a rate of nothing" in outcome.records[0][2]


@pytest.mark.parametrize("kind", [tc_messages.NEW_QUEUE, tc_messages.NEW_FILTER])
def test_a_kernel_without_it_is_named(acting, kernel, kind):
    kernel.refused[kind] = FileNotFoundError(errno.ENOENT, "Specified qdisc kind is unknown")
    outcome = acting.apply(wanted(), 0)
    assert kernel.root == b""
    assert "the kernel lacks it" in outcome.records[0][2]


def test_a_rule_for_groups_that_the_kernel_lacks_fails_alone(acting, kernel):
    acting.apply(wanted(), 0)
    kernel.refused[tc_messages.NEW_FILTER] = FileNotFoundError(
        errno.ENOENT, "TC classifier not found"
    )
    outcome = acting.apply(wanted(network_rule=(f"{WHERE}/cgroup", "present")), 1)
    assert outcomes(outcome) == [("failed", R.NETWORK_RULE)]
    kernel.refused.clear()
    assert outcomes(acting.apply(wanted(network_rule=(f"{WHERE}/cgroup", "present")), 31)) == [
        ("written", R.NETWORK_RULE)
    ]


def test_another_network_is_left_alone_and_remembered(acting, kernel, tmp_path):
    acting.apply(wanted(), 0)
    kernel.number = 43
    outcome = restarted(kernel, tmp_path).put_back("start")
    assert {what for what, _ in outcomes(outcome)} == {"failed"}
    kernel.number = 42
    restarted(kernel, tmp_path).put_back("start")
    assert kernel.root == b""


def test_an_interface_that_is_gone_is_forgotten(acting, kernel, tmp_path):
    acting.apply(wanted(), 0)
    kernel.gone = True
    assert acting.put_back("stop").records == []
    kernel.gone = False
    assert restarted(kernel, tmp_path).put_back("start").records == []


def test_what_nobody_may_write_is_only_told(kernel, tmp_path):
    outcome = restarted(kernel, tmp_path, writing=False).apply(wanted(), 0)
    assert {what for what, _ in outcomes(outcome)} == {"would have written"}
    assert kernel == Kept(dumps=kernel.dumps)


def test_nonsense_in_a_rule_is_an_error_of_reading(kernel):
    place = traffic_control.place(R.NETWORK_RULE, traffic_control.Interfaces(kernel))
    with pytest.raises(files.ReadingError, match="is no address"):
        place.read(f"{WHERE}/2/nowhere:")


def test_the_network_is_looked_at(kernel):
    found = looking.look(kernel, "eth0")
    assert (found.interface, found.namespace, found.queue) == ("eth0", "42", "mq 0:")
    assert found.addresses == {"10.0.0.1"}
    assert looking.look(kernel, "").interface == ""
    kernel.gone = True
    assert "no network interface eth0" in looking.look(kernel, "eth0").problem


def test_the_kernel_under_this_process_answers():
    under = netlink_socket.Kernel()
    index = under.index("lo")
    queues = [
        tc_messages.queue(answer) for answer in under.dump(tc_messages.dump(tc_messages.GET_QUEUE))
    ]
    assert index in {queue.interface for queue in queues}
    assert str(under.namespace()) == os.readlink("/proc/self/ns/net").strip("net:[]")  # noqa: PTH115
    with pytest.raises(OSError, match="no network interface"):
        under.index("nosuch0")
    with pytest.raises(OSError, match=r".+"):
        under.talk(tc_messages.delete_queue(0x7FFF_FFFF, 0x7777_0000))


V4_ROUTES = """Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth1\t00000000\t010200C0\t0003\t0\t0\t200\t00000000\t0\t0\t0
eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
down\t00000000\t010200C0\t0002\t0\t0\t0\t00000000\t0\t0\t0
eth2\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
ZERO = "0" * 32
V6_ROUTES = f"""{ZERO} 00 {ZERO} 00 fe800000000000000000000000000001 00000400 1 0 00000003     eth6
{ZERO} 00 {ZERO} 00 {ZERO} ffffffff 1 0 00200200       lo
fd000000000000000000000000000000 40 {ZERO} 00 {ZERO} 00000100 1 0 00000001     eth7
"""


@pytest.mark.parametrize(
    ("v4", "v6", "expected"),
    [
        (V4_ROUTES, V6_ROUTES, "eth0"),
        ("", V6_ROUTES, "eth6"),
        (V4_ROUTES.splitlines()[0], "", ""),
        (None, None, ""),
    ],
    ids=["the best of two", "version 6 alone", "no route", "nothing to read"],
)
def test_the_interface_of_the_default_route(tmp_path, monkeypatch, v4, v6, expected):
    for name, text in (("_ROUTES", v4), ("_ROUTES_6", v6)):
        file = tmp_path / name
        if text is not None:
            file.write_text(text)
        monkeypatch.setattr(netlink_socket, name, str(file))
    assert netlink_socket.default_interface() == expected


@pytest.mark.parametrize("text", ["10.0.0.7", "fd00::7"])
def test_addresses_are_read_and_written(text):
    assert netlink_socket.text(netlink_socket.packed(text)) == text
