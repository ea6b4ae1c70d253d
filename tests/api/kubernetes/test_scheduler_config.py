import pytest

from api.kubernetes import scheduler_config

URL = "https://127.0.0.1:9443/"


def config(**changes):
    return scheduler_config.render(scheduler_config.Options(URL, **changes))


def test_only_the_second_entry_binds_and_only_it_is_slow():
    deciding, binding = config()["extenders"]
    assert {key for key in deciding if key.endswith("Verb")} == {
        "filterVerb",
        "prioritizeVerb",
        "preemptVerb",
    }
    assert {key for key in binding if key.endswith("Verb")} == {"bindVerb"}
    assert deciding["httpTimeout"] == "2s"
    assert binding["httpTimeout"] == "30s"


def test_no_entry_can_be_skipped_and_both_send_names_only():
    for entry in config()["extenders"]:
        assert entry["ignorable"] is False
        assert entry["nodeCacheCapable"] is True
        assert entry["urlPrefix"] == "https://127.0.0.1:9443"


def test_in_tree_weights_are_ten_times_the_stock_ones():
    enabled = config()["profiles"][0]["plugins"]["multiPoint"]["enabled"]
    assert {entry["name"]: entry["weight"] for entry in enabled} == {
        name: 10 * weight for name, weight in scheduler_config.STOCK_WEIGHTS.items()
    }
    assert config()["extenders"][0]["weight"] == 1


def test_rejected_pods_come_back_within_two_seconds():
    assert config()["podMaxBackoffSeconds"] == 2


def test_without_an_extender_the_scheduler_is_the_stock_one():
    assert "extenders" not in scheduler_config.render(scheduler_config.Options(""))


def test_each_name_is_a_profile():
    names = ("default-scheduler", "koord-scheduler")
    profiles = config(scheduler_names=names)["profiles"]
    assert tuple(profile["schedulerName"] for profile in profiles) == names


@pytest.mark.parametrize(
    ("tls", "expected"),
    [
        pytest.param(scheduler_config.ClientTls("/ca"), {"caFile": "/ca"}, id="server only"),
        pytest.param(
            scheduler_config.ClientTls("/ca", "/crt", "/key", "extender"),
            {"caFile": "/ca", "certFile": "/crt", "keyFile": "/key", "serverName": "extender"},
            id="mutual",
        ),
    ],
)
def test_tls_material_is_named_and_switches_https_on(tls, expected):
    for entry in config(tls=tls)["extenders"]:
        assert entry["enableHTTPS"] is True
        assert entry["tlsConfig"] == expected


def test_sampling_is_only_set_when_asked_for():
    assert "percentageOfNodesToScore" not in config()
    assert config(percentage_of_nodes_to_score=100)["percentageOfNodesToScore"] == 100


def test_the_lease_is_named_only_where_it_is_not_the_stock_one():
    assert config()["leaderElection"] == {"leaderElect": False}
    lease = scheduler_config.Lease("koordinator-system", "koord-scheduler")
    assert config(leader_elect=True, lease=lease)["leaderElection"] == {
        "leaderElect": True,
        "resourceName": "koord-scheduler",
        "resourceNamespace": "koordinator-system",
    }


@pytest.mark.parametrize(("burst", "expected"), [(0, 1000), (600, 600)])
def test_the_burst_is_twice_the_rate_unless_given(burst, expected):
    assert config(burst=burst)["clientConnection"]["burst"] == expected
