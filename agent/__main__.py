"""`python -m agent`: the node agent."""

from agent import app, settings
from kube.client import connect
from process.runtime import entry

if __name__ == "__main__":
    entry.main("agent", settings.Settings, app.running, connect=connect.connect, loop=app.LOOP)
