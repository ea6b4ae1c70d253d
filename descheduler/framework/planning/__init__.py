"""A round: plug-ins are asked, limits and memory hold, moves are collected. Pure."""
