"""What the extender knows of the scheduler that calls it, against what runs."""

import pytest
import yaml

from api import names
from cli.doctor.checkup import facts
from tests.planes.install import checkups

STOCK = "registry.k8s.io/kube-scheduler"


def asked(found, healthy, chosen, *, args=(), tag="v1.36.3", change=None):
    """Examine an installation whose extender has these settings."""
    text = yaml.safe_dump({"scheduler": {"configFile": "/x", "version": "v1.36.3"} | chosen})
    maps = healthy.config_maps | {"koord-extender": {"data": {"settings.yaml": text}}}
    workload = checkups.deployment("scheduler", f"{STOCK}:{tag}", checkups.IMAGE)
    container = workload["spec"]["template"]["spec"]["containers"][0]
    container |= {"name": "kube-scheduler", "args": ["--config=/x", *args]}
    others = [one for one in healthy.deployments if facts.component(one) != "scheduler"]
    config = checkups.beside()
    if change is not None:
        change(config)
    return found(
        config_maps=maps,
        deployments=[*others, workload],
        scheduler_configs=[facts.SchedulerConfig("ConfigMap x", config, True, 2)],
    )


def test_what_the_chart_writes_is_fine(found, healthy):
    gates = "--feature-gates=SchedulerAsyncAPICalls=true"
    assert asked(found, healthy, {"arguments": [gates]}, args=[gates]) == {}


def other_extender(config):
    config["extenders"].append({"urlPrefix": "http://other", "filterVerb": "filter"})


LEFT = {
    "no version": ({"version": ""}, None, "the version of kube-scheduler is not set"),
    "a gate": (
        {"arguments": ["--feature-gates=PodLevelResources=false"]},
        None,
        "feature gate PodLevelResources is not at its default",
    ),
    "another address": ({"extenderUrl": "http://x"}, None, "another extender filters or scores"),
    "another extender": ({}, other_extender, "another extender filters or scores"),
}


@pytest.mark.parametrize(("chosen", "change", "said"), LEFT.values(), ids=LEFT)
def test_why_nothing_is_decided_is_told(found, healthy, chosen, change, said):
    told = asked(found, healthy, chosen, change=change, args=chosen.get("arguments", ()))
    assert said in told["decisions.left"].sentence
    assert told["decisions.left"].severity == "info"
    assert "decisions.differs" not in told


def test_nothing_is_told_where_nothing_shall_be_decided(found, healthy):
    assert asked(found, healthy, {"decide": "never", "version": ""}) == {}
    assert asked(found, healthy, {"configFile": None, "version": ""}) == {}


DIFFERENT = {
    "another version": ({}, (), "v1.34.1", "runs v1.34.1, the extender goes by v1.36.3"),
    "feature gates": ({}, ("--feature-gates", "A=true"), "v1.36.3", "other --feature-gates"),
}


@pytest.mark.parametrize(("chosen", "args", "tag", "said"), DIFFERENT.values(), ids=DIFFERENT)
def test_another_scheduler_than_the_one_that_runs(found, healthy, chosen, args, tag, said):
    told = asked(found, healthy, chosen, args=args, tag=tag)
    assert said in told["decisions.differs"].sentence
    assert told["decisions.differs"].severity == "warning"
    assert told["decisions.differs"].object == f"{names.NAMESPACE}/koord-scheduler"
