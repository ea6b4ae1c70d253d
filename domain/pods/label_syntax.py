"""What Kubernetes accepts as keys and values of labels and annotations."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from api.kubernetes import meta

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_PREFIX: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_LONGEST_NAME: Final = 63
_LONGEST_PREFIX: Final = 253


def is_key(text: str) -> bool:
    """Tell whether a text may be the key of a label or an annotation."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= _LONGEST_PREFIX and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= _LONGEST_NAME and bool(_NAME.fullmatch(name))


def is_value(text: str) -> bool:
    """Tell whether a text may be the value of a label."""
    return not text or (len(text) <= _LONGEST_NAME and bool(_NAME.fullmatch(text)))


def bad_selector(path: str, selector: meta.LabelSelector | None) -> Iterator[str]:
    """Yield a sentence per key and value of a selector that no label can have."""
    if selector is None:
        return
    yield from bad_keys(f"{path}.matchLabels", selector.match_labels)
    yield from bad_values(f"{path}.matchLabels", selector.match_labels)
    for index, one in enumerate(selector.match_expressions):
        place = f"{path}.matchExpressions[{index}]"
        yield from bad_keys(f"{place}.key", iter((one.key,)))
        yield from (
            sentence
            for position, value in enumerate(one.values)
            for sentence in bad_values(f"{place}.values", {str(position): value})
        )


def bad_keys(path: str, keys: Iterator[str] | Mapping[str, object]) -> Iterator[str]:
    """Yield a sentence per key that Kubernetes would refuse."""
    for key in keys:
        if not is_key(key):
            yield (
                f'{path}: Invalid value: "{key}": a key is up to 63 letters, digits, "-", "_" '
                'and ".", after an optional DNS name and "/"'
            )


def bad_values(path: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence per label value that Kubernetes would refuse."""
    for key, value in labels.items():
        if not is_value(value):
            yield (
                f'{path}[{key}]: Invalid value: "{value}": a value is empty or up to 63 letters, '
                'digits, "-", "_" and "."'
            )
