"""Streams of a kubelet as a client of its own node opens them: exec, attach, port-forward, logs.

usage: kubelet_streams.py URL TOKEN [SENT]; prints what the other end said. SENT goes into a port.
"""

import asyncio
import ssl
import sys

import aiohttp

PROTOCOL = "v4.channel.k8s.io"
SECONDS = 30.0


async def said(url, token, sent):
    """Return the bytes of the channels of output, until the stream or the first line of it ends."""
    # The kubelet signs its certificate itself, and nothing else listens in the node.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(ssl=context)
    async with (
        asyncio.timeout(SECONDS),
        aiohttp.ClientSession(connector=connector, headers=headers) as session,
    ):
        if "/containerLogs/" in url:
            async with session.get(url, raise_for_status=True) as page:
                return await page.read()
        return await _streamed(session, url, sent)


async def _streamed(session, url, sent):
    found = bytearray()
    async with session.ws_connect(url, protocols=(PROTOCOL,)) as stream:
        forwards, heads = "/portForward/" in url, set()
        if forwards:
            await stream.send_bytes(b"\0" + sent.encode())
        async for message in stream:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if forwards and channel not in heads:
                # The first message of each channel repeats the port.
                heads.add(channel)
                continue
            found += data if channel < 3 else b""
            if b"\n" in found:
                break
    return bytes(found)


if __name__ == "__main__":
    URL, TOKEN, *SENT = sys.argv[1:]
    sys.stdout.buffer.write(asyncio.run(said(URL, TOKEN, "".join(SENT))))
