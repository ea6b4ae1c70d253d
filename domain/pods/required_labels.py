"""Labels that an administrator demands of every pod."""

from collections.abc import Mapping
from typing import Final

import pydantic

from api.wire import base, untrusted

CONFIG_MAP: Final = "pod-enhanced-validator-config"
ENABLE: Final = "enable"
RULES: Final = "rules"


class Rule(base.Model):
    """Labels that every pod has to carry, whatever their value."""

    name: base.Text = ""
    """Name of the rule, for people."""
    required_labels: tuple[base.Text, ...] = ()
    """Keys of the labels."""
    namespace_whitelist: tuple[base.Text, ...] = ()
    """Namespaces where the rule does not hold."""


_RULES: Final = pydantic.TypeAdapter(tuple[Rule, ...])


def read(data: Mapping[str, str]) -> tuple[Rule, ...]:
    """Read the rules from the data of their ConfigMap; none while they are switched off."""
    if data.get(ENABLE, "").strip().lower() != "true" or not data.get(RULES):
        return ()
    what = f"ConfigMap {CONFIG_MAP}: data.{RULES}"
    try:
        return _RULES.validate_python(
            untrusted.parsed(data[RULES], what, untrusted.DOCUMENT), context=base.ANY_CASE
        )
    except pydantic.ValidationError as wrong:
        raise base.ReadError(f"{what}: {base.explained(wrong)}") from wrong
