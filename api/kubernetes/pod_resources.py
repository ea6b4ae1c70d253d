"""The kubelet's PodResources API: which devices the containers of a node were given.

Only what is read or added is named here; other fields are kept as they came. `v1alpha1` has the
same messages under the same numbers.
"""

from collections.abc import Mapping
from typing import Any, Final

from api.wire import protobuf_schema

SERVICE: Final = "v1.PodResourcesLister"
OLD_SERVICE: Final = "v1alpha1.PodResourcesLister"
LIST: Final = f"/{SERVICE}/List"
GET: Final = f"/{SERVICE}/Get"
ALLOCATABLE: Final = f"/{SERVICE}/GetAllocatableResources"
OLD_LIST: Final = f"/{OLD_SERVICE}/List"
_SCHEMA: Final[Mapping[str, str]] = {
    "ListPodResourcesResponse": "pod_resources PodResources[] 1",
    "PodResources": "name string 1, namespace string 2, containers ContainerResources[] 3",
    "ContainerResources": "name string 1, devices ContainerDevices[] 2",
    "ContainerDevices": "resource_name string 1, device_ids string[] 2",
}
CLASSES: Final[Mapping[str, Any]] = protobuf_schema.classes("v1", _SCHEMA)
