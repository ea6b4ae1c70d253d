"""The ConfigMap with templates by which NPUs are sliced; plug-ins keep what it says."""

import logging

from api import names
from api.kubernetes import core
from domain.devices.requests import gpu_templates
from domain.scheduler_settings import bounded_yaml
from extender.state import deltas, ledger
from kube.informers import store

logger = logging.getLogger(__name__)

KEY = "data.yaml"
"""Where the templates stand in the data of the ConfigMap."""


def connect(watched: store.Store[core.ConfigMap], books: ledger.Ledger) -> None:
    """Apply every change; a text that cannot be read leaves the last one in force."""

    def apply(change: store.Change[core.ConfigMap]) -> None:
        name = names.CONFIG_MAP_GPU_TEMPLATES
        known = books.cluster.told(deltas.GPU_TEMPLATES, name)
        before = known.after if known is not None else None
        try:
            after = _read(change.new)
        except ValueError as wrong:
            logger.warning(
                "ConfigMap cannot be read and stays as it was name=%s key=%s error=%s",
                *(name, KEY, str(wrong)[:200]),
            )
            return
        if after != before:
            books.cluster.apply(deltas.ObjectDelta(deltas.GPU_TEMPLATES, name, before, after))

    watched.listen(apply)


def _read(written: core.ConfigMap | None) -> gpu_templates.Templates | None:
    text = written.data.get(KEY, "") if written is not None else ""
    return gpu_templates.read(bounded_yaml.parse(text)) if text.strip() else None
