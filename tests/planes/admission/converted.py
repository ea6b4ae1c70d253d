"""One of our definitions with a second version and a converter."""

GADGETS = "gadgets.analysis.koordinator.sh"


def gadgets(definition):
    """One of our definitions under another name, with a second version and our converter."""
    version = definition["spec"]["versions"][0]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": True, "storage": name == version["name"], "schema": schema}
        for name in (version["name"], "v1beta1")
    ]
    return {
        "apiVersion": definition["apiVersion"],
        "kind": definition["kind"],
        "metadata": {"name": GADGETS},
        "spec": {
            "group": definition["spec"]["group"],
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "versions": versions,
            "conversion": {"strategy": "Webhook"},
        },
    }
