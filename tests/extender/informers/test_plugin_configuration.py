"""The ConfigMap is followed; what cannot be used changes nothing and is reported."""

import json
import random

import pytest
import yaml

from api.kubernetes import core
from extender import settings
from extender.informers.configuration import plugin_configuration
from process.runtime import metrics
from tests import hostile

LOAD = "LoadAwareScheduling"


class Events:
    """Events as they are told."""

    def __init__(self):
        self.told = []

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding, kind, reason, note, action))
        return True


class Followed:
    """A configuration with everything that it tells."""

    def __init__(self):
        self.events, self.registry, self.changes = Events(), metrics.Registry(), []
        self.configuration = plugin_configuration.PluginConfiguration(
            settings.PluginSettings(), self.events, self.registry, self.changes.append
        )

    def take(self, text):
        metadata = core.ObjectMeta(
            name="koord-scheduler-config", namespace="koordinator-system", uid="u"
        )
        data = {"koord-scheduler-config": text}
        self.configuration.take(core.ConfigMap(metadata=metadata, data=data))

    @property
    def cpu(self):
        return self.configuration.wanted.arguments[LOAD].usage_thresholds["cpu"]

    @property
    def refused(self):
        return self.registry.value("koord_extender_arguments_refused")


def document(cpu):
    entry = {"name": LOAD, "args": {"usageThresholds": {"cpu": cpu}}}
    return yaml.safe_dump(
        {"kind": "KubeSchedulerConfiguration", "profiles": [{"pluginConfig": [entry]}]}
    )


@pytest.fixture
def followed():
    return Followed()


def test_every_change_is_heard_once(followed):
    followed.take(document(50))
    followed.take(document(50) + "# a comment\n")
    assert (followed.cpu, followed.changes) == (50, [followed.configuration.wanted])


def test_without_the_configmap_the_settings_hold_again(followed):
    before = followed.configuration.wanted
    followed.take(document(50))
    followed.configuration.take(None)
    assert followed.configuration.wanted == before
    assert len(followed.changes) == 2


def test_a_fault_changes_nothing_and_is_told_once(followed):
    followed.take(document(50))
    for _ in range(3):
        followed.take(document(160))
    assert (followed.cpu, len(followed.changes), followed.refused) == (50, 1, 1)
    ((regarding, kind, reason, note, _),) = followed.events.told
    assert (regarding.kind, regarding.name, regarding.uid) == (
        "ConfigMap",
        "koord-scheduler-config",
        "u",
    )
    assert (kind, reason) == ("Warning", "SchedulerConfigRefused")
    assert "usageThresholds.cpu: is 160, must be at most 100" in note
    assert "the last good configuration stays in force" in followed.configuration.warning()


def test_another_fault_is_told_and_a_good_document_ends_it(followed):
    followed.take(document(160))
    followed.take(document(170))
    followed.take(document(50))
    assert len(followed.events.told) == 2
    assert (followed.cpu, followed.refused, followed.configuration.warning()) == (50, 0, None)


def test_a_fault_from_the_start_leaves_the_settings(followed):
    followed.take("{")
    assert (followed.cpu, followed.changes, followed.refused) == (65, [], 1)


def test_hostile_documents_change_nothing_that_they_do_not_say(followed):
    rng = random.Random(7)
    whole = yaml.safe_load(document(50))
    for _ in range(40):
        followed.take(json.dumps(hostile.broken(whole, rng)))
        assert bool(followed.configuration.faults) == bool(followed.refused)
    followed.take(document(50))
    assert (followed.cpu, followed.refused) == (50, 0)
