"""Recordings in the package."""
