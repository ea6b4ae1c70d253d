"""Pages of the console as plain data, from objects and what a user may list. Pure."""
