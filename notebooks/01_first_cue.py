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
# # 1. Your first cue
#
# **What you will do.** Take a real motorway drive, in the bytes that City Car Driving would write to its pipe, and send
# it through the engine twice: straight through (`ccd-dk`), and through the classical washout (`ccd-dk-classical`).
#
# **What you will learn.** What *motion* and *cue* are and how their signs go; how the engine fades in and out; what a
# washout keeps of a drive, what it replaces by tilt, and how much room it needs for that.
#
# **What you need.** `pip install ".[notebooks]"`. No simulator, no platform: the drive comes with the package,
# and the clock is a simulated one, so a minute of driving takes a fraction of a second.

# %%
import matplotlib.pyplot as plt
import numpy as np
import quaternion

import motioncue
from motioncue.engine.replay import replay
from motioncue.recording.recording import read_motion, read_packages, sample_recording
from motioncue.scoring import frequency_response, reports, transfer_function
from motioncue.sources.city_car_driving.packets import FRAME

plt.rcParams["figure.dpi"] = 100

# %% [markdown]
# ## From the world's axes to the car's
#
# The simulator sends where the car points as a quaternion $q$ (car axes to world axes), and its acceleration
# $\mathbf a$ in *world* axes. What the driver feels is the same vector in the *car's* axes:
#
# $$\mathbf a_{car} = q^{*}\, \mathbf a\; q$$
#
# In this recording the car's own axes are x to the left, y up, z forward, so surge (forward) is $z$, sway (to the
# right) is $-x$ and heave (up) is $y$. The engine does this in a kernel; here it is once more with numpy-quaternion.

# %%
path = sample_recording()
motion = read_motion(path)

frames = np.frombuffer(b"".join(package for package in read_packages(path) if len(package) == FRAME.size), FRAME.dtype)
q = quaternion.as_quat_array(np.roll(frames["orientation"].astype(float), 1, axis=1))  # the wire says x, y, z, w
q = np.normalized(q)
a = quaternion.from_vector_part(frames["acceleration"].astype(float))
in_car = quaternion.as_vector_part(q.conj() * a * q)
by_hand = np.column_stack([in_car[:, 2], -in_car[:, 0], in_car[:, 1]])
by_engine = np.column_stack([motion["surge"], motion["sway"], motion["heave"]])
difference = np.abs(by_hand - by_engine).max()
print(f"{len(motion)} frames, {motion['frame_time'][-1]:.1f} s; largest difference {difference:.1e} m/s^2")

# %% [markdown]
# ## Straight through
#
# DK does its own motion layers, so `ccd-dk` only changes axes: what DK gets is what the car does,
#
# $$\text{cue} = w \cdot \text{motion}$$
#
# with a weight $w$ that is 1 while frames come. `replay` puts the bytes through the whole engine (framing, decoding,
# body frame, emitter at 333.33 Hz) and returns every tick: the motion it read and the cue it sent.

# %%
direct = replay("ccd-dk", path)
time = (direct["deadline"] - direct["deadline"][0]) * 1e-9

figure = reports.plot_traces(time, direct["motion"], direct["cue"], ["surge", "sway", "heave", "pitch"], title="ccd-dk")

# %% [markdown]
# **See:** car and cue are the same curve but for the two ends; the car is pushed back and forth by a few m/s², the
# road shakes it up and down, and it points a few degrees downhill for most of the drive.
#
# **Try this:** load the profile with `motioncue.load_profile("ccd-dk", "source.head_m=[-0.5, 0.4, 1.0]")`, where the
# numbers say where the driver's head is from the car's reference point (forward, right, up [m]), and replay it: how
# much rougher is the ride half a metre back and a metre up?

# %% [markdown]
# ## Fading in and out
#
# A platform must not jump when a simulator appears or dies. The weight goes from 0 to 1 in `fade_s` (1 s) along
#
# $$w(x) = x^3\,(10 - 15x + 6x^2)$$
#
# whose first and second derivatives are zero at both ends. When no frame comes for `hold_s` (0.1 s) it goes back.

# %%
x = np.linspace(0.0, 1.0, 200)
figure, sides = plt.subplots(1, 2, figsize=(9, 2.4), sharey=True, layout="constrained")
sides[0].plot(x, x**3 * (10 - 15 * x + 6 * x**2), "k--", linewidth=1, label="w(x)")
last_frame = motion["time"][-1] * 1e-9
for side, since, name in ((sides[0], time, "first"), (sides[1], time - last_frame, "last")):
    shown = (since > -0.2) & (since < 1.4)
    side.plot(since[shown], direct["weight"][shown], linewidth=3, alpha=0.5, label="sent")
    side.set_xlabel(f"seconds since the {name} frame")
    side.grid(True, alpha=0.3)
sides[0].set_ylabel("weight")
legend = sides[0].legend()

# %% [markdown]
# **See:** full motion one second after the first frame; after the last one nothing changes for 0.1 s, then the cue is
# back at neutral a second later, and packets go on being sent throughout.
#
# **Try this:** replay with `"supervisor.fade_s=0.3"` and look at the surge of the first half second.

# %% [markdown]
# ## What a washout does
#
# A platform with a metre of room cannot accelerate for a minute. The classical washout lets the *onset* of every push
# through (a high-pass filter), and presents what is *sustained* by leaning, so that gravity does the pushing (a
# low-pass filter, slow enough not to be noticed as a rotation). What the driver feels in one direction is then
#
# $$T(j\omega) = K\,\big[\mathrm{HP}(j\omega) + \mathrm{LP}(j\omega)\big],\qquad
# \mathrm{HP} = \frac{s^2}{s^2 + 2\zeta\omega_h s + \omega_h^2},\quad
# \mathrm{LP} = \frac{\omega_l^2}{s^2 + 2\zeta\omega_l s + \omega_l^2}$$
#
# `frequency_response` measures it on the kernel that runs, one sine at a time; `transfer_function` is the formula.

