"""Arguments of LoadAwareScheduling as the arithmetic of load wants them."""

from api.plugin_args import node
from domain.usage import load


def arguments(written: node.LoadAwareSchedulingArgs) -> load.Arguments:
    """Return the values with every default filled in."""
    args = written.complete()
    windows = args.aggregated or node.AggregatedArgs()
    return load.Arguments(
        profile=load.Profile(
            usage=load.Thresholds(args.usage_thresholds),
            prod=load.Thresholds(args.prod_usage_thresholds),
            aggregated=load.Thresholds(
                windows.usage_thresholds,
                windows.usage_aggregation_type,
                windows.usage_aggregated_duration,
            ),
        ),
        factors=args.estimated_scaling_factors,
        weights=args.resource_weights,
        dominant_weight=args.dominant_resource_weight,
        filter_expired=args.filter_expired_node_metrics,
        expiration_seconds=args.node_metric_expiration_seconds,
        schedule_when_expired=args.enable_schedule_when_node_metrics_expired,
        prod_includes_system=args.prod_usage_include_sys,
        score_prod_usage=args.score_according_prod_usage,
        score_kind=windows.score_aggregation_type,
        score_duration=windows.score_aggregated_duration,
        seconds_after_scheduled=args.estimated_seconds_after_pod_scheduled,
        seconds_after_initialized=args.estimated_seconds_after_initialized,
        customizable=args.allow_customize_estimation,
        extra_resources=args.supported_resources,
    )
