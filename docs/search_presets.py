"""Search for the presets of the classical washout; run it as ``python docs/search_presets.py small 1500 8``.

The arguments are the size, the settings to score and the seed.  The drives are the sample as it is and stronger, and
those of the virtual car; a strength scales every channel.  Printed are the values found, and scores at the profile's
own rate, on other drives too.  The search runs at 111 Hz, where scores differ by a few tenths.
"""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

import motioncue
from motioncue.recording.recording import sample_recording
from motioncue.tuning.tune import Bounds, tune
from motioncue.virtual.installation import drive_motion

CHANNELS = ("surge", "sway", "heave", "roll", "pitch", "roll_rate", "pitch_rate", "yaw_rate")
BOUNDS = {"small": Bounds(0.9, 0.21, 0.25), "medium": Bounds(0.9, 0.22, 0.25), "large": Bounds(0.9, 0.24, 0.25)}
DRIVES = {
    "small": ("sample", "sample x2", "tour", "turns"),
    "medium": ("sample", "sample x2", "tour", "turns"),
    "large": ("sample", "sample x2", "sample x3", "turns"),
}
OTHERS = ("brake", "tour", "sample x1.5")


def box(m: float, heave_m: float, deg: float, m_s: float, m_s2: float) -> dict[str, Any]:
    """Return a platform of six free axes."""
    axes: list[dict[str, Any]] = []
    for name, end in (("surge", m), ("sway", m), ("heave", heave_m)):
        travel = {"min_m": -end, "max_m": end, "speed_m_s": m_s, "acceleration_m_s2": m_s2}
        axes.append({"name": f"{name}_axis", "channel": f"{name}_displacement", "travel": travel})
    for name in ("roll", "pitch", "yaw"):
        turn = {"min_deg": -deg, "max_deg": deg, "speed_deg_s": 30.0, "acceleration_deg_s2": 500.0}
        axes.append({"name": f"{name}_axis", "channel": name, "turn": turn})
    return {"kind": "axes", "axes": axes}


PLATFORMS: dict[str, Any] = {
    "small": "box-small",
    "medium": box(0.4, 0.3, 18.0, 0.8, 8.0),
    "large": "box-large",
}


def motion(name: str) -> npt.NDArray[np.void]:
    """Return the frames of a drive, such as ``sample x2``."""
    base, _, strength = name.partition(" x")
    found = motioncue.read(sample_recording()).motion if base == "sample" else drive_motion(base)
    for channel in CHANNELS:
        found[channel] *= float(strength or 1.0)
    return found


def main(size: str, evaluations: int, seed: int) -> None:
    """Search, and print what was found."""
    profile = motioncue.load_profile("ccd-dk-classical", f"cueing.preset={size}", "output.rate_hz=111")
    found = tune(
        profile,
        {name: motion(name) for name in DRIVES[size]},
        platform=PLATFORMS[size],
        evaluations=evaluations,
        seed=seed,
        bounds=BOUNDS[size],
        progress=lambda done, total, best: print(f"{done} of {total}, best {best:.1f}", file=sys.stderr),
    )
    values = {key: float(f"{after:.3g}") for key, (_, after) in found.changes.items()}
    for key, value in values.items():
        print(f"{key} = {value:g}")
    tuned = motioncue.load_profile("ccd-dk-classical", f"cueing.preset={size}", values)
    for name in dict.fromkeys((*DRIVES[size], *OTHERS)):
        score = motioncue.score(tuned, motion(name), platform=PLATFORMS[size])
        fits = score.motions["fits"]
        use = np.nanmax(list(score.asked.values()))
        print(
            f"{name}{'' if name in DRIVES[size] else ' (not searched on)'}: score {score.score:.1f}, rates first "
            f"{score.rates_first.score:.1f}, fast tilt {100 * fits.fast_tilt:.0f} %, use {use:.2f}"
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
