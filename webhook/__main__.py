"""`python -m webhook`: the admission webhook."""

from kube.client import connect
from process.runtime import entry
from webhook import app, settings

if __name__ == "__main__":
    entry.main("webhook", settings.Settings, app.running, connect=connect.connect)
