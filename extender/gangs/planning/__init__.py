"""Plans of whole gangs on a fork of the state: members, classes and places. Pure."""
