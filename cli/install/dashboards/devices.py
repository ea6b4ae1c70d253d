"""The dashboard for devices: how many there are, who holds them, and what is wrong."""

from cli.install.dashboards.panels import Dashboard, Row, figure, graph


def _all(expression: str, *labels: str) -> str:
    """Return one gauge; every replica of the manager exports it, so the largest counts."""
    return f"max by ({', '.join(labels)}) ({expression})"


_DEVICE = ("node", "type", "minor")
_ALLOCATED = _all("koord_device_allocated_ratio", *_DEVICE)
_HEALTHY = _all("koord_device_healthy", *_DEVICE)
_UNHEALTHY = _all('koord_device_present{health="unhealthy"}', "type")
_GPUS = _all('koord_device_in_use{type="gpu"}', "type")
_IN_USE = _all("koord_device_in_use", "type")
_PRESENT = _all("koord_device_present", "type", "health")
_SHARES = _all("koord_device_pod_allocated_ratio", "pod_namespace", "pod_name", *_DEVICE)

PAGE = Dashboard(
    "devices",
    "Devices",
    (
        Row(
            "Now",
            (
                figure("Devices", f"sum({_all('koord_device_present', 'type', 'health')})"),
                figure(
                    "Unhealthy",
                    f"sum({_UNHEALTHY}) or vector(0)",
                    alarm=1,
                ),
                figure("GPUs in use", f"{_GPUS} or vector(0)"),
                figure(
                    "Problems",
                    f"sum({_all('koord_device_problems', 'reason')})",
                    alarm=1,
                    about="koord status --devices names them, with what to do.",
                ),
                figure("Series not shown", "max(koord_device_hidden_series)"),
            ),
        ),
        Row(
            "Use",
            (
                graph(
                    "Share in use",
                    (
                        f"{_IN_USE} / (sum by (type) ({_PRESENT}) > 0)",
                        "{{type}}",
                    ),
                    unit="percentunit",
                ),
                graph(
                    "Devices",
                    (_all("koord_device_present", "type", "health"), "{{type}} {{health}}"),
                ),
                graph(
                    "GPUs that are partly used",
                    (
                        f"count by (type) ({_ALLOCATED} > 0 and {_ALLOCATED} < 1)",
                        "{{type}}",
                    ),
                    about="What is left of them serves pods that share only.",
                ),
            ),
        ),
        Row(
            "Nodes and pods",
            (
                graph(
                    "Devices in use by node",
                    (f"topk(20, sum by (node, type) ({_ALLOCATED}))", "{{node}} {{type}}"),
                ),
                graph(
                    "Pods that hold most",
                    (
                        f"topk(20, sum by (pod_namespace, pod_name, type) ({_SHARES}))",
                        "{{pod_namespace}}/{{pod_name}} {{type}}",
                    ),
                ),
                graph(
                    "Unhealthy or gone, in use",
                    (
                        f"{_ALLOCATED} > 0 and {_HEALTHY} == 0",
                        "{{node}} {{type}} {{minor}}",
                    ),
                ),
            ),
        ),
        Row(
            "Problems",
            (graph("Problems", (_all("koord_device_problems", "reason"), "{{reason}}")),),
        ),
    ),
)
