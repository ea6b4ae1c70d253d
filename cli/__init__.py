"""One command for people."""
