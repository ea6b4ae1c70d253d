"""The status of elastic quotas, reserved quotas, and metrics per team."""
