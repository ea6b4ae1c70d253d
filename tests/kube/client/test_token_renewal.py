"""A ServiceAccount token that its owner renews in a file."""

import base64
import json
import random
import stat

import pytest

from kube.client import access, client, token_renewal
from process.runtime import clock as clocks
from process.runtime import supervise

START = 1_767_225_600.0
DAY = 24 * 3600.0
PATH = "/api/v1/namespaces/koordinator-system/serviceaccounts/koord-extender/token"
WANTED = token_renewal.Wanted("koordinator-system", "koord-extender", "login", int(30 * DAY))


def token(issued, expires, mark="a"):
    claims = json.dumps({"iat": issued, "exp": expires, "sub": mark}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"


def answer(server, issued, expires, mark="b"):
    return server.json({"status": {"token": token(issued, expires, mark)}}, 201)


@pytest.fixture
async def world(server, tmp_path):
    clock = clocks.ManualClock(START)
    file = tmp_path / "token"
    file.write_text(token(START, START + 30 * DAY))
    async with client.Client(
        access.Access(server.url, tokens=access.TokenFile(file)), clock=clock
    ) as kube:
        renewal = token_renewal.TokenRenewal(kube, clock, file, WANTED, random.Random(1))
        async with supervise.Supervisor("test") as tasks:
            tasks.start("token", renewal.run)
            yield server, clock, file, renewal


async def test_a_token_is_renewed_after_a_third_of_its_life_and_not_before(world):
    server, clock, file, renewal = world
    server.on("POST", PATH, answer(server, START + 10 * DAY, START + 40 * DAY))
    for _ in range(99):
        await clock.advance(DAY / 10)
    assert server.calls("POST") == []
    await clock.advance(DAY / 10)
    await server.until(lambda: file.read_text() == token(START + 10 * DAY, START + 40 * DAY, "b"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert renewal.warning() is None
    (request,) = server.calls("POST")
    assert request.headers["Authorization"] == f"Bearer {token(START, START + 30 * DAY)}"
    bound = request.body["spec"]["boundObjectRef"]
    assert (bound["kind"], bound["name"]) == ("Secret", "login")
    assert request.body["spec"]["expirationSeconds"] == 30 * DAY


async def test_a_refused_renewal_is_tried_again_and_told(world):
    server, clock, file, renewal = world
    server.on("POST", PATH, server.refuse(403, "Forbidden", "may not"))
    await clock.advance(10.1 * DAY)
    await server.until(lambda: server.calls("POST"))
    # Two thirds of its life are left, so nobody is bothered yet.
    assert renewal.warning() is None
    await clock.advance(6 * DAY)
    await server.until(lambda: "may not" in (renewal.warning() or ""))
    assert "expires in" in renewal.warning()
    server.on("POST", PATH, answer(server, START + 16 * DAY, START + 46 * DAY))
    await clock.advance(3600)
    await server.until(lambda: file.read_text() == token(START + 16 * DAY, START + 46 * DAY, "b"))
    assert renewal.warning() is None


@pytest.mark.parametrize(
    ("answered", "why"), [("x", "JWT"), ("e30.é.x", "ASCII")], ids=["no parts", "not ASCII"]
)
async def test_an_answer_that_is_no_token_replaces_nothing(world, answered, why):
    server, clock, file, renewal = world
    before = file.read_text()
    server.on("POST", PATH, server.json({"status": {"token": answered}}, 201))
    await clock.advance(16 * DAY)
    await server.go_on(clock, lambda: len(server.calls("POST")) > 1)
    assert file.read_text() == before
    assert why in renewal.warning()


async def test_a_missing_or_endless_token_is_told(world):
    _, _, file, renewal = world
    endless = base64.urlsafe_b64encode(json.dumps({"iat": 1}).encode()).decode()
    for text in ("", "a.b", f"e30.{endless}.x", "e30.!!!.x", "e30." + "[" * 4000 + ".x"):
        file.write_text(text)
        assert "token file" in renewal.warning()
    file.write_bytes("\ufeffe30.e30.x".encode())
    assert "token file" in renewal.warning()
    file.unlink()
    assert "token file" in renewal.warning()


async def test_a_file_that_no_encoding_fits_is_read_again_until_a_token_is_there(world):
    server, clock, file, renewal = world
    server.on("POST", PATH, answer(server, START, START + 40 * DAY))
    file.write_bytes(b"\xff\xfe")
    await clock.advance(token_renewal.LONGEST_PAUSE_SECONDS)
    assert "token file" in renewal.warning()
    file.write_text(token(START, START + 30 * DAY))
    await clock.advance(10 * DAY)
    await server.until(lambda: file.read_text() == token(START, START + 40 * DAY, "b"))


async def test_a_clock_far_ahead_does_not_renew_without_a_pause(world):
    """What the API server issues then is due again as soon as it is there."""
    server, clock, file, _ = world
    server.on("POST", PATH, answer(server, START, START + 30 * DAY))
    clock.jump(11 * DAY)
    await clock.advance(token_renewal.LONGEST_PAUSE_SECONDS)
    await server.until(lambda: len(server.calls("POST")) == 1 and clock.sleepers == 1)
    assert file.read_text() == token(START, START + 30 * DAY, "b")
    await clock.advance(token_renewal.LONGEST_PAUSE_SECONDS)
    await server.until(lambda: len(server.calls("POST")) == 2 and clock.sleepers == 1)


def test_the_life_of_a_token_is_read_from_its_claims():
    life = token_renewal.life(token(100, 400))
    assert (life.issued, life.expires, life.renew_at) == (100, 400, 200)
