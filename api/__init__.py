"""The words: wire models, names and quantities. No I/O."""
