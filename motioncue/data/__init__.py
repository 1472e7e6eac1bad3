"""Recordings that come with the package."""
