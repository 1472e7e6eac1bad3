# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 9. Your own recording
#
# **What you will do.** Put the path of your recording into one cell, and see at which frequencies the car moves and
# the platform follows, where the rig is against where it was asked to be, and which of its bounds your drive meets.
#
# **What you will learn.** Which part of a drive a washout passes and which the platform cannot have; how to tell a rig
# that lags from one that does not reach; what to change first.
#
# **What you need.** `pip install ".[notebooks]"`, and a recording: `motioncue run --profile … --record drive.mcap`, or
# `motioncue demo --record drive.mcap`. Without one, the first cell drives a virtual car.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from scipy.signal import welch

import motioncue
from motioncue.engine.replay import profile_of
from motioncue.safety.supervisor import State
from motioncue.virtual.installation import ride
from motioncue.virtual.platform_twin import Drive, VirtualPlatform, delay_s

plt.rcParams["figure.dpi"] = 100
RECORDING = None  # such as "drive.mcap"

path = RECORDING or Path(tempfile.mkdtemp()) / "drive.mcap"
if RECORDING is None:
    ride(motioncue.load_profile("ccd-hexapod", "platform.lag_s=0.04"), "turns", record=path)
drive = motioncue.read(path)
profile = profile_of(drive.settings[0].profile)
display(drive)

# %% [markdown]
# ## At which frequencies
#
# The car's specific force and turning beside what the cue makes of them: forces by travel and by leaning, as a body
# feels them. Where both curves touch, all of it comes through; where the cue is below, it is washed out, scaled down,
# or more than the platform has.

# %%
RATE_HZ = profile.rate_hz
G = 9.80665
runs = np.flatnonzero(np.diff(drive.ticks["state"] == State.RUNNING, prepend=False, append=False)).reshape(-1, 2)
first, end = max(runs, key=np.ptp)  # the longest stretch without a fade
ticks = drive.ticks[first:end]
motion, cue = ticks["motion"], ticks["cue"]


def accelerations(displacement):
    """Return the acceleration of a displacement, smoothed over a fiftieth of a second."""
    width = max(1, round(RATE_HZ / 50))
    raw = np.gradient(np.gradient(displacement), edge_order=1) * RATE_HZ**2
    return np.convolve(raw, np.ones(width) / width, "same")


felt = {
    "surge [m/s²]": (
        motion["surge"] + G * np.sin(motion["pitch"]),
        accelerations(cue["surge_displacement"]) + G * np.sin(cue["pitch"]),
    ),
    "sway [m/s²]": (
        motion["sway"] - G * np.sin(motion["roll"]) * np.cos(motion["pitch"]),
        accelerations(cue["sway_displacement"]) - G * np.sin(cue["roll"]) * np.cos(cue["pitch"]),
    ),
    "heave [m/s²]": (motion["heave"], accelerations(cue["heave_displacement"])),
    "yaw rate [°/s]": (np.degrees(motion["yaw_rate"]), np.degrees(np.gradient(np.unwrap(cue["yaw"])) * RATE_HZ)),
}
figure, rows = plt.subplots(2, 2, figsize=(10, 5.5), sharex=True, layout="constrained")
passed = {}
for row, (name, (car, platform)) in zip(rows.flat, felt.items(), strict=True):
    segment = min(len(car), 1 << int(np.log2(20 * RATE_HZ)))
    frequency, of_car = welch(car, RATE_HZ, nperseg=segment, detrend=False)
    _, of_platform = welch(platform, RATE_HZ, nperseg=segment, detrend=False)
    passed[name] = np.sqrt(of_platform / np.maximum(of_car, 1e-12)), frequency
    row.loglog(frequency[1:], np.sqrt(of_car[1:]), color="C0", label="car")
    row.loglog(frequency[1:], np.sqrt(of_platform[1:]), color="C1", label="platform")
    row.set_title(name.split(" [")[0], fontsize="medium")
    row.set_ylabel(f"per √Hz\n[{name.split(' [')[1]}")
    row.set_xlim(0.05, 20.0)
    row.set_ylim(1e-4 * np.sqrt(of_car.max()), 2.0 * np.sqrt(of_car.max()))
    row.grid(True, which="both", alpha=0.2)
rows[0, 0].legend()
for row in rows[1]:
    row.set_xlabel("frequency [Hz]")

