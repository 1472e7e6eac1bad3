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
# # 3. Look at a drive
#
# **What you will do.** Record a drive, read it back as arrays, lay the platform over the car, find an incident in it
# and look at the very packages that caused it, ask what other settings would have made of it, and export it.
#
# **What you will learn.** What a recording holds; how to get from "there was a jolt at about a minute" to the reason;
# that a recording can be replayed to the bit, so that a question about the past has an answer.
#
# **What you need.** `pip install ".[notebooks]"`. The car is a virtual one and so is the clock: the drive takes a
# second.

# %%
import tempfile
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import motioncue
from motioncue.engine.replay import first_difference, repeat
from motioncue.recording.drive import export
from motioncue.scoring.changes import changes
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.virtual.installation import ride

plt.rcParams["figure.dpi"] = 100
PROFILE = "ccd-dk-classical"
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## Record
#
# With a simulator it is `motioncue run --profile ccd-dk-classical --record drive.mcap`; without one,
# `motioncue demo --drive trouble --record drive.mcap` takes a minute. `ride` does the same on a clock that takes no
# time, so that this notebook shows the same numbers everywhere.

# %%
ride(PROFILE, "trouble", record=folder / "drive.mcap")
print(f"{(folder / 'drive.mcap').stat().st_size / 1e6:.0f} MB")

# %% [markdown]
# ## Read
#
# One call gives everything as arrays: each package with the time at which it came, the motion that each frame gave,
# every tick with the motion it used and the cue it sent, what happened, and the settings in force.

# %%
drive = motioncue.read(folder / "drive.mcap")
print(
    f"{len(drive.packages)} packages, {len(drive.motion)} frames, {len(drive.ticks)} ticks, {len(drive.events)} events"
)
print("of a frame:", ", ".join(drive.motion.dtype.names))
print("of a tick: ", ", ".join(drive.ticks.dtype.names))
print("settings:  ", drive.profile["source"]["system"], drive.profile["cueing"]["algorithm"])

# %% [markdown]
# **Try this:** `pandas.DataFrame(drive.motion)`. Or open the file in PlotJuggler or Foxglove: neither needs a plug-in.

# %% [markdown]
# ## Car and platform
#
# The car is in `ticks["motion"]`, the platform in `ticks["cue"]`, both at the same times.

# %%
began = drive.ticks["deadline"][0]
time = (drive.ticks["deadline"] - began) * 1e-9
motion, cue = drive.ticks["motion"], drive.ticks["cue"]
parks = [event for event in drive.events if event.after == "PARKING"]

figure, rows = plt.subplots(4, 1, figsize=(11, 7), sharex=True, layout="constrained")
for row, (name, unit, scale) in zip(
    rows,
    (("surge", "m/s²", 1.0), ("sway", "m/s²", 1.0), ("heave", "m/s²", 1.0), ("pitch", "°", np.degrees(1.0))),
    strict=True,
):
    row.plot(time, motion[name] * scale, color="0.6", linewidth=0.8, label="car")
    row.plot(time, cue[name] * scale, color="C0", linewidth=1.2, label="platform")
    for event in parks:
        row.axvline((event.time - began) * 1e-9, color="C1", linewidth=0.8, alpha=0.7)
    row.set_ylabel(f"{name} [{unit}]")
    row.grid(True, axis="y", alpha=0.3)
rows[0].legend(loc="lower right", fontsize="small", ncols=2)
rows[0].set_title("lines: the platform leaves for neutral")
rows[3].set_xlabel("time [s]")
figure.canvas.draw()

# %% [markdown]
# **See:** onsets come through, what lasts becomes a pitch that the car does not have (the platform leans back while
# the car accelerates at 2 to 12 s), and at each line everything goes to zero and comes back.

# %% [markdown]
# ## Find the incident
#
# Somebody on the platform says: "near the end it went away under me". Why does it leave, and when? A transition
# carries its reason, what was measured and what was allowed.

# %%
for event in parks:
    at = (event.time - began) * 1e-9
    print(f"{at:6.2f} s  {event.reason:24} measured {event.value:8.4g}, allowed {event.limit:.4g}")

# %% [markdown]
# **See:** the one near the end is a *teleport*: between two frames the car's place changed by 47 m, where its speed
# explains less than 2 m. The line after it, at 70 s, is the end of the drive.
#
# What did the simulator say? The packages are in the recording as they came. The engine waits for one more frame, to
# see whether the first was a spike; so the pair is to be found among the last few before the transition.

