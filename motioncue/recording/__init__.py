"""Recordings of runs and of simulators: written, read as arrays, replayed, exported."""
