"""Every key is a valid Kubernetes key and has one constant."""

import collections
import re

from api import names

KEY = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def keys():
    return {
        name: value
        for name, value in vars(names).items()
        if name.startswith(("LABEL_", "ANNOTATION_", "GATE_")) and isinstance(value, str)
    }


def test_keys_are_valid():
    assert len(keys()) > 120
    assert [value for value in keys().values() if not KEY.fullmatch(value)] == []


def test_keys_are_spelled_once():
    counted = collections.Counter(keys().values())
    assert [value for value, count in counted.items() if count > 1] == []


def test_outdated_resources_lead_to_present_ones():
    replaced = set(names.DEPRECATED_RESOURCES)
    assert replaced.isdisjoint(names.DEPRECATED_RESOURCES.values())
