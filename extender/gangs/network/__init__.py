"""Gangs in the network: which nodes it proposes for all members, and the plan that confirms it."""
