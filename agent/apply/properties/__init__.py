"""Files behind the roles of an edit: how they are read and written, and who else writes them."""
