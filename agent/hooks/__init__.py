"""What a container should look like before it starts, one module per hook. Pure."""
