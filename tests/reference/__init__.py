"""Slow oracles written from the equations, to which the kernels are compared."""
