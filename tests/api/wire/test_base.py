"""Models read as Kubernetes reads, and errors name the field and the remedy."""

import pydantic
import pytest

from api.kubernetes import meta
from api.wire import base


class Inner(base.Model):
    """Something nested."""

    cpu_qos: base.Int32 | None = None
    flag: base.Bool = False


class Sample(base.Model):
    """Something to read."""

    numa_node_id: base.Percent | None = None
    inner: Inner | None = None
    parts: tuple[Inner, ...] = ()
    amounts: base.ResourceList = pydantic.Field(default={})
    ttl: base.Lifetime | None = None
    at: base.Moment | None = None


def test_unknown_fields_are_ignored_and_null_is_unset():
    read = base.validated(Sample, {"numaNodeID": None, "inner": None, "parts": None, "x": 1}, "s")
    assert read == Sample()
    assert read.wire() == {}


def test_names_of_objects_count_exactly():
    assert base.validated(Sample, {"NumaNodeId": 5}, "s").numa_node_id is None


def test_names_in_texts_count_without_case_and_the_exact_one_wins():
    text = '{"NUMANODEID":5,"Inner":{"CPUqos":1},"parts":[{"FLAG":true}]}'
    read = base.decoded(Sample, text, "annotation a")
    assert read.numa_node_id == 5
    assert read.inner == Inner(cpu_qos=1)
    assert read.parts == (Inner(flag=True),)
    both = base.decoded(Sample, '{"numanodeid":5,"numaNodeID":6}', "annotation a")
    assert both.numa_node_id == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "annotation a: not JSON"),
        ("{} x", "annotation a: not JSON"),
        ('{"numaNodeID":1,}', "annotation a: not JSON"),
        ('// no\n{"numaNodeID":1}', "annotation a: not JSON"),
        ("[]", "annotation a: object: Input should be"),
        ('{"numaNodeID":"5"}', "annotation a: numaNodeID: Input should be a valid integer"),
        ('{"numaNodeID":5.0}', "annotation a: numaNodeID: Input should be a valid integer"),
        ('{"numaNodeID":true}', "annotation a: numaNodeID: Input should be a valid integer"),
        ('{"numaNodeID":101}', "annotation a: numaNodeID: Input should be less than or equal"),
        ('{"inner":{"flag":1}}', "annotation a: inner.flag: Input should be a valid boolean"),
        ('{"parts":[{},{"cpuQOS":"x"}]}', r"annotation a: parts\[1\]\.cpuQOS"),
        ('{"amounts":{"cpu":"x"}}', 'annotation a: amounts.cpu: "x" is no quantity; write'),
        ('{"amounts":{"cpu":true}}', "annotation a: amounts.cpu: must be a quantity such as"),
        ('{"ttl":"ten minutes"}', 'annotation a: ttl: "ten minutes" is no duration; write'),
        ('{"ttl":"-5m"}', "annotation a: ttl: must not be negative"),
        ('{"at":"yesterday"}', 'annotation a: at: "yesterday" is no moment; write RFC 3339'),
    ],
)
def test_errors_name_the_field_and_the_remedy(text, message):
    with pytest.raises(base.ReadError, match=message):
        base.decoded(Sample, text, "annotation a")


def test_what_was_set_is_written_and_nothing_else():
    made = Sample(numa_node_id=0, amounts={"cpu": "1"}, ttl=600.0, at=0.0, inner=Inner(flag=False))
    assert made.wire() == {
        "numaNodeID": 0,
        "amounts": {"cpu": "1"},
        "ttl": "10m0s",
        "at": "1970-01-01T00:00:00Z",
        "inner": {"flag": False},
    }
    assert base.encoded(made.but(amounts={}, at=None, inner=None)) == (
        '{"amounts":{},"numaNodeID":0,"ttl":"10m0s"}'
    )


def test_models_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Sample().ttl = 1.0


@pytest.mark.parametrize(
    ("expression", "valid"),
    [
        ({"key": "a", "operator": "In", "values": ["b"]}, True),
        ({"key": "a", "operator": "In"}, False),
        ({"key": "a", "operator": "NotIn", "values": []}, False),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, False),
        ({"key": "a", "operator": "Like", "values": ["b"]}, False),
        ({"operator": "Exists"}, False),
    ],
)
def test_malformed_selectors_are_refused(expression, valid):
    raw = {"matchExpressions": [expression]}
    if valid:
        base.validated(meta.LabelSelector, raw, "selector")
        return
    with pytest.raises(base.ReadError, match=r"selector: matchExpressions\[0\]"):
        base.validated(meta.LabelSelector, raw, "selector")


@pytest.mark.parametrize("number", [1e308, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("field", ["ttl", "at"])
def test_times_that_cannot_be_written_are_not_read(field, number):
    with pytest.raises(base.ReadError, match=field):
        base.validated(Sample, {field: number}, "s")
