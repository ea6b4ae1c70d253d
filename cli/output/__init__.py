"""What reaches a terminal or a pipe: every text of every command is written here."""
