"""Templates by which accelerators are sliced: what each slice of a model takes of one device."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from api.wire import quantity
from domain.devices.allocation import candidates
from domain.devices.requests import requests

NO_TEMPLATE: Final = candidates.Refusal("no matched GPU shared resource template", final=True)
"""Refuses a slice in a size that no template, or none of the model, gives."""
MOST: Final = 4096
"""Templates of all models together."""


class Templates(msgspec.Struct, frozen=True):
    """The templates of every model of accelerators."""

    by_model: Mapping[str, Mapping[str, requests.Amounts]] = {}
    """Amounts by the vendor and model `VENDOR-MODEL`, and by the name of the template."""


Matching = tuple[tuple[str, tuple[str, ...]], ...]
"""By model, the names of the templates that give exactly what a pod takes of one accelerator."""


def read(written: Any) -> Templates:
    """Read `VENDOR-MODEL` to template to resources; ValueError names what cannot be read."""
    if not isinstance(written, dict):
        raise ValueError("templates are a mapping of models; write VENDOR-MODEL as its keys")
    found = {model: _of_model(model, one) for model, one in written.items()}
    if sum(map(len, found.values())) > MOST:
        raise ValueError(f"more than {MOST} templates; keep those of models that the nodes have")
    return Templates(found)


def _of_model(model: str, written: Any) -> dict[str, requests.Amounts]:
    if not isinstance(written, dict) or not all(isinstance(one, dict) for one in written.values()):
        raise ValueError(f"{model}: write the name of each template as a key over its resources")
    try:
        return {name: quantity.amounts(one) for name, one in written.items()}
    except quantity.QuantityError as wrong:
        raise ValueError(f"{model}: {wrong}") from wrong


def concern(gpu: requests.GPURequest | None, matched: Collection[str]) -> bool:
    """Whether a pod takes a slice by a template; ``matched`` as below."""
    return gpu is not None and gpu.shared and any(name in gpu.per_gpu for name in matched)


def matching(
    templates: Templates, gpu: requests.GPURequest | None, matched: Collection[str]
) -> Matching | None:
    """Return the templates for a pod, by model; None: it takes no slice by a template.

    ``matched`` are the resources that only templates give parts of.
    """
    if gpu is None or not concern(gpu, matched):
        return None
    found = {
        model: tuple(name for name, amounts in sorted(known.items()) if amounts == gpu.per_gpu)
        for model, known in sorted(templates.by_model.items())
    }
    return tuple((model, names) for model, names in found.items() if names)
