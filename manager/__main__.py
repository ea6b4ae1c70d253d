"""python -m manager."""

from kube import access
from manager import app, settings
from process import entry

if __name__ == "__main__":
    entry.main("manager", settings.Settings, app.running, connect=access.connect)
