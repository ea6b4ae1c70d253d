"""A real Chromium without a window, driven over its DevTools protocol."""

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
import tempfile
from pathlib import Path

import aiohttp

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_SECONDS = 30.0
ANSWER_SECONDS = 30.0


def program():
    """Return the path of a Chromium, None where this machine has none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class ScriptError(AssertionError):
    """A script in the page failed."""


class Tab:
    """One page: addresses, scripts, keys, pictures."""

    def __init__(self, socket):
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting = {}
        self.said = []
        """What the page wrote to its console, and what went wrong in it."""
        self.requests = []
        """Addresses that it asked for."""

    async def listen(self):
        """Take in answers and events until the browser closes the connection."""
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                waiting = self._waiting.pop(told["id"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(told)
            else:
                self._event(told["method"], told["params"])

    def _event(self, name, about):
        if name == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif name == "Runtime.exceptionThrown":
            self.said.append(str(about["exceptionDetails"].get("exception", about)))
        elif name == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.said.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif name == "Runtime.consoleAPICalled" and about["type"] == "error":
            self.said.append(str(about["args"]))

    async def call(self, method, **arguments):
        """Send one command and return its result."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": arguments})
        told = await asyncio.wait_for(answer, ANSWER_SECONDS)
        if "error" in told:
            raise ScriptError(f"{method}: {told['error']}")
        return told["result"]

    async def run(self, script):
        """Return the value of an expression in the page; promises are awaited."""
        told = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            raise ScriptError(f"{script}: {told['exceptionDetails']}")
        return told["result"].get("value")

    async def until(self, script, seconds=15.0):
        """Wait until an expression in the page is true, and return it."""
        body = (
            "new Promise((done, fail) => { const end = performance.now() + %d;"
            " const look = () => { let found = null; try { found = %s } catch {}"
            " if (found) done(found); else if (performance.now() > end)"
            " fail(new Error('never true: ' + document.body.innerText.slice(0, 2000)));"
            " else setTimeout(look, 15) }; look() })"
        )
        return await self.run(body % (seconds * 1000, script))

    async def go(self, address):
        """Open an address."""
        await self.call("Page.navigate", url=address)

    async def press(self, key, code=0, text=""):
        """Press and release a key."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **about)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    async def appear(self, *, dark=False, still=False, width=1280, height=900):
        """Set what the user prefers, and the size of the window."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if still else ""}
        await self.call("Emulation.setEmulatedMedia", features=[scheme, motion])
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    async def picture(self, file):
        """Write a picture of what is seen."""
        told = await self.call("Page.captureScreenshot", format="png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(told["data"]))

    async def spoken(self):
        """Return what the page says to screen readers: role and name of each node."""
        tree = await self.call("Accessibility.getFullAXTree")
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in tree["nodes"]
            if not node.get("ignored") and "role" in node
        ]


@contextlib.asynccontextmanager
async def tab(path, *, accessible=True):
    """Start a browser of its own and yield its one page.

    An accessible one keeps the tree that it tells screen readers, which takes time of its own.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        child = await asyncio.create_subprocess_exec(
            path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-extensions", "--disable-background-networking",
            "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={folder}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = await _port(Path(folder, "DevToolsActivePort"))
            async with aiohttp.ClientSession() as session:
                address = await _address(session, port)
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    found = Tab(socket)
                    listening = asyncio.ensure_future(found.listen())  # noqa: TID251
                    domains = ("Page", "Runtime", "Network", "Log")
                    for domain in (*domains, "Accessibility") if accessible else domains:
                        await found.call(f"{domain}.enable")
                    yield found
                    await socket.close()
                    await listening
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()


async def _port(file):
    """Return on which port the browser listens, which it writes into its folder."""
    for _ in range(int(START_SECONDS * 50)):
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        await asyncio.sleep(0.02)
    raise ScriptError("the browser did not start")


async def _address(session, port):
    for _ in range(int(START_SECONDS * 50)):
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            for one in await answer.json():
                if one["type"] == "page":
                    return one["webSocketDebuggerUrl"]
        await asyncio.sleep(0.02)
    raise ScriptError("the browser opened no page")
