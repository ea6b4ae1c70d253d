"""Settings, feature gates and live switches."""
