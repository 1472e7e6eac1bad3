"""Games whose packet a profile describes: one file each, found by its name, no code."""
