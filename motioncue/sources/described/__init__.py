"""A simulator whose packet a profile describes."""
