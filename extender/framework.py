"""Filter, Scorer and Reserver: what a plug-in implements and what it returns."""
