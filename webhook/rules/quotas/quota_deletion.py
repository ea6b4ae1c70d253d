"""Refuse to delete quotas that others depend on."""

from collections.abc import Iterator
from typing import Final

from api import names
from domain import wording
from domain.quota.tree import quota_trees
from webhook import review

NAMESPACE_CONTROLLER: Final = "system:serviceaccount:kube-system:namespace-controller"
"""Empties namespaces that were deleted; refusing it would hold the namespace for ever."""


def check(
    asked: review.Review, found: quota_trees.Member, trees: quota_trees.Trees
) -> Iterator[review.Fault]:
    """Yield what stands in the way of deleting a quota."""
    if asked.user == NAMESPACE_CONTROLLER:
        return
    if found.name in names.RESERVED_QUOTAS:
        yield review.Fault(
            "reserved", f'metadata.name: Forbidden: "{found.name}" is kept by the system'
        )
    present = trees.by_name.get(found.name)
    if present is not None and present.key != found.key:
        return  # A namesake stays, and with it all that depends on the name.
    children = trees.children.get(found.name, ())
    if children:
        yield review.Fault(
            "has-children",
            "metadata.name: Forbidden: "
            f"{wording.count(len(children), 'quota is', 'quotas are')} below {found.key}, such as "
            f"{children[0].key}; move or delete {wording.form(len(children), 'it', 'them')} first",
        )
    if asked.pods:
        yield review.Fault(
            "has-pods",
            f"metadata.name: Forbidden: {found.key} is charged for pods, such as "
            f"{', '.join(asked.pods[:2])}; delete them or change their label "
            f"{names.LABEL_QUOTA_NAME} first",
        )
