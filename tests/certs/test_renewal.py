"""Rotation with real keys: what is kept loads again, heals itself and verifies throughout."""

import json
from collections.abc import Callable

import pytest

from certs import issue, renewal, rotation
from tests.certs import years

NOW = 1_800_000_000.0
DAY = issue.DAY
POLICY = rotation.Policy()
SUBJECTS = (
    issue.Subject("webhook", dns=("webhook.svc",)),
    issue.Subject("extender", ips=("127.0.0.1",), client=True),
)
NAMES = {"webhook": "webhook.svc", "extender": "127.0.0.1"}


def advance(keep: renewal.Keep, now: float) -> tuple[renewal.Keep, tuple[str, ...]]:
    return renewal.advance(keep, SUBJECTS, now, POLICY)


def test_everything_kept_survives_encoding_at_every_step_of_six_years() -> None:
    keep, done = advance(renewal.Keep(), NOW)
    assert done == (
        "there is no authority",
        "webhook has no certificate",
        "extender has no certificate",
    )
    now, bundles = NOW, [keep.bundle]
    while now < NOW + 6 * 365 * DAY:
        now = years.next_look(keep.state, tuple(NAMES), now, POLICY)
        before = keep
        keep, _ = advance(renewal.decode(renewal.encode(keep)), now)
        assert advance(keep, now)[1] == ()
        for one in (before, keep):
            for name, pair in one.leaves.items():
                assert issue.problem(pair, keep.bundle, NAMES[name], now) is None
                assert issue.problem(pair, before.bundle, NAMES[name], now) is None
        bundles.append(keep.bundle)
    assert len(set(bundles)) >= 5
    assert renewal.decode(renewal.encode(keep)) == keep


def test_nothing_due_means_nothing_changes() -> None:
    keep, _ = advance(renewal.Keep(), NOW)
    again, done = advance(keep, NOW + DAY)
    assert done == ()
    assert renewal.encode(again) == renewal.encode(keep)


def test_changed_names_are_issued_anew_by_the_same_authority() -> None:
    keep, _ = advance(renewal.Keep(), NOW)
    wanted = (issue.Subject("webhook", dns=("elsewhere.svc",)), SUBJECTS[1])
    after, done = renewal.advance(keep, wanted, NOW + DAY, POLICY)
    assert done == ("webhook has no certificate",)
    assert issue.problem(after.leaves["webhook"], keep.bundle, "elsewhere.svc", NOW + DAY) is None
    assert after.leaves["extender"] == keep.leaves["extender"]


def _drop(name: str) -> Callable[[dict[str, bytes]], None]:
    return lambda files: files.pop(name) and None


def _swap_keys(files: dict[str, bytes]) -> None:
    files["webhook.key"], files["extender.key"] = files["extender.key"], files["webhook.key"]


def _garble(name: str) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        files[name] = files[name][: len(files[name]) // 2]

    return change


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_drop("webhook.key"), id="key missing"),
        pytest.param(_drop("webhook.crt"), id="certificate missing"),
        pytest.param(_drop(renewal.BUNDLE), id="bundle missing"),
        pytest.param(_drop(renewal.STATE), id="record missing"),
        pytest.param(_swap_keys, id="keys of each other"),
        pytest.param(_garble("webhook.crt"), id="certificate cut off"),
        pytest.param(_garble("webhook.key"), id="key cut off"),
    ],
)
def test_damage_is_healed_by_the_next_look(damage: Callable[[dict[str, bytes]], None]) -> None:
    keep, _ = advance(renewal.Keep(), NOW)
    files = renewal.encode(keep)
    damage(files)
    healed, _ = advance(renewal.decode(files), NOW + DAY)
    for name, pair in healed.leaves.items():
        assert issue.problem(pair, healed.bundle, NAMES[name], NOW + DAY) is None
    assert set(healed.leaves) == set(NAMES)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"authorities": [{}]}'])
def test_unreadable_record_says_what_to_do(text: bytes) -> None:
    with pytest.raises(issue.CertificateError, match="move the certificate files away"):
        renewal.decode({renewal.STATE: text})


def test_authority_whose_files_are_gone_is_forgotten() -> None:
    keep, _ = advance(renewal.Keep(), NOW)
    files = {renewal.STATE: renewal.encode(keep)[renewal.STATE]}
    assert json.loads(files[renewal.STATE])["version"] == 1
    assert renewal.decode(files) == renewal.Keep()


@pytest.mark.parametrize("name", ["../etc/passwd", "", "ca-x", "A", "-x", "a/b"])
def test_names_that_make_no_file_are_refused(name: str) -> None:
    with pytest.raises(issue.CertificateError, match="cannot name a certificate"):
        renewal.advance(renewal.Keep(), [issue.Subject(name, dns=("x",))], NOW, POLICY)
