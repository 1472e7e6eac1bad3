"""Recordings of what a simulator wrote: read as arrays, or replayed through the whole engine."""
