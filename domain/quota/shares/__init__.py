"""How much of the total each quota gets: water filling, runtime and time-decayed shares."""
