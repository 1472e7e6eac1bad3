"""From a simulator's packages to the newest motion: match, decode, turn, watch, publish."""
