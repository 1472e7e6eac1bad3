"""The plausibility thresholds of a profile: the table ``[watch]``."""

from motioncue.core.table import Positive, Table

__all__ = ["UNWATCHED", "Watch"]


class Watch(Table, frozen=True, kw_only=True):
    """Plausibility thresholds: a frame beyond one is treated as a discontinuity, and the platform parks."""

    max_acceleration_m_s2: Positive = 100.0
    """Largest plausible acceleration [m/s^2]; a recorded rally car lands from a jump with 82."""
    max_rate_deg_s: Positive = 600.0
    """Largest plausible angular rate [deg/s]."""
    frozen_s: Positive = 1.0
    """How long a moving car may repeat the same state [s]."""
    jitter_s: Positive = 0.1
    """Largest deviation of frames from even arrivals [s]."""
    frame_jump_s: Positive = 2.0
    """Largest change of the simulator's frame time [s]."""
    max_acceleration_step_m_s2: Positive = 15.0
    """Largest change of acceleration between frames that is followed before the velocity confirms it [m/s^2]."""
    max_rate_step_deg_s: Positive = 172.0
    """Largest change of angular rate between frames that is followed before the attitude confirms it [deg/s]."""
    velocity_error_m_s: Positive = 1.0
    """Allowed contradiction between acceleration and change of velocity over a second, plus 35 % of them [m/s]."""
    attitude_error_deg: Positive = 5.7
    """Allowed contradiction between angular rates and turns of the attitude over a second, plus 35 % of them [deg]."""


UNWATCHED = Watch(**dict.fromkeys(Watch.__struct_fields__, 1e18))
"""Thresholds that no frame exceeds."""
