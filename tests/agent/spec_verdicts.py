"""What a loop under test would say of the NodeSLO that it goes by."""

from agent.decide import spec_enforcement


def of(loop):
    """Return the verdict on the settings of the latest tick."""
    now = loop.standing
    strategies = now.strategies or loop._looked.strategies
    parts = spec_enforcement.configured(loop.picture.thresholds, strategies)
    return spec_enforcement.judge(parts, now)
