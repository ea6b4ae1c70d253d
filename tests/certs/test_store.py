"""Certificate folders: whole at every moment, closed to others, usable by real tools."""

import ssl
import stat
from pathlib import Path

import pytest

from certs import __main__ as shell
from certs import issue, renewal, rotation, store

NOW = 1_800_000_000.0
SUBJECT = issue.Subject("tls", dns=("localhost",))


@pytest.fixture
def keep() -> renewal.Keep:
    return renewal.advance(renewal.Keep(), [SUBJECT], NOW, rotation.Policy())[0]


def test_saved_folder_loads_again(tmp_path: Path, keep: renewal.Keep) -> None:
    assert store.load(tmp_path / "none") == renewal.Keep()
    store.save(tmp_path / "new" / "folder", keep)
    assert store.load(tmp_path / "new" / "folder") == keep


def test_keys_are_for_their_owner_only(tmp_path: Path, keep: renewal.Keep) -> None:
    store.save(tmp_path, keep)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert {mode for name, mode in modes.items() if name.endswith(".key")} == {0o600}
    assert modes["tls.crt"] == modes["bundle.crt"] == 0o644


def test_interruption_after_any_write_leaves_a_folder_that_heals(
    tmp_path: Path, keep: renewal.Keep
) -> None:
    later = NOW + 100 * issue.DAY
    after, done = renewal.advance(keep, [SUBJECT], later, rotation.Policy())
    assert done
    ordered = sorted(renewal.encode(after), key=store._rank)
    for cut in range(len(ordered) + 1):
        folder = tmp_path / str(cut)
        store.save(folder, keep)
        for name in ordered[:cut]:
            store.write(folder / name, renewal.encode(after)[name])
        loaded = store.load(folder)
        # Whoever holds the old bundle meets nothing that it does not trust.
        healed, _ = renewal.advance(loaded, [SUBJECT], later, rotation.Policy())
        assert issue.problem(healed.leaves["tls"], keep.bundle, "localhost", later) is None
        assert loaded.state.authorities[0].last_leaf >= keep.state.authorities[0].last_leaf


def test_what_was_withdrawn_and_left_over_is_removed(tmp_path: Path, keep: renewal.Keep) -> None:
    store.save(tmp_path, keep)
    (tmp_path / "ca-0123.key").write_bytes(b"x")
    (tmp_path / ".tls.crt.abc.tmp").write_bytes(b"x")
    (tmp_path / "notes.txt").write_bytes(b"mine")
    store.save(tmp_path, keep)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {*renewal.encode(keep), "notes.txt"}


def test_unchanged_files_are_not_touched(tmp_path: Path, keep: renewal.Keep) -> None:
    store.save(tmp_path, keep)
    before = {file.name: file.stat().st_ino for file in tmp_path.iterdir()}
    store.save(tmp_path, keep)
    assert {file.name: file.stat().st_ino for file in tmp_path.iterdir()} == before


def test_folder_that_is_a_file_is_named(tmp_path: Path, keep: renewal.Keep) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"")
    with pytest.raises(store.StoreError, match=r"certificate folder .*file: cannot be written"):
        store.save(place, keep)
    with pytest.raises(store.StoreError, match=r"certificate folder .*file: cannot be read"):
        store.load(place)


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "x.key"
    store.write(file, b"old")
    blocked = tmp_path / "y.key"
    blocked.mkdir()
    with pytest.raises(OSError, match="directory"):
        store.write(blocked, b"new")
    assert file.read_bytes() == b"old"
    assert {entry.name for entry in tmp_path.iterdir()} == {"x.key", "y.key"}


def test_shell_makes_files_that_openssl_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.main(["--dir", str(tmp_path), "--dns", "koord.test", "--ip", "127.0.0.1"]) == 0
    assert "tls has no certificate" in capsys.readouterr().out
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    before = (tmp_path / "tls.crt").read_bytes()
    assert shell.main(["--dir", str(tmp_path), "--dns", "koord.test", "--ip", "127.0.0.1"]) == 0
    assert "nothing was due" in capsys.readouterr().out
    assert (tmp_path / "tls.crt").read_bytes() == before


def test_shell_defaults_to_this_machine(tmp_path: Path) -> None:
    assert shell.main(["--dir", str(tmp_path), "--name", "dev"]) == 0
    pem = (tmp_path / "dev.crt").read_bytes()
    wanted = issue.Subject("dev", dns=("localhost",), ips=("127.0.0.1", "::1"))
    assert issue.carries(pem, wanted)


def test_shell_reports_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / renewal.STATE).write_bytes(b"{")
    assert shell.main(["--dir", str(tmp_path)]) == 1
    assert "move the certificate files away" in capsys.readouterr().err
    (tmp_path / renewal.STATE).unlink()
    assert shell.main(["--dir", str(tmp_path), "--name", "../x"]) == 1
    assert "cannot name a certificate" in capsys.readouterr().err
