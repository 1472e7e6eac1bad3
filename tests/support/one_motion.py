"""One known motion, for tests of sources: numbers put where a document says must give it.

The car goes at 20 m/s forward, 0.5 m/s to the left and 0.25 m/s up; it gains 3 m/s^2 forward, 8 to the left and 1 up;
it rolls right side down by 0.1 rad/s, pitches nose up by 0.2 rad/s and yaws left by 0.4 rad/s; its right side is 0.05
rad down, its nose 0.1 rad up and 0.3 rad left.
"""

import math

import numpy as np

MOTION = {
    **{"surge": 3.0, "sway": -8.0, "heave": 1.0, "roll": 0.05, "pitch": 0.1, "yaw": -0.3},
    **{"roll_rate": 0.1, "pitch_rate": 0.2, "yaw_rate": -0.4},
}


def turned(yaw=0.3):
    """Return the car's forward, left and up in a world of forward, left, up: yaw, then pitch, then roll."""
    pitch, roll = 0.1, 0.05
    cy, sy, cp, sp, cr, sr = (f(a) for a in (yaw, pitch, roll) for f in (math.cos, math.sin))
    forward = np.array([cy * cp, sy * cp, sp])
    level = np.array([-sy, cy, 0.0])  # left, before the car rolls
    up = np.cross(forward, level)
    return forward, cr * level + sr * up, cr * up - sr * level
