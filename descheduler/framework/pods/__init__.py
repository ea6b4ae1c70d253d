"""In which order pods leave, what state they are in, and which others they need near. Pure."""
