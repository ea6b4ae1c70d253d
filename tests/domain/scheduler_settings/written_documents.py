"""Scheduler configurations as people write them."""

import yaml

from domain.scheduler_settings import documents

CONFIG = "kubescheduler.config.k8s.io/v1"


def document(*configs, plugins=None, **fields):
    profile = {"schedulerName": "koord-scheduler", "pluginConfig": list(configs)}
    if plugins is not None:
        profile["plugins"] = plugins
    whole = {"apiVersion": CONFIG, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    return whole | fields


def config(name, **args):
    return {"name": name, "args": {"apiVersion": CONFIG, "kind": f"{name}Args"} | args}


def read(whole, **chosen):
    text = whole if isinstance(whole, str) else yaml.safe_dump(whole)
    return documents.read({documents.KEY: text}, **chosen)


def second(**fields):
    return {"schedulerName": "koord-scheduler"} | fields
