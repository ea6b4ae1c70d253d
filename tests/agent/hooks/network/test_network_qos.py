"""Who may send how much."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.hooks.network import bandwidth, network_qos
from agent.model import edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from tests import draws

R = edits.Role
KEY = "koordinator.sh/networkQOS"
GIGABIT = 1_000_000_000
LS = strategy_settings.Network(True, egress_request=40, egress_limit=80)
BE = strategy_settings.Network(True, egress_request="100M", egress_limit="200M")


def wanted(*, ls=LS, be=BE, total=GIGABIT, policy=""):
    classes = strategy_settings.Classes(
        network={qos.QoS.LS: ls, qos.QoS.BE: be}, network_policy=policy
    )
    return strategy_settings.Strategies(
        classes=classes, system=strategy_settings.System(bandwidth=total)
    )


ETH = state.Network("eth0", "77", "mq 0:", frozenset({"10.0.0.1"}), permitted=True)


@pytest.fixture
def pod(placed):
    def make(name="a", address="10.1.0.9", quality="LS", *, host=False, bits="", **annotations):
        made = placed(name, quality=quality, annotations=annotations)
        asked = core.ResourceRequirements(requests={names.NETWORK_BANDWIDTH: bits} if bits else {})
        spec = core.PodSpec(
            host_network=host, containers=(core.Container(name="app", resources=asked),)
        )
        status = core.PodStatus(phase="Running", pod_ip=address)
        raw = core.Pod(metadata=made.pod.metadata, spec=spec, status=status)
        return msgspec.structs.replace(made, pod=raw)

    return make


def decide(*pods, network=ETH, slo=None, roles=()):
    addresses = (core.NodeAddress("InternalIP", "10.0.0.1"), core.NodeAddress("Hostname", "n"))
    node = core.Node(status=core.NodeStatus(addresses=addresses))
    kernel = state.Kernel(roles=frozenset(roles))
    picture = state.NodeState(at=0, node=node, pods=pods, network=network, kernel=kernel)
    return network_qos.decide(picture, slo or wanted())


def told(decision):
    return {(edit.role, edit.group): edit.value for edit in decision.wanted}


def test_every_amount_is_divided_by_eight_once(pod):
    limited = pod("b", "10.1.0.10", "BE", **{KEY: '{"egressLimit":"80M"}'})
    found = told(decide(pod(), limited))
    (number,) = network_qos.numbers([(network_qos.BATCH, "uid-b")]).values()
    assert found == {
        (R.NETWORK_QUEUE, "77/eth0"): "\n".join(
            [
                "htb 4b00:",
                "1 0 125000000 125000000 0",
                "2 1 62500000 125000000 1",
                "3 1 50000000 100000000 0",
                "4 1 12500000 25000000 0",
                "13 3 50000000 100000000 2",
                "14 4 12500000 25000000 3",
                "tables",
            ]
        ),
        (R.NETWORK_RULE, "77/eth0/13/10.1.0.9"): "present",
        (R.NETWORK_LIMIT, f"77/eth0/{number:x}"): "4 1000 10000000 3",
        (R.NETWORK_RULE, f"77/eth0/{number:x}/10.1.0.10"): "present",
    }


@pytest.mark.parametrize(
    ("written", "expected"),
    [(40, 50_000_000), ("40%", 50_000_000), ("100M", 12_500_000), ("1Mi", 131_072), (0, 0)],
)
def test_a_share(written, expected):
    assert bandwidth.share(written, GIGABIT) == expected


@settings(max_examples=draws.at_least(40))
@given(st.integers(0, 100), st.integers(0, 100), st.integers(8_000, 10**12))
def test_what_is_sure_is_never_more_than_there_is(ls, be, total):
    slo = wanted(
        ls=strategy_settings.Network(True, egress_request=ls),
        be=strategy_settings.Network(True, egress_request=be),
        total=total,
    )
    try:
        found = network_qos.shares(slo.classes, total)
    except bandwidth.BandwidthError:
        assert ls + be > 100
        return
    assert ls + be <= 100 or total < 10_000
    speeds = (found.system, found.online, found.batch)
    least = network_qos.LEAST
    assert all(least <= one.rate <= one.ceiling for one in speeds)
    assert sum(one.rate for one in speeds) <= found.total + 3 * least


@pytest.mark.parametrize(
    ("slo", "network", "said"),
    [
        (wanted(policy="terway-qos"), ETH, "netQOSPolicy is terway-qos"),
        (wanted(total=0), ETH, "totalNetworkBandwidth"),
        (
            wanted(ls=strategy_settings.Network(), be=strategy_settings.Network()),
            ETH,
            "no class and no pod",
        ),
        (
            wanted(ls=strategy_settings.Network(True, egress_request="1G")),
            ETH,
            "lsClass and beClass",
        ),
        (wanted(), state.Network(), "no default route"),
        (wanted(), state.Network(problem="refused"), "refused"),
        (wanted(), msgspec.structs.replace(ETH, permitted=False), "CAP_NET_ADMIN"),
        (wanted(), msgspec.structs.replace(ETH, addresses=frozenset({"10.1.0.9"})), "hostNetwork"),
        (wanted(), msgspec.structs.replace(ETH, queue="cake 8001:"), "'cake 8001:'"),
        (wanted(), msgspec.structs.replace(ETH, queue="fq_codel 8001:"), "another program chose"),
        (wanted(), msgspec.structs.replace(ETH, queue="htb 1:"), "another program chose"),
    ],
    ids=[
        "another policy",
        "bandwidth unknown",
        "nothing asked",
        "too much is sure",
        "no route",
        "not to be seen",
        "not allowed",
        "a network of its own",
        "somebody's queue",
        "a default chosen by name",
        "somebody's classes",
    ],
)
def test_it_stands_down_and_says_why(pod, slo, network, said):
    found = decide(pod(), network=network, slo=slo)
    assert found.wanted == ()
    assert found.decided
    assert said in found.reason


def test_nothing_is_decided_before_the_network_was_seen(pod):
    assert not decide(pod(), network=None).decided


@pytest.mark.parametrize("queue", ["noqueue 0:", "pfifo_fast 0:", "fq_codel 0:", "htb 4b00:"])
def test_what_the_kernel_or_we_put_there_may_be_replaced(pod, queue):
    assert decide(pod(), network=msgspec.structs.replace(ETH, queue=queue)).wanted


def test_pods_of_the_system_stay_where_everything_is(pod):
    pods = (pod("s", quality="SYSTEM"), pod("n", quality=""), pod("x", address="nonsense/.."))
    assert {edit.role for edit in decide(*pods).wanted} == {R.NETWORK_QUEUE}


def test_a_limit_lies_within_that_of_the_class(pod):
    found = decide(pod("b", quality="BE", **{KEY: '{"egressLimit":"500M"}'}))
    assert [e.value for e in found.wanted if e.role is R.NETWORK_LIMIT] == ["4 1000 25000000 3"]


def test_a_limit_that_cannot_be_read_is_named(pod):
    found = decide(pod("b", quality="BE", **{KEY: '{"egressLimit":"fast"}'}))
    assert "default/b: annotation koordinator.sh/networkQOS" in found.reason
    assert not [e for e in found.wanted if e.role is R.NETWORK_LIMIT]
    assert [e.group for e in found.wanted if e.role is R.NETWORK_RULE] == ["77/eth0/14/10.1.0.9"]


def test_pods_on_the_hosts_network_are_told_by_their_groups(pod):
    shared = pod("h", "10.0.0.1", "BE", host=True)
    found = told(decide(shared, roles=[R.NET_CLASS_ID]))
    number = str(0x4B00_0014)
    assert found[R.NET_CLASS_ID, "h"] == found[R.NET_CLASS_ID, "h/app"] == number
    assert found[R.NETWORK_RULE, "77/eth0/cgroup"] == "present"
    assert not [1 for role, group in found if role is R.NETWORK_RULE and "10.0.0.1" in group]
    without = decide(shared)
    assert {edit.role for edit in without.wanted} == {R.NETWORK_QUEUE}
    assert "cannot be told apart without net_cls" in without.reason


def test_edits_of_pods_name_them(pod):
    found = decide(pod("b", quality="BE", **{KEY: '{"egressLimit":"8M"}'}))
    assert {edit.pod for edit in found.wanted if edit.role is not R.NETWORK_QUEUE} == {"uid-b"}


@settings(max_examples=draws.at_least(30))
@given(st.sets(st.text("0123456789abcdef-", min_size=1, max_size=36), max_size=40))
def test_every_pod_has_a_number_of_its_own(uids):
    pods = [(2 + len(uid) % 3, uid) for uid in uids]
    found = network_qos.numbers(pods)
    assert set(found) == uids
    assert len(set(found.values())) == len(uids)
    assert all(network_qos.FIRST_POD <= number < 0xFFFF for number in found.values())
    # Who comes or goes changes the numbers of others only where two want the same one.
    wishes = {pod[1]: network_qos.numbers([pod])[pod[1]] for pod in pods}
    alone = {uid for uid in uids if list(wishes.values()).count(wishes[uid]) == 1}
    if len(alone) == len(uids):
        assert found == wishes


def test_pods_of_two_classes_never_share_a_number():
    bases = (network_qos.SYSTEM, network_qos.ONLINE, network_qos.BATCH)
    found = [
        set(network_qos.numbers((base, f"uid-{n}") for n in range(300)).values()) for base in bases
    ]
    assert [len(one) for one in found] == [300] * 3
    assert len(found[0] | found[1] | found[2]) == 900


def limits(decision):
    return {e.pod: e.value for e in decision.wanted if e.role is R.NETWORK_LIMIT}


def queue(decision):
    (text,) = (e.value for e in decision.wanted if e.role is R.NETWORK_QUEUE)
    lines = (line.split() for line in text.splitlines()[1:-1])
    return {int(one[0], 16): (int(one[2]), int(one[3])) for one in lines}


def test_what_pods_request_is_their_rate_and_comes_before_the_classes(pod):
    decision = decide(
        pod("on", bits="240M"),
        pod("off", "10.1.0.10", "BE", bits="80M"),
        pod("plain", "10.1.0.11", "", bits="160M"),
    )
    assert limits(decision) == {
        "uid-on": "3 30000000 100000000 2",
        "uid-off": "4 10000000 25000000 3",
        "uid-plain": "1 20000000 125000000 1",
    }
    found = queue(decision)
    # The classes still get what they request, of which their pods have a part alone.
    assert found[network_qos.ONLINE] == (50_000_000, 100_000_000)
    assert found[network_qos.BATCH] == (12_500_000, 25_000_000)
    assert found[network_qos.ONLINE_REST][0] == 20_000_000
    assert found[network_qos.BATCH_REST][0] == 2_500_000
    assert found[network_qos.SYSTEM][0] == 125_000_000 - 50_000_000 - 12_500_000 - 20_000_000
    assert "3 with bandwidth of their own" in decision.reason


def test_without_class_settings_requests_are_enough(pod):
    off = strategy_settings.Network()
    decision = decide(pod("on", bits="800M"), slo=wanted(ls=off, be=off))
    assert limits(decision) == {"uid-on": "3 100000000 125000000 2"}
    assert queue(decision)[network_qos.ONLINE] == (100_000_000, 125_000_000)


def test_a_limit_below_the_request_is_the_rate(pod):
    decision = decide(pod("on", bits="240M", **{KEY: '{"egressLimit":"80M"}'}))
    assert limits(decision) == {"uid-on": "3 10000000 10000000 2"}


@pytest.mark.parametrize(
    ("pods", "kept", "said"),
    [
        pytest.param({"a": ("LS", "700M"), "b": ("", "400M")}, {"a"}, "b", id="than the node"),
        pytest.param({"a": ("BE", "150M"), "b": ("BE", "100M")}, {"a"}, "b", id="than the class"),
        pytest.param({"a": ("LS", "900M"), "b": ("LS", "100M")}, {"b"}, "a", id="by itself"),
    ],
)
def test_more_than_there_is_is_refused_and_named(pod, pods, kept, said):
    made = [
        pod(name, f"10.1.0.{number}", quality, bits=bits)
        for number, (name, (quality, bits)) in enumerate(pods.items(), 9)
    ]
    decision = decide(*made)
    sure = {uid for uid, value in limits(decision).items() if int(value.split()[1]) > 1000}
    assert sure == {f"uid-{name}" for name in kept}
    assert f"default/{said}: requests" in decision.reason


def test_an_amount_that_cannot_be_read_is_named(pod):
    decision = decide(pod("on", bits="much"), pod("b", "10.1.0.10", bits="80M"))
    assert limits(decision).keys() == {"uid-b"}
    assert "default/on: requests" in decision.reason


@settings(max_examples=draws.at_least(40))
@given(
    st.lists(
        st.tuples(st.sampled_from(["LS", "BE", "", "SYSTEM"]), st.integers(1, 2_000)), max_size=6
    ),
    st.integers(0, 60),
    st.integers(0, 40),
    st.integers(1, 100),
)
def test_what_is_sure_for_pods_and_classes_is_never_more_than_there_is(asked, ls, be, most):
    slo = wanted(
        ls=strategy_settings.Network(True, egress_request=ls, egress_limit=100),
        be=strategy_settings.Network(True, egress_request=min(be, most), egress_limit=most),
    )
    found = network_qos.shares(slo.classes, GIGABIT)
    bases = {"LS": network_qos.ONLINE, "BE": network_qos.BATCH}
    members = [
        network_qos.Member(_bare(str(number)), bases.get(q, network_qos.SYSTEM), 0, m * 125_000)
        for number, (q, m) in enumerate(asked)
    ]
    granted = network_qos.grant(found, members)
    now = granted.shares
    alone = sum(
        granted.rates.get(one.pod.pod.metadata.uid, 0)
        for one in members
        if one.base == network_qos.SYSTEM
    )
    least = network_qos.LEAST
    assert now.system.rate + now.online.rate + now.batch.rate + alone <= found.total + 3 * least
    for base, speed in ((network_qos.ONLINE, now.online), (network_qos.BATCH, now.batch)):
        rates = [
            granted.rates.get(one.pod.pod.metadata.uid, 0) for one in members if one.base == base
        ]
        assert sum(rates) <= speed.rate + least
        assert speed.rate <= speed.ceiling
    assert len(granted.rates) + len(granted.problems) == len(members)


def _bare(name):
    meta = core.ObjectMeta(name=name, namespace="default", uid=name)
    return state.PodState(core.Pod(metadata=meta), "Burstable")
