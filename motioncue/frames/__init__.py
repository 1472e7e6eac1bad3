"""From a simulator's packages to the newest motion: match, decode, convert, watch, publish."""
