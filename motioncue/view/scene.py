"""The platform as the page draws it."""

from typing import Any

from motioncue.engine.assembly import streams_of
from motioncue.platforms.build import Built, carriers_of
from motioncue.profile.profile import Profile

__all__ = ["scene_of"]

CLEARANCE_M = 0.08  # of the lowest joint above the floor
DEEP_M = 0.45  # floor below the frame if nothing shows how high it stands


def scene_of(profile: Profile, built: Built | None) -> dict[str, Any]:
    """Return what carries the frame.

    Places are from the motion reference point at neutral: x forward, y right, z down [m].

    Parameters
    ----------
    profile : Profile
        The profile in force.
    built : Built or None
        Its platform.

    Returns
    -------
    dict
        ``kind``; ``frame``, depth of the frame's joints; ``floor``, depth of the floor; ``names`` of all actuators;
        ``carriers``, for each that carries the frame its joint ``top`` on it and ``base`` at the other end, and of a
        crank its ``azimuth`` [rad] and length ``crank``; ``sent``, whether an output sends the actuators' positions.
    """
    table = profile.platform
    if table is None or built is None:
        return {"kind": "none", "frame": 0.0, "floor": DEEP_M, "names": [], "carriers": [], "sent": False}
    held, bounds = carriers_of(table)
    tops = [part["platform"] for part in held]
    frame = sum(top[2] for top in tops) / len(tops) if tops else 0.0
    bases = [part["base"][2] for part in held if "base" in part]
    deep = max([DEEP_M, *(0.2 - low for low, *_ in bounds)])
    floor = max(*bases, frame) + CLEARANCE_M if bases else frame + deep
    carriers = []
    for part in held:
        x, y, z = part["platform"]
        carrier = {"top": [x, y, z], "base": [*part["base"]] if "base" in part else [x, y, floor]}
        if "crank" in part:
            carrier |= {"azimuth": part["azimuth"], "crank": part["crank"]}
        carriers.append(carrier)
    kind = type(table).__struct_config__.tag
    streams = [encoding for output in profile.outputs for _, encoding in streams_of(output, table).values()]
    return {
        "kind": kind,
        "frame": frame,
        "floor": floor,
        "names": list(built.names),
        "carriers": carriers,
        "sent": any(name.startswith("actuator_") for encoding in streams for name in encoding.reads),
    }
