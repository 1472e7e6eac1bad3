"""Offline tools: measure what runs, compare it with theory, look at it."""

from motioncue.analysis.response import frequency_response, step_response, transfer_function

__all__ = ["frequency_response", "step_response", "transfer_function"]
