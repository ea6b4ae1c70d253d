"""Who gets which part of the cache."""

import json

import msgspec
import pytest

from agent.hooks import resctrl
from agent.model import edits, state, strategy_settings
from api.koordinator.metadata import qos

GROUP, L3, MB = edits.Role.RESCTRL_GROUP, edits.Role.RESCTRL_L3, edits.Role.RESCTRL_MB
MEMBER = edits.Role.PROCESS_RESCTRL
KEY = "node.koordinator.sh/resctrl"
CLASSES = {
    qos.QoS.LS: strategy_settings.Cache(),
    qos.QoS.BE: strategy_settings.Cache(True, 0, 30, 50),
}


@pytest.fixture
def now(placed):
    pods = (placed("ls"), placed("be", quality="BE", sandbox="be/pause"))
    return state.NodeState(at=0, pods=pods, caches=state.Caches((0, 1), 0xFFF, resctrl.INTEL))


def values(decision, role):
    return {edit.group: edit.value for edit in decision.wanted if edit.role is role}


def test_classes_get_their_share_and_their_members(now):
    found = resctrl.decide(now, CLASSES)
    assert values(found, GROUP) == {"LS": "present", "BE": "present"}
    assert values(found, L3) == {"LS": "L3:0=fff;1=fff;", "BE": "L3:0=f;1=f;"}
    assert values(found, MB) == {"LS": "MB:0=100;1=100;", "BE": "MB:0=50;1=50;"}
    # Only classes that are on take members in.
    assert values(found, MEMBER) == {"be/app": "BE", "be/pause": "BE"}


def test_containers_of_a_virtual_machine_are_no_members(now):
    pod = now.pods[1]
    spec = msgspec.structs.replace(pod.pod.spec, runtime_class_name=state.KATA)
    pod = msgspec.structs.replace(pod, pod=msgspec.structs.replace(pod.pod, spec=spec))
    found = resctrl.decide(msgspec.structs.replace(now, pods=(pod,)), CLASSES)
    assert values(found, MEMBER) == {}


def test_a_pod_has_a_share_of_its_own(now, placed):
    wish = {
        "llc": {
            "schemata": {"range": [0, 50]},
            "schemataPerCache": [{"cacheID": 1, "range": [50, 100]}],
        },
        "mb": {"schemata": {"percent": 44}},
    }
    now = msgspec.structs.replace(now, pods=(placed(annotations={KEY: json.dumps(wish)}),))
    found = resctrl.decide(now, {})
    group = "koordlet-uid-a"
    assert values(found, L3) == {group: "L3:0=3f;1=fc0;"}
    assert values(found, MB) == {group: "MB:0=50;1=50;"}
    assert values(found, MEMBER) == {"a/app": group}
    assert resctrl.decide(now, {}, of_pods=False).wanted == ()


def test_an_illegal_share_is_named(now, placed):
    wish = {"llc": {"schemata": {"range": [50, 20]}}}
    pods = (placed(annotations={KEY: json.dumps(wish)}), placed("bad", annotations={KEY: "{"}))
    classes = {qos.QoS.BE: strategy_settings.Cache(True, 60, 20)}
    found = resctrl.decide(msgspec.structs.replace(now, pods=pods), classes)
    assert found.wanted == ()
    assert "class BE: range 60..20" in found.reason
    assert "pod uid-a: range 50..20" in found.reason
    # The annotation of a pod is none of what the NodeSLO asks for.
    assert found.unmet == "class BE: range 60..20 is no part of 0..100"


def test_an_illegal_share_of_a_class_that_is_off_is_nothing_unmet(now):
    classes = {**CLASSES, qos.QoS.LS: strategy_settings.Cache(False, 40, 40)}
    found = resctrl.decide(now, classes)
    assert values(found, GROUP) == {"BE": "present"}
    assert "class LS: range 40..40" in found.reason
    assert found.unmet == ""


def test_unknown_processors_get_no_bandwidth_for_pods(now, placed):
    wish = {"mb": {"schemata": {"percent": 44}}}
    caches = msgspec.structs.replace(now.caches, vendor="else")
    pods = (placed(annotations={KEY: json.dumps(wish)}),)
    found = resctrl.decide(msgspec.structs.replace(now, pods=pods, caches=caches), {})
    assert values(found, MB) == {}


def test_nothing_is_wanted_without_hardware_or_wish(now):
    assert resctrl.decide(msgspec.structs.replace(now, caches=None), CLASSES).wanted == ()
    assert resctrl.decide(now, {qos.QoS.LS: strategy_settings.Cache()}).wanted == ()


@pytest.mark.parametrize(
    ("groups", "settled", "expected"),
    [
        ({"koordlet-uid-gone": 80.0}, True, {"koordlet-uid-gone": "absent"}),
        ({"koordlet-uid-gone": 95.0}, True, {}),
        ({"koordlet-uid-ls": 10.0, "mine": 10.0}, True, {}),
        ({"koordlet-uid-gone": 80.0}, False, {}),
    ],
    ids=["gone", "too young to tell", "known or not of a pod", "the pods are not known"],
)
def test_groups_of_pods_that_are_gone_end(now, groups, settled, expected):
    caches = msgspec.structs.replace(now.caches, groups=groups)
    now = msgspec.structs.replace(now, at=100.0, settled=settled, caches=caches)
    assert values(resctrl.decide(now, {}), GROUP) == expected
    assert resctrl.decide(now, {}, of_pods=False).wanted == ()


def test_what_is_not_mounted_is_mounted_first(now):
    kernel = state.Kernel(mountable_caches=True)
    before = msgspec.structs.replace(now, caches=None, kernel=kernel)
    found = resctrl.decide(before, CLASSES)
    assert [(edit.role, edit.value) for edit in found.wanted] == [
        (edits.Role.RESCTRL_MOUNT, "present")
    ]
    assert "mounted first" in found.reason
    # It stays wanted as long as something is divided, and not for nothing.
    after = resctrl.decide(msgspec.structs.replace(now, kernel=kernel), CLASSES)
    assert values(after, edits.Role.RESCTRL_MOUNT) == {"": "present"}
    assert values(after, GROUP) == {"LS": "present", "BE": "present"}
    assert resctrl.decide(before, {}).wanted == ()
