"""Profiles: files that become checked settings, their presets, and what is said about them."""
