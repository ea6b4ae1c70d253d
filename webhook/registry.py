"""Path and operation to rules: one visible table."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

from api import resources
from api.kubernetes.webhooks import webhook_conditions, webhook_configuration
from process.configuration import features
from webhook import gates, kinds, pods, quotas, review
from webhook.rules.configuration import config_shape, scheduler_config_shape
from webhook.rules.nodes import node_amplification, node_shape
from webhook.rules.objects import reservation_profile

GATES: Final = tuple(
    features.Gate(
        name,
        default=name in gates.ON,
        stage=features.Stage.BETA if name in gates.ON else features.Stage.ALPHA,
        description=description,
    )
    for name, description in gates.DESCRIPTIONS.items()
)
CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """What one path of the webhook server is asked about, and who answers."""

    decide: Callable[[review.Review, review.Picture], review.Decision]
    name: str
    """Name of the webhook in its configuration object."""
    operations: tuple[str, ...]
    kinds: tuple[resources.Resource, ...] = (resources.PODS,)
    subresources: tuple[str, ...] = ("",)
    """The parts of each kind that are asked about; empty for the object itself."""
    mutating: bool = False
    gate: str = ""
    """Feature gate that has to be on for the API server to be told of this path."""
    home: bool = False
    """Whether it is asked of objects in our own namespace, and of no other."""
    everywhere: bool = False
    """Whether it is asked of objects in every namespace, those of the system included; while
    no webhook answers, what is written passes."""
    condition: str = ""
    """CEL expression without which the API server does not ask."""
    writes: bool = False
    """Whether it may write to the API server, which it does not for a dry run."""
    needs: Callable[[review.Review, review.Picture], review.Needs] | None = None
    """Tells what has to be read from the API server before this path can decide."""

    def concerns(self, group: str, plural: str, subresource: str) -> bool:
        """Tell whether this path is asked about objects of a resource."""
        return subresource in self.subresources and any(
            (group, plural) == (one.group, one.plural) for one in self.kinds
        )


def _config(asked: review.Review, picture: review.Picture) -> review.Decision:
    scheduler = scheduler_config_shape.Settings(picture.namespace)
    if scheduler_config_shape.is_meant(asked, scheduler):
        return scheduler_config_shape.check(asked, scheduler)
    settings = config_shape.Settings(
        namespace=picture.namespace, names_required=picture.names_required
    )
    return config_shape.check(asked, settings, lambda: picture.nodes)


def _node(asked: review.Review, picture: review.Picture) -> review.Decision:
    return review.Decision(node_shape.check(asked, picture.settings))


ROUTES: Mapping[str, Route] = {
    "/mutate-pod": Route(
        pods.mutate,
        webhook_configuration.MUTATES_PODS,
        (CREATE,),
        mutating=True,
        gate=gates.PODS_MUTATED,
    ),
    "/validate-pod": Route(
        pods.validate,
        webhook_configuration.VALIDATES_PODS,
        (CREATE, UPDATE),
        gate=gates.PODS_VALIDATED,
        condition=webhook_conditions.POD_CHANGED.expression,
        needs=pods.validation_needs,
        writes=True,
    ),
    "/validate-pod-binding": Route(
        pods.bind,
        "vpodbinding.koordinator.sh",
        (CREATE,),
        subresources=("binding",),
        gate=gates.BINDING,
        needs=pods.bind_needs,
    ),
    "/validate-pod-part": Route(
        pods.protect,
        "vpodpart.koordinator.sh",
        (CREATE, UPDATE),
        # Of the pod itself too: its validation is not asked about the plan of a gang.
        subresources=("", "binding", "ephemeralcontainers", "resize", "status"),
        gate=gates.PROTECTED,
        condition=webhook_conditions.MARKED.expression,
    ),
    "/validate-binding": Route(
        pods.protect,
        "vbinding.koordinator.sh",
        (CREATE,),
        (resources.BINDINGS,),
        gate=gates.PROTECTED,
    ),
    "/mutate-node-status": Route(
        node_amplification.apply,
        "mnode.koordinator.sh",
        (UPDATE,),
        (resources.NODES,),
        subresources=("status",),
        mutating=True,
        gate=gates.NODE_STATUS,
    ),
    "/validate-node": Route(
        _node,
        "vnode.koordinator.sh",
        (CREATE, UPDATE),
        (resources.NODES,),
        gate=gates.NODES,
    ),
    "/validate-configmap": Route(
        _config,
        "vconfigmap.koordinator.sh",
        (CREATE, UPDATE),
        (resources.CONFIG_MAPS,),
        gate=gates.CONFIG_MAPS,
        home=True,
    ),
    "/validate-custom": Route(
        kinds.validate, "vcustom.koordinator.sh", (CREATE, UPDATE), kinds.CHECKED
    ),
    "/mutate-elasticquota": Route(
        quotas.mutate,
        "melasticquota.koordinator.sh",
        (CREATE,),
        resources.QUOTA_RESOURCES,
        mutating=True,
        gate=gates.QUOTAS_MUTATED,
        everywhere=True,
        needs=quotas.mutation_needs,
    ),
    "/validate-elasticquota": Route(
        quotas.validate,
        "velasticquota.koordinator.sh",
        (CREATE, UPDATE, DELETE),
        resources.QUOTA_RESOURCES,
        everywhere=True,
        condition=webhook_conditions.QUOTA_CHANGED.expression,
        needs=quotas.validation_needs,
    ),
    "/mutate-reservation": Route(
        reservation_profile.apply,
        "mreservation.koordinator.sh",
        (CREATE,),
        (resources.RESERVATIONS,),
        mutating=True,
        gate=gates.RESERVATIONS,
    ),
}
