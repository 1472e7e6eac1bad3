"""Platforms: their geometry and kinematics, and actuators within their bounds."""
