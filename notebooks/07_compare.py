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
# # 7. Compare two settings
#
# **What you will do.** Lay two profiles over the same drives on the same platform: what is felt, how far the platform
# travels, where each is wrong, and which is better by how much.
#
# **What you will learn.** To read a score with its parts; that the better of two settings can depend on the drive, and
# on how turning weighs against forces.
#
# **What you need.** `pip install ".[notebooks,score]"`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import motioncue
from motioncue.cueing.senses import SENSES
from motioncue.recording.recording import read_motion, sample_recording
from motioncue.scoring.score import trace
from motioncue.virtual.installation import drive_motion

plt.rcParams["figure.dpi"] = 100

# %% [markdown]
# ## Two settings, two drives, one platform
#
# Put your own in place of these: files of profiles, recordings, a platform of `motioncue platforms` or your table.

# %%
SETTINGS = {
    "simona": motioncue.load_profile("ccd-dk-classical", "cueing.preset=simona"),
    "utias": motioncue.load_profile("ccd-dk-classical", "cueing.preset=utias"),
}
DRIVES = {"motorway": read_motion(sample_recording()), "tour": drive_motion("tour")}
PLATFORM = "box-small"
COLORS = {"simona": "C1", "utias": "C2"}
results = {
    (name, drive): trace(profile, motion, platform=PLATFORM)
    for name, profile in SETTINGS.items()
    for drive, motion in DRIVES.items()
}

# %% [markdown]
# ## The numbers
#
# `fits`: the cue made smaller until it fits the platform. `stopped`: what the platform makes of it as it is. 0 is a
# platform at rest, 100 the best motion that it could have made.

# %%
print("setting  drive       fits  stopped  rates first  travel  fast tilt  against")
for (name, drive), result in results.items():
    score, made = result.score, result.score.motions["stopped"]
    travel = max(result.score.asked[f"{axis}_displacement"][0] for axis in ("surge", "sway", "heave"))
    print(
        f"{name:<9}{drive:<10}{score.score:6.0f}{score.stopped:9.0f}{score.rates_first.stopped:13.0f}{travel:8.2f}"
        f"{100 * made.fast_tilt:10.0f}%{100 * max(made.opposite.values()):8.0f}%"
    )

# %% [markdown]
# **See:** *travel* is what the setting asks for; above 1 the platform has less. *Fast tilt* is the share of the time in
# which the platform leans faster than 3°/s against the car; *against* is how long the worst sense is told the opposite.

# %% [markdown]
# ## What a driver feels
#
# The same sense of both settings over that of the car.

# %%
figure, rows = plt.subplots(2, 1, figsize=(9, 5), layout="constrained")
for row, drive in zip(rows, DRIVES, strict=True):
    felt = results["simona", drive].felt["car"][:, 0]
    slow = np.linspace(0.0, results["simona", drive].time[-1], len(felt))
    row.plot(slow, felt, color="C0", label="car")
    for name in SETTINGS:
        row.plot(slow, results[name, drive].felt["stopped"][:, 0], color=COLORS[name], label=name)
    row.set_title(drive, fontsize="medium")
    row.set_ylabel("surge felt\n[thresholds]")
    row.set_xlabel("time [s]")
    row.grid(True, alpha=0.3)
    row.legend(loc="upper right", ncols=3, fontsize="small")

# %% [markdown]
# ## What the platform does for it

# %%
figure, rows = plt.subplots(2, 1, figsize=(9, 5), layout="constrained")
for row, drive in zip(rows, DRIVES, strict=True):
    for name in SETTINGS:
        result = results[name, drive]
        row.plot(result.time, result.poses["stopped"][:, 0], color=COLORS[name], label=name)
    row.set_title(drive, fontsize="medium")
    row.set_ylabel("surge travel\n[m]")
    row.set_xlabel("time [s]")
    row.grid(True, alpha=0.3)
    row.legend(loc="upper right", ncols=2, fontsize="small")

# %% [markdown]
# ## Where each is wrong
#
# The error of each sense, on the platform and on one that stands still: a bar as long as the gray one is a sense for
# which nothing was gained.

# %%
figure, sides = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
places = np.arange(len(SENSES))
for side, drive in zip(sides, DRIVES, strict=True):
    side.bar(places, results["simona", drive].score.still.values(), width=0.8, color="0.85", label="at rest")
    for offset, name in ((-0.2, "simona"), (0.2, "utias")):
        errors = results[name, drive].score.motions["stopped"].error.values()
        side.bar(places + offset, errors, width=0.35, color=COLORS[name], label=name)
    side.set_xticks(places, [sense.replace("_", "\n") for sense in SENSES], fontsize="small")
    side.set_title(drive, fontsize="medium")
sides[0].set_ylabel("error [thresholds]")
legend = sides[0].legend(fontsize="small")

# %% [markdown]
# **Try this:** put a profile with your platform and `preset = "auto"` in place of one of the two, then your drives.
#
# ## Checked

# %%
for drive in DRIVES:
    one, other = (results[name, drive].score for name in SETTINGS)
    assert one.asked["surge_displacement"][0] > other.asked["surge_displacement"][0]
    assert other.stopped > one.stopped
assert all(0.0 <= result.score.motions["stopped"].fast_tilt <= 1.0 for result in results.values())
