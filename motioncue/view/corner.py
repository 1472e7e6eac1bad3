"""What settings do on a stretch of a drive: what is felt wrong, where most and why, and its picture."""

import base64
import math
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue.platforms.build import CHANNELS as POSE
from motioncue.profile.profile import Profile
from motioncue.view.model import CHANNELS, PAST_HZ, used_of

__all__ = ["LEAD_S", "corner"]

LEAD_S = 20.0  # driven before the stretch, so that its beginning is felt as it was
MOST = 500  # rows of a picture
AROUND_S = 0.5  # beside the worst moment, where its reason is looked for
FULL = 0.97  # share of travel, or of a rate, that counts as used up


def corner(profile: Profile, motion: npt.NDArray[np.void], begin_s: float, end_s: float) -> dict[str, Any]:
    """Return what settings do on a stretch."""
    from motioncue.scoring.quality import rms
    from motioncue.scoring.scene import Scene, sent, with_platform
    from motioncue.scoring.senses import RATE_HZ, SENSES

    source = msgspec.structs.replace(profile.source, bridge="hold")  # the frames are bridged already
    scene = Scene(with_platform(msgspec.structs.replace(profile, source=source)), motion)
    assert scene.profile.platform is not None
    cues = scene.cues(scene.profile.cueing)
    table = msgspec.structs.replace(scene.profile.platform, lag_s=None, lag_damping=None)
    positions = sent(msgspec.structs.replace(scene.profile, platform=table), cues)
    poses = scene.built.kinematics.forward(positions)
    felt = scene.felt(poses)
    part = slice(round(begin_s * RATE_HZ), max(round(begin_s * RATE_HZ) + 1, round(end_s * RATE_HZ)))
    car, platform = scene.car.told[part], felt.told[part]
    errors, rest = rms(car - platform), rms(car)
    row, sense = divmod(int(np.argmax(np.abs(car - platform))), len(SENSES))
    worst_s = begin_s + row / RATE_HZ
    used = np.array([list(used_of(each, scene.built).values()) for each in positions])
    first, last = (min(len(cues) - 1, max(0, round(at * scene.rate_hz))) for at in (begin_s, end_s))
    around = slice(max(0, round((worst_s - AROUND_S) * scene.rate_hz)), round((worst_s + AROUND_S) * scene.rate_hz) + 2)
    why = _ended(scene.profile, cues[around], poses[around], np.abs(used[around]).max(axis=0), scene)
    return {
        "errors": errors.tolist(),
        "rest": rest.tolist(),
        "ratio": float(np.linalg.norm(errors)) / max(1e-9, float(np.linalg.norm(rest))),
        "worst_s": worst_s,
        "worst": SENSES[sense],
        "why": why or _meant(float(car[row, sense]), float(platform[row, sense])),
        "travel": float(np.abs(used[first : last + 1]).max()),
        **_picture(scene, cues, poses, positions, used, first, last),
    }


def _ended(profile: Profile, cues: npt.NDArray[np.void], poses: Any, used: Any, scene: Any) -> str:
    """Return which end was met around a moment; empty if none was."""
    if used.max() >= FULL:
        return f"{scene.built.names[int(used.argmax())].replace('_', ' ')} is at the end of its travel"
    for name, bounds in profile.bounds().items():
        most = bounds[0]
        if most is not None and name in (cues.dtype.names or ()) and np.abs(cues[name]).max() >= 0.999 * most:
            return f"the limit of {name.replace('_', ' ')} is met"
    rate = getattr(getattr(profile.cueing, "tilt", None), "rate_limit_deg_s", None)
    turns = np.abs(np.gradient(poses[:, 3:5], 1.0 / scene.rate_hz, axis=0)).max()
    if rate is not None and turns >= FULL * math.radians(rate):
        return f"leaning is as quick as it may be, {rate:g} °/s"
    return ""


def _meant(car: float, platform: float) -> str:
    """Return what is wrong where no end was met; in thresholds."""
    if car * platform < 0.0 and abs(platform) > 1.0:
        return "it is felt against the car: the return to neutral is too quick"
    if abs(platform) < abs(car):
        return "too little arrives: stronger, more lean, or a slower return"
    return "too much arrives: weaker, or smoother"


def _picture(scene: Any, cues: Any, poses: Any, positions: Any, used: Any, first: int, last: int) -> dict[str, Any]:
    """Return names and rows of what a page would have been sent."""
    step = max(round(scene.rate_hz / PAST_HZ), (last - first) // MOST, 1)
    at = np.arange(first, last + 1, step)
    names = ["time", *(f"cue.{channel.name}" for channel in CHANNELS), *(f"pose.{name}" for name in POSE)]
    names += [f"{kind}.{name}" for kind in ("at", "used") for name in scene.built.names]
    asked = np.column_stack([cues[channel.name][at] for channel in CHANNELS])
    rows = np.column_stack([at / scene.rate_hz, asked, poses[at], positions[at], used[at]])
    return {"names": names, "rows": base64.b64encode(rows.astype("<f4").tobytes()).decode()}
