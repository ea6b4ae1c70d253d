"""How long tests wait, in real time, for what has to happen."""

# It only keeps a test that fails from hanging: a busy machine may stand still for many seconds.
SECONDS = 60.0
