"""ScarceResourceAvoidance: nodes with scarce resources are left to pods that request them."""
