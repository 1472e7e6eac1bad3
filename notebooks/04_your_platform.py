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
# # 4. Your platform
#
# **What you will do.** Describe a hexapod, see what it can do, let a car drive it, and lay what a driver on it feels
# over what one in the car feels: with drives that follow at once, with drives that lag, and with the lag compensated.
#
# **What you will learn.** How little of each channel is left when all of them are wanted; what a washout asks of a
# platform that it does not know, and what would fit; where the delay of a platform comes from.
#
# **What you need.** `pip install ".[notebooks]"`. Car, clock and platform are made of software.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import motioncue
from motioncue.core.channels import GRAVITY
from motioncue.engine.fitting import fit
from motioncue.scoring.reports import ranges_figure, side_figure, workspace_figure
from motioncue.virtual.installation import ride
from motioncue.virtual.platform_twin import Drive, delay_s, felt

plt.rcParams["figure.dpi"] = 100

# %% [markdown]
# ## Describe it
#
# Six legs between two rings of joints. Measure: the radius of each ring, the distance between the joints of a pair, the
# height in between at neutral, and of the legs the shortest and longest length, speed and acceleration. (A hexapod with
# cranks, posts under a frame, a sled or a belt are described alike: `docs/platforms.md`.)

# %%
MINE = {
    "kind": "hexapod",
    "platform": {"radius_m": 0.7, "pair_m": 0.25},
    "base": {"radius_m": 1.15, "pair_m": 0.25},
    "height_m": 0.9055,
    "leg": {"min_m": 1.045, "max_m": 1.375, "speed_m_s": 0.6, "acceleration_m_s2": 8.0},
}
platform = motioncue.platform(MINE)
print(
    "at neutral:  ", ", ".join(f"{name} {at:.4f} m" for name, at in zip(platform.names, platform.neutral, strict=True))
)
legs = platform.inverse([[0.1, -0.05, 0.05, *np.radians([3, -4, 5])]])
print("at a pose:   ", " ".join(f"{leg:.4f}" for leg in legs[0]), "m")
print("and back:    ", platform.forward(legs)[0].round(6))
figure = side_figure(platform)

# %% [markdown]
# A description that cannot be right is refused with the reason: legs that cannot reach neutral, mirrored joints.

# %%
try:
    motioncue.platform({**MINE, "height_m": 0.6})
except motioncue.ConfigError as error:
    print(error)

# %% [markdown]
# ## What it can do
#
# **Alone** is how far it goes along one channel while the others are at neutral; **together** is the box in which every
# combination of channels is in reach.

# %%
workspace = platform.workspace()
share = 100 * workspace.share
print(f"together: {share:.0f} % of each range; {workspace.volume_m3 * 1e3:.0f} liters with a level frame")
figure = ranges_figure(platform, workspace)

# %%
figure = workspace_figure(platform)

# %% [markdown]
# **See:** six legs share what they have. At the end of surge there is no heave left, and a frame that pitches does not
# surge as far forwards as backwards.
#
# **Try this:** make the legs 5 cm longer (`max_m`, and `height_m` by as much as keeps neutral in the middle).

# %% [markdown]
# ## What a washout would ask of it
#
# Now the profile: a simulator, a washout, the platform, and the packet that its controller takes. The washout is that
# of a simulator three times the size.

# %%
FIELDS = ", ".join(f'{{ offset = {4 * n}, type = "f4", channel = "leg_{n + 1}" }}' for n in range(6))
TEXT = f"""
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]

[cueing]
algorithm = "classical"
preset = "simona"

[platform]
kind = "hexapod"
platform = {{ radius_m = 0.7, pair_m = 0.25 }}
base = {{ radius_m = 1.15, pair_m = 0.25 }}
height_m = 0.9055
leg = {{ min_m = 1.045, max_m = 1.375, speed_m_s = 0.6, acceleration_m_s2 = 8.0 }}

[output]
motion = "udp://127.0.0.1:9999"
packet = {{ size = 24, fields = [{FIELDS}] }}
"""
path = Path(tempfile.mkdtemp()) / "rig.toml"
path.write_text(TEXT, encoding="utf-8")
asked = fit(motioncue.load_profile(path))
print("\n".join(asked.lines()))

# %% [markdown]
# `motioncue run` says the same when it starts. Every advice in that line has been tried. `preset = "auto"` does the
# trying by itself, and raises cutoff frequencies before it lowers gains:

# %%
profile = motioncue.load_profile(path, "cueing.preset=auto")
print("\n".join(fit(profile).lines()))
for key in ("gain", "cutoff_hz"):
    print(
        key,
        ", ".join(f"{axis} {getattr(getattr(profile.cueing, axis), key):.2g}" for axis in ("surge", "sway", "heave")),
    )

# %% [markdown]
# ## Drive it
#
# A virtual car drives for a minute through the whole engine; what the engine sends moves the virtual platform. Its
# drives have a lag of 50 ms here. What a driver feels is the specific force: acceleration and gravity, less what is
# felt at rest.

