"""What a node measures and reports only where a feature gate asks for it: the parts lists."""

import dataclasses
from collections.abc import Collection

from agent import collectors, measured, objects, stated
from agent import settings as agent_settings
from kube import client
from process import clock as clocks
from process import metrics


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What the lists are made from."""

    settings: agent_settings.Settings
    enabled: Collection[str]
    """The feature gates that are on."""
    figures: metrics.Registry
    clock: clocks.Clock


def collectors_of(asked: Asked) -> tuple[collectors.Collector, ...]:
    """Return the sources that are looked at beside the ordinary ones."""
    ordinary = (stated.Stated(asked.figures),)
    return (*ordinary, *measured.of(asked.settings, asked.enabled, asked.figures))


def objects_of(_asked: Asked, _kube: client.Client) -> tuple[objects.Own, ...]:
    """Return the objects that are kept beside NodeMetric."""
    return ()
