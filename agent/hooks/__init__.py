"""What a container should look like before it starts. Pure. Not built yet."""
