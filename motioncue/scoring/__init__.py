"""Offline tools: measure the running kernels, compare them with theory, plot."""

from motioncue.scoring.response import frequency_response, step_response, transfer_function

__all__ = ["frequency_response", "step_response", "transfer_function"]
