"""Server-side printing: the tables that kubectl asks for."""