# %% [markdown]
# **See:** what is slow is presented by leaning (surge and sway below about half a hertz); the gap of surge between a
# third of a hertz and two is too quick to lean for and too long to travel for, and belongs to every small platform. Yaw
# and heave have no such help: what is slow in them is gone. Above two hertz this virtual car does nothing; what the
# platform adds there, where it stops leaning or runs out of travel, is a hundredth of the largest force.
#
# ## The rig against what was asked
#
# A platform that answers has its own positions in the recording (`ticks["feedback"]`). For one that does not, a virtual
# one follows here what was sent, with the lag and the bounds of the profile: then the difference is what the drives are
# expected to make of it.

# %%
built = motioncue.platform(profile)
asked = ticks["actuators"][:, : len(built.names)]
answered = bool(ticks["feedback"].any())
if answered:
    measured = ticks["feedback"][:, : len(built.names)]
else:
    measured = VirtualPlatform(profile.platform, RATE_HZ, Drive(lag_s=profile.platform.lag_s)).positions(asked)
time = (ticks["deadline"] - ticks["deadline"][0]) * 1e-9
lag_s = delay_s(asked, measured, 1.0 / RATE_HZ)
error = measured - asked
print("measured by the rig" if answered else "expected of the rig (it does not answer)")
print(f"behind what was asked by {1e3 * lag_s:.0f} ms; off by {1e3 * np.abs(error).max():.1f} mm at most")

figure, rows = plt.subplots(2, 1, figsize=(10, 4.5), sharex=True, layout="constrained")
for index, name in enumerate(built.names[:2]):
    rows[0].plot(time, 1e3 * asked[:, index], color=f"C{index}", linewidth=0.8, label=f"{name} asked")
    rows[0].plot(time, 1e3 * measured[:, index], color=f"C{index}", linewidth=2.5, alpha=0.35, label="measured")
rows[1].plot(time, 1e3 * error, linewidth=0.6)
rows[0].set_ylabel("position [mm]")
rows[1].set_ylabel("error [mm]")
rows[1].set_xlabel("time [s]")
rows[0].legend(ncols=4, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, 1.2))
for row in rows:
    row.grid(True, alpha=0.3)

# %% [markdown]
# **See:** an error that goes up and down with the speed is a lag: `motioncue identify` measures it, and
# `platform.compensate_lag` sends ahead of it. One that stays while nothing moves is a scale or an offset
# (`motioncue wire`); one that grows only at the peaks is a drive that does not reach its speed.
#
# ## Which bound is met
#
# The largest share of its range, speed and acceleration that the drive asked of each actuator. At 1 the platform, and
# not the washout, decides what is felt.

# %%
speeds = np.abs(np.diff(asked, axis=0)) * RATE_HZ
accels = np.abs(np.diff(asked, 2, axis=0)) * RATE_HZ**2
middle = np.array([0.5 * (bounds.low + bounds.high) for bounds in built.bounds])
half = np.array([0.5 * (bounds.high - bounds.low) for bounds in built.bounds])
shares = {
    "range": (np.abs(asked - middle) / half).max(axis=0),
    "speed": speeds.max(axis=0) / [bounds.speed for bounds in built.bounds],
    "acceleration": accels.max(axis=0) / [bounds.acceleration for bounds in built.bounds],
}
figure, row = plt.subplots(figsize=(9, 2.8), layout="constrained")
places = np.arange(len(built.names))
for offset, (name, share) in zip((-0.25, 0.0, 0.25), shares.items(), strict=True):
    row.bar(places + offset, share, width=0.23, label=name)
row.axhline(1.0, color="C3", linewidth=1.0)
row.set_xticks(places, built.names)
row.set_ylabel("share of what it has")
legend = row.legend(ncols=3, fontsize="small", loc="lower right")

# %% [markdown]
# **Try this:** the same cells with a recording of your longest drive. If the range is at 1 and the speed is not, raise
# the cutoff frequencies; if the speed is, lower the gain of what is quick; if neither, there is room for a larger gain.
# `motioncue compare` and notebooks 5 to 7 say what that is worth.
#
# ## Checked

# %%
assert len(ticks) > 10 * RATE_HZ
assert max(share.max() for share in shares.values()) < 1.0 + 1e-6  # the engine keeps the bounds
ratio, frequency = passed["sway [m/s²]"]
assert np.median(ratio[(frequency > 0.05) & (frequency < 0.3)]) > 0.2  # what is slow is leant for
assert np.median(passed["yaw rate [°/s]"][0][1:3]) < 0.3  # and cannot be turned for
if not answered:
    assert abs(lag_s - profile.platform.lag_s) < 0.01
