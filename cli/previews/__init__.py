"""What a change of settings or profiles would do before it is applied."""