# %%
drive = ride(profile, "tour")
time, car, cue = drive.time, drive.ticks["motion"], drive.ticks["cue"]
dt = float(np.median(np.diff(time)))
SLOW = Drive(lag_s=0.05, dead_time_s=0.0)
made = felt(profile, cue, drive=SLOW)
in_car = {
    "surge": car["surge"] + GRAVITY * np.sin(car["pitch"]),
    "sway": car["sway"] - GRAVITY * np.cos(car["pitch"]) * np.sin(car["roll"]),
}

figure, rows = plt.subplots(4, 1, figsize=(11, 9), sharex=True, layout="constrained")
for row, (place, name) in zip(rows, enumerate(in_car), strict=False):
    row.plot(time, in_car[name], color="0.6", linewidth=0.8, label="car")
    row.plot(time, made.specific_force[:, place], color="C0", linewidth=1.2, label="platform")
    row.set_ylabel(f"{name} felt [m/s²]")
rows[2].plot(time, 100 * made.pose[:, 0], color="C2", label="surge [cm]")
rows[2].plot(time, np.degrees(made.pose[:, 4]), color="C3", label="pitch [°]")
rows[2].set_ylabel("the frame")
low, high, *_ = np.array(platform.bounds).T
rows[3].plot(time, 100 * (made.actuators - low) / (high - low), linewidth=0.8)
rows[3].set_ylabel("legs [% of range]")
rows[3].set_ylim(0, 100)
rows[3].set_xlabel("time [s]")
for row in rows:
    row.grid(True, alpha=0.3)
for row in rows[:3]:
    row.legend(loc="lower right", fontsize="small", ncols=2)
figure.canvas.draw()

# %% [markdown]
# **See:** a small platform gives a small share of what the car gives, with the right sign and at the right moment. What
# lasts, it shows by leaning (pitch); what begins, by surging (which goes back at once). No leg comes to its end.
#
# **Try this:** `preset = "simona"` instead of `auto`, and look at the legs.

# %% [markdown]
# ## Where the delay comes from
#
# Drives lag, and the frame is late by it. If `[platform]` states the lag, what is sent leads by it, within the bounds
# of the legs.

# %%
leading = motioncue.load_profile(path, "cueing.preset=auto", "platform.lag_s=0.05")
poses = np.stack(
    [cue[channel] for channel in ("surge_displacement", "sway_displacement", "heave_displacement")], axis=1
)
angles = np.stack([cue[channel] for channel in ("roll", "pitch", "yaw")], axis=1)
wanted = np.concatenate((poses, angles), axis=1)
cases = {
    "drives without lag": felt(profile, cue, drive=Drive(lag_s=0.0, dead_time_s=0.0)),
    "drives with a lag of 50 ms": made,
    "and lag_s = 0.05": felt(leading, cue, drive=SLOW),
}
running = slice(round(3.0 / dt), -round(3.0 / dt))
delays = {name: delay_s(wanted[running], case.pose[running], dt) for name, case in cases.items()}
for name, delay in delays.items():
    print(f"{name:28} {1e3 * delay:5.1f} ms behind the cue")

shown = (time > 13.5) & (time < 17.5)
figure, row = plt.subplots(figsize=(11, 4), layout="constrained")
row.plot(time[shown], 100 * wanted[shown, 0], color="0.6", linewidth=4, label="wanted")
for name, case in cases.items():
    row.plot(time[shown], 100 * case.pose[shown, 0], linewidth=1.4, label=name)
row.set_xlabel("time [s]")
row.set_ylabel("surge of the frame [cm]")
row.legend(fontsize="small")
row.grid(True, alpha=0.3)
figure.canvas.draw()

# %% [markdown]
# **See:** what remains is a sixteenth of the lag, and half of the 3 ms for which a position is held. State no more than
# you have measured: a lead that is too long overshoots.
#
# **Try this:** drives with `friction=0.01` or a dead time. `motioncue demo --profile rig.toml` does all this live.

# %% [markdown]
# ## Checked
#
# Everything said above, as the computer sees it.

# %%
# Forward is the inverse of inverse, and together is less than alone.
np.testing.assert_allclose(platform.forward(legs)[0, :3], [0.1, -0.05, 0.05], atol=1e-9)
assert workspace.share < 0.4

# The washout of a larger simulator does not fit; the advice and the preset do.
assert asked.beyond > 0.3
tried = [f"{key}={value}" for key, value in asked.gains.items()]
assert fit(motioncue.load_profile(path, *tried)).beyond == 0.0
assert fit(profile).beyond == 0.0

# No leg is at its end, and what is felt has the sign of the car's: it leans and surges the same way.
assert (made.actuators > low + 1e-4).all()
assert (made.actuators < high - 1e-4).all()
for place, name in enumerate(in_car):
    assert np.corrcoef(in_car[name], made.specific_force[:, place])[0, 1] > 0.4

# The delay of the drives, and what is left of it.
assert abs(delays["drives without lag"] - dt) < 0.1 * dt  # a command is where a drive is at the next tick
assert 0.04 < delays["drives with a lag of 50 ms"] < 0.06
assert delays["and lag_s = 0.05"] < 0.010
