"""CRI as far as it is intercepted: messages, what is remembered of pods, what hooks change."""
