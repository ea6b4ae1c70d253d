"""What a pod requires of nodes is read as far as it can be compared with every node."""

import msgspec
import pytest

from api.kubernetes import core
from domain.quota import placement


def listing(kind, count):
    """A pod that lists so many of something."""
    keys = [f"k{number}" for number in range(count)]
    expressions = [{"key": key, "operator": "Exists"} for key in keys]
    terms = {
        "terms": [{"matchExpressions": [one]} for one in expressions],
        "requirements": [{"matchExpressions": expressions}],
        "fields": [{"matchFields": expressions}],
        "values": [{"matchExpressions": [{"key": "a", "operator": "In", "values": keys}]}],
    }.get(kind, [])
    required = {"nodeSelectorTerms": terms}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    tolerations = [{"key": key, "operator": "Exists"} for key in keys]
    spec = {"tolerations": tolerations} if kind == "tolerations" else {"affinity": affinity}
    return msgspec.convert(spec, core.PodSpec)


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        *(("terms", 256), ("requirements", 256), ("fields", 256)),
        *(("values", 8192), ("tolerations", 256)),
    ],
)
def test_what_is_too_long_to_be_compared_is_not_read(kind, most):
    assert placement.requirements(listing(kind, most)) != placement.NONE
    with pytest.raises(placement.TooLongError):
        placement.requirements(listing(kind, most + 1))


def test_what_is_too_long_is_told_apart():
    one, other = listing("terms", 300), listing("terms", 301)
    assert placement.unknown(one) == placement.unknown(listing("terms", 300))
    assert placement.unknown(one) != placement.unknown(other)
    assert placement.unknown(listing("tolerations", 300)).other
