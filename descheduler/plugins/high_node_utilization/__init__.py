"""HighNodeUtilization: empties nodes of which little is requested, into those that are in use."""