# %%
incident = next(event for event in parks if event.reason == "teleport" and event.time > began + 50_000_000_000)
packages = [
    package
    for package in drive.packages
    if len(package.data) == FRAME.size and 0 <= incident.time - package.time < 200_000_000
]
fields = [FRAME.decode(package.data) for package in packages]
steps = np.linalg.norm(np.diff([each["position"] for each in fields], axis=0), axis=1)
worst = int(np.argmax(steps))
for when, each in (("before", fields[worst]), ("after", fields[worst + 1])):
    place = ", ".join(f"{value:.1f}" for value in each["position"])
    print(f"{when:7} position ({place}) m, speed {np.linalg.norm(each['velocity']):.1f} m/s")
jump, apart_ms = steps[worst], (packages[worst + 1].time - packages[worst].time) * 1e-6
print(f"a jump of {jump:.1f} m in {apart_ms:.1f} ms")

# %%
since = time - (incident.time - began) * 1e-9
shown = (since > -1.0) & (since < 3.0)
figure, sides = plt.subplots(1, 2, figsize=(11, 2.8), layout="constrained")
sides[0].plot(since[shown], motion["surge"][shown], color="0.6", label="car")
sides[0].plot(since[shown], cue["surge"][shown], color="C0", label="platform")
sides[0].set_ylabel("surge [m/s²]")
sides[0].legend(fontsize="small")
sides[1].plot(since[shown], drive.ticks["weight"][shown], color="C2")
sides[1].set_ylabel("weight of the fade")
for side in sides:
    side.set_xlabel("seconds since the incident")
    side.grid(True, alpha=0.3)
figure.canvas.draw()

# %% [markdown]
# **See:** a respawn. The last good motion is held while the platform goes to neutral within a second; then it engages
# with the car as it is now, from rest.
#
# **Try this:** find the reason of the line at 50 s, and the two packages that show it.

# %% [markdown]
# ## What would it have been?
#
# `repeat` takes the recorded packages through the whole engine once more, each tick reading what it read then. With
# the recording's own settings it gives the same bits; with others, what would have been. On a terminal:
# `motioncue replay drive.mcap --verify`, and `--set cueing.surge.gain=0.3 --record quieter.mcap`.

# %%
print("the same settings:", first_difference(drive.ticks, repeat(drive).ticks) or "every bit is the same")
quieter = repeat(drive, motioncue.load_profile(PROFILE, "cueing.surge.gain=0.3"))
found = changes(drive, quieter)
print("\n".join(found.lines()[:9]))

figure, row = plt.subplots(figsize=(11, 2.6), layout="constrained")
row.plot(time, cue["surge_displacement"], color="C0", label="as it was")
row.plot(time, quieter.ticks["cue"]["surge_displacement"], color="C3", label="surge.gain = 0.3")
row.set_xlabel("time [s]")
row.set_ylabel("travel [m]")
row.legend(fontsize="small")
row.grid(True, alpha=0.3)
figure.canvas.draw()

# %% [markdown]
# **See:** half the gain (the profile has 0.6) takes half the travel, and the table says which channels changed, from
# which tick on, and by how much at most.

# %% [markdown]
# ## Export
#
# For a spreadsheet as CSV; `.parquet` and `.mf4` (what automotive labs open) need `pip install ".[export]"`.

# %%
rows_written = export(drive, folder / "drive.csv").rows
export(drive, folder / "events.csv", "events")
with (folder / "drive.csv").open(encoding="utf-8") as file:
    header = file.readline().split(",")
print(f"{rows_written} rows; the first of {len(header)} columns:", ", ".join(header[:12]))

# %% [markdown]
# ## Checked
#
# Everything said above, as the computer sees it.

# %%
# The recording is whole, and says what the drive's table says.
assert drive.unreadable == ()
assert (np.diff(drive.ticks["index"]) == 1).all()
assert Counter(event.reason for event in parks)["teleport"] == 2

# The incident: a jump that is what the transition says, far from what was allowed.
assert abs(jump - incident.value) < 1.0
assert incident.value > 10 * incident.limit
assert (drive.ticks["weight"][(since > 1.0) & (since < 1.02)] < 1e-3).all()

# While the car accelerates the platform leans back.
launch = (time > 9.0) & (time < 12.0)
assert cue["pitch"][launch].mean() > motion["pitch"][launch].mean() + np.radians(1.0)

# A replay is the drive; with half the gain the largest travel is half.
assert not changes(drive, repeat(drive)).found
assert bool(found.channels)
ratio = np.ptp(quieter.ticks["cue"]["surge_displacement"]) / np.ptp(cue["surge_displacement"])
assert 0.4 < ratio < 0.6

# The export has a row a tick, and units.
assert rows_written == len(drive.ticks)
assert header[0] == "t [s]"
