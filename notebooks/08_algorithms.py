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
# # 8. Algorithms
#
# **What you will do.** Lay every registered algorithm that gives a pose over the same step, the same sines and the same
# drives, on the same small platform.
#
# **What you will learn.** What each makes of a push that lasts; how much of each frequency is felt; which scores how
# much, and what it pays in fast tilt.
#
# **What you need.** `pip install ".[notebooks]"`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import motioncue
from motioncue.core.channels import GRAVITY
from motioncue.cueing.settings import ALGORITHMS
from motioncue.recording.recording import read_motion, sample_recording
from motioncue.scoring import frequency_response, step_response
from motioncue.virtual.installation import drive_motion

plt.rcParams["figure.dpi"] = 90
PLATFORM = "box-small"

# %% [markdown]
# ## The algorithms
#
# Each suited to the platform, ±0.15 m and ±12°: by its preset `auto`, or, as `predictive` is, by taking the platform's
# bounds for its own. `direct` is left out, because its cue is the car's motion and no pose.

# %%
profiles = {
    name: motioncue.load_profile(
        "ccd-dk-washout",
        {"platform.preset": PLATFORM},
        f"cueing.algorithm={name}",
        *(["cueing.preset=auto"] if kind.auto else []),
    )
    for name, kind in ALGORITHMS.items()
    if kind.poses
}
colors = {name: f"C{number + 1}" for number, name in enumerate(profiles)}
print(", ".join(profiles))

# %% [markdown]
# ## A push that lasts
#
# One meter per second squared forward, from now on. What is felt, and with what: travel first, then tilt.

# %%
figure, rows = plt.subplots(3, 1, figsize=(9, 7), sharex=True, layout="constrained")
felt = {}
for name, profile in profiles.items():
    for row, channel, scale in zip(
        rows, ("surge", "surge_displacement", "pitch"), (1.0, 100.0, 180.0 / np.pi), strict=True
    ):
        time, response = step_response(profile, "surge", channel, 8.0)
        row.plot(time, scale * response, color=colors[name], label=name)
        if channel == "surge":
            felt[name] = response
rows[0].axhline(1.0, color="0.6", linewidth=0.8)
for row, label in zip(rows, ("felt [m/s²]", "travel [cm]", "pitch [°]"), strict=True):
    row.set_ylabel(label)
    row.grid(True, alpha=0.3)
rows[0].legend(ncols=4, fontsize="small", loc="lower right")
rows[2].set_xlabel("time [s]")
figure.canvas.draw()

# %% [markdown]
# **See:** a dip after the first moment is where travel is over and the tilt not there yet. `optimal` has none on this
# platform: it begins with less, and travels for as long as the tilt needs. In all of them, what lasts is leaned.
#
# ## How much of each frequency
#
# Gain of surge felt for surge of the car, small amplitudes, measured on the running kernels.

# %%
omega = np.geomspace(0.1, 15.8, 8)
figure, row = plt.subplots(figsize=(9, 3.6), layout="constrained")
gains = {}
for name, profile in profiles.items():
    gains[name] = np.abs(frequency_response(profile, "surge", "surge", omega, settle_s=120.0, periods=2))
    row.semilogx(omega, gains[name], "o-", color=colors[name], label=name)
row.set_xlabel("frequency [rad/s]")
row.set_ylabel("gain of surge")
row.set_ylim(0.0, 1.2)
row.grid(True, alpha=0.3)
row.legend(fontsize="small")
figure.canvas.draw()

# %% [markdown]
# ## The score
#
# 0 is a platform at rest, 100 the best motion that it could have made of the same drive, known in advance. `fits` is
# the cue made smaller until it fits, `stopped` what the platform does; fast tilt is the share of the time in which it
# leans faster than 3°/s against the car. `known` is `predictive` where the whole drive is known in advance, as of a
# film or an autopilot. `python docs/compare_algorithms.py` does this for more platforms and drives.

# %%
DRIVES = {"motorway": read_motion(sample_recording()), "turns": drive_motion("turns")}
scores = {
    (name, drive): motioncue.score(profile, motion)
    for name, profile in profiles.items()
    for drive, motion in DRIVES.items()
}
print(f"{'algorithm':<12}{'drive':<10}{'fits':>6}{'stopped':>9}{'rates first':>13}{'fast tilt':>11}")
for drive, motion in DRIVES.items():
    scores["known", drive] = motioncue.score(profiles["predictive"], motion, preview=True)
for (name, drive), found in scores.items():
    made = found.motions["stopped"]
    print(
        f"{name:<12}{drive:<10}{found.score:6.0f}{found.stopped:9.0f}"
        f"{found.rates_first.stopped:13.0f}{100 * made.fast_tilt:10.0f}%"
    )

# %%
figure, row = plt.subplots(figsize=(9, 3.2), layout="constrained")
for place, drive in enumerate(DRIVES):
    for number, name in enumerate(profiles):
        at = place + 0.2 * (number - 0.5 * (len(profiles) - 1))
        row.bar(at, scores[name, drive].stopped, 0.18, color=colors[name], label=name if place == 0 else None)
row.set_xticks(range(len(DRIVES)), list(DRIVES))
row.set_ylabel("score, stopped")
row.set_ylim(0, 100)
row.legend(ncols=4, fontsize="small")
figure.canvas.draw()

# %% [markdown]
# **See:** rankings hold for this platform, these drives and this weighting: on the motorway the washouts are close and
# `predictive` is ahead, on the bends `optimal` and `predictive` are. All of them pay for it with tilt. To know the
# drive is worth more than all else.
#
# **Try this:** another `PLATFORM`, your recording in `DRIVES`, or `pitch.weight=2` for `optimal`.
#
# ## Checked

# %%
# What is felt begins at once, and no cue gives more of a small lasting push than the car.
for name, response in felt.items():
    assert response[5] > 0.1, name
    assert response.max() < 1.3, name
    assert abs(response[-1]) < GRAVITY * np.sin(np.radians(12.0)), name

# Of the real drive, predictive has more than any washout, and nearly all of it if it is known.
assert scores["predictive", "motorway"].score > max(
    scores[name, "motorway"].score for name in profiles if name != "predictive"
)
assert scores["known", "motorway"].score > 90.0

# What lasts is leaned: more than half of the lowest frequency is felt with optimal.
assert gains["optimal"][0] > 0.5

# Every algorithm is better than standing still; on the bends optimal is ahead of classical.
assert all(found.stopped > 0.0 for found in scores.values())
assert scores["optimal", "turns"].stopped > scores["classical", "turns"].stopped
