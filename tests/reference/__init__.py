"""Slow oracles, written from the equations: what the kernels must agree with."""
