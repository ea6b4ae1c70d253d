"""The annotation that keeps pods where they are: on a pod, its workload or its namespace. Pure."""

from collections.abc import Mapping

from api import names


def is_exempt(annotations: Mapping[str, str]) -> bool:
    """Whether annotations keep pods where they are; any value but `false` does."""
    return annotations.get(names.ANNOTATION_EXEMPT, "false") != "false"
