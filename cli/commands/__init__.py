"""One module per command: its arguments, what it reads, what it prints."""
