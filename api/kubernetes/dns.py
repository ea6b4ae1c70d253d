"""DNS-1123 labels and subdomains: what names of Kubernetes objects are made of."""

import re
from typing import Final

LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_IS_LABEL: Final = re.compile(_LABEL)
_IS_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def is_label(text: str) -> bool:
    """Whether a text is a DNS-1123 label, as names of namespaces are."""
    return len(text) <= LONGEST_LABEL and _IS_LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether a text is a DNS-1123 subdomain, as names of pods and nodes are."""
    return len(text) <= LONGEST_SUBDOMAIN and _IS_SUBDOMAIN.fullmatch(text) is not None
