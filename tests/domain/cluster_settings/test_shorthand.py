"""Which published fields a shorthand sets, and which of them the manager gives up."""

import pytest

from domain.cluster_settings import shorthand

PERCENT = ("resourceUsedThresholdWithBE", "cpuSuppressThresholdPercent")


def managed(manager, *names, **more):
    fields = {f"f:{name}": {} for name in names}
    return {"manager": manager, "fieldsV1": {"f:spec": {f"f:{PERCENT[0]}": fields}}, **more}


def test_each_field_of_a_shorthand_is_one_published_field() -> None:
    spec = {
        "resourceThresholdStrategy": {"enable": True, "thresholds": {"cpu-suppress-percent": 65}},
        "resourceQOSStrategy": {"beClass": {"blkIOQOS": {"enable": True}, "blkioQOS": {}}},
    }
    assert shorthand.in_node_slo(spec) == {
        ("resourceUsedThresholdWithBE", "enable"),
        PERCENT,
        ("resourceQOSStrategy", "beClass", "blkioQOS", "enable"),
    }
    assert shorthand.in_node_metric({"collectionIntervalSeconds": 15}) == {
        ("metricCollectPolicy", "reportIntervalSeconds")
    }


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"resourceThresholdStrategy": {"enable": "yes"}},
        {"resourceThresholdStrategy": {"enable": None, "thresholds": {}}},
        {"resourceQOSStrategy": {"beClass": {"blkIOQOS": {"enable": None}}}},
        {"collectionIntervalSeconds": None},
    ],
)
def test_what_is_empty_or_unreadable_sets_nothing(spec) -> None:
    assert shorthand.in_node_slo(spec) == frozenset()
    assert shorthand.in_node_metric(spec) == frozenset()


@pytest.mark.parametrize(
    ("entries", "left"),
    [
        pytest.param([managed("koord-manager", PERCENT[1], "enable")], False, id="ours-alone"),
        pytest.param(
            [managed("koord-manager", PERCENT[1]), managed("kubectl", "enable")],
            False,
            id="another-field-of-others",
        ),
        pytest.param(
            [managed("koord-manager", PERCENT[1]), managed("kubectl", PERCENT[1])],
            True,
            id="shared",
        ),
        pytest.param([managed("kubectl", PERCENT[1])], True, id="of-others"),
        pytest.param(
            [managed("koord-manager", PERCENT[1], operation="Update")], True, id="of-koordinator"
        ),
        pytest.param([managed("koord-manager", "enable")], True, id="nobodys"),
        pytest.param(None, True, id="unknown"),
        pytest.param({"manager": "koord-manager"}, True, id="without-shape"),
    ],
)
def test_the_manager_gives_up_what_it_alone_has_set(entries, left) -> None:
    spec = {PERCENT[0]: {"enable": False, PERCENT[1]: 60}, "extensions": {}}
    before = repr(spec)
    after = shorthand.without_withdrawn(spec, entries, frozenset({PERCENT}))
    assert (PERCENT[1] in after[PERCENT[0]]) is left
    assert after[PERCENT[0]]["enable"] is False
    assert repr(spec) == before
