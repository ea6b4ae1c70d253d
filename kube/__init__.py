"""The API server: the only code of ours that talks to it."""