# %%
omega = 10.0 ** (np.arange(12) / 5.0 - 1.0)  # the twelve frequencies of the Objective Motion Cueing Test [rad/s]
fine = np.geomspace(0.1, 16.0, 200)
axes = ("surge", "sway", "heave")
measured = {axis: frequency_response("ccd-dk-classical", axis, axis, omega) for axis in axes}
theory = {axis: transfer_function("ccd-dk-classical", axis, axis, fine) for axis in axes}
figure = reports.plot_response(
    omega, measured, theory_omega=fine, theory=theory, title="felt over driven, ccd-dk-classical"
)

# %% [markdown]
# **See:** slow and fast pushes forward and sideways come through at 0.6 of their size, with a dip between onset and
# tilt; up and down there is nothing to lean on, so slow heave is lost. The points (measured) lie on the lines
# (formula).
#
# **Try this:** use `motioncue.load_profile("ccd-dk-classical", "cueing.preset=utias")` in place of the name: where is
# the dip now?

# %% [markdown]
# ## The drive through the washout

# %%
washout = replay("ccd-dk-classical", path)
channels = ["surge", "sway", "pitch", "surge_displacement", "sway_displacement", "heave_displacement"]
figure = reports.plot_traces(time, washout["motion"], washout["cue"], channels, title="ccd-dk-classical", felt=True)

# %%
cue = washout["cue"]
driven_m = float(np.sum(motion["speed"] * motion["frame_time"][0]))
room_m = {axis: float(np.ptp(cue[f"{axis}_displacement"])) for axis in axes}
whole = washout["weight"] == 1.0
lean_car, lean_platform = (np.degrees(washout[record]["pitch"][whole].mean()) for record in ("motion", "cue"))
print(f"the car drives {driven_m:.0f} m; the platform needs", ", ".join(f"{room_m[a]:.2f} m of {a}" for a in axes))
print(f"mean pitch: car {lean_car:.2f} deg, platform {lean_platform:.2f} deg")

# %% [markdown]
# The blue curves of surge and sway are the specific force that is felt in the car, because that is what the cue
# presents: its acceleration, and gravity where it leans.
#
# **See:** the sharp edges of surge and sway are still there at 0.6 of their size, the platform's travel swings back to
# the middle after each of them, and the platform leans forward where the car rolls downhill: a slope is a sustained
# push, and it is presented as one.
#
# **Try this:** 2.5 m of surge is more than most platforms have. Set `"cueing.surge.cutoff_hz=0.25"`: how much room does
# it take now, and what is missing from surge? The preset `utias` returns to the middle by itself (third order):
# compare.

# %% [markdown]
# ## The same offline
#
# `motioncue.cue` runs the same kernels over an array of motion, without engine, clock or fade. For the same ticks it
# gives the same bits, so whatever you tune offline is what the platform will get.

# %%
offline = motioncue.cue("ccd-dk-classical", washout["motion"])
channels = [name for name in offline.dtype.names if name != "time"]  # offline keeps the time of the motion
identical = all(np.array_equal(offline[name][whole], cue[name][whole], equal_nan=True) for name in channels)
print("identical" if identical else "different")

# %% [markdown]
# **Try this:** plot `np.diff(offline["pitch"]) * 333.33` in degrees: how often is the tilt at its limit of 3 °/s, and
# what else is in there?

# %% [markdown]
# ## Checked
#
# Everything said above, as the computer sees it.

# %%
# The body frame is that of numpy-quaternion.
np.testing.assert_allclose(by_engine, by_hand, rtol=0, atol=1e-12)

# Straight through is the motion times the weight; whole after a second, neutral at the end, no tick missing.
for name in ("surge", "sway", "heave", "roll", "pitch", "yaw"):
    np.testing.assert_array_equal(direct["cue"][name], direct["weight"] * direct["motion"][name])
assert abs(time[np.argmax(direct["weight"] == 1.0)] - 1.0) < 0.01
assert (direct["weight"][(time > 1.01) & (time < last_frame + 0.09)] == 1.0).all()
assert (direct["weight"][time > last_frame + 1.15] == 0.0).all()
assert direct["cue"]["surge"][-1] == 0.0
assert (np.diff(direct["index"]) == 1).all()

# The kernel has the response of the formula, 0.6 at both ends but for heave.
for axis in axes:
    np.testing.assert_allclose(measured[axis], transfer_function("ccd-dk-classical", axis, axis, omega), atol=1e-3)
assert all(abs(abs(measured[axis][end]) - 0.6) < 0.015 for axis in ("surge", "sway") for end in (0, -1))
assert all(0.25 < np.abs(measured[axis]).min() < 0.4 for axis in ("surge", "sway"))
assert abs(measured["heave"][0]) < 0.01

# The platform needs metres where the car drives a kilometre, and leans as the car does, scaled.
assert driven_m > 900.0
assert 2.4 < room_m["surge"] < 2.6
assert max(room_m["sway"], room_m["heave"]) < 0.5
assert lean_car < -2.0
assert abs(lean_platform - 0.6 * lean_car) < 0.3

# Offline and engine agree to the last bit.
assert identical
