"""`python -m agent`: the node agent."""

from agent import app, settings
from kube.client import access
from process.runtime import entry

if __name__ == "__main__":
    entry.main("agent", settings.Settings, app.running, connect=access.connect)
