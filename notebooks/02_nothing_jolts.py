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
# # 2. Nothing jolts
#
# **What you will do.** Take a drive in which everything goes wrong that goes wrong with simulators: pauses,
# teleports, broken frames, a freeze, a second session. Send it through the engine with its supervisor and without,
# and compare what the person on the platform gets.
#
# **What you will learn.** How the engine tells a discontinuity from hard driving; what it does then; that neither the
# way to neutral nor the way back is a jolt of its own; and how limits brake before a bound is reached.
#
# **What you need.** `pip install ".[notebooks]"`. The car is a virtual one and so is the clock: the drive takes a
# fraction of a second.

# %%
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

import motioncue
from motioncue.drive.courses import EVENTS, INCIDENTS, PARKS
from motioncue.safety.supervisor import TABLE, State
from motioncue.virtual.installation import ride

plt.rcParams["figure.dpi"] = 100
PROFILE = "ccd-dk-classical"
tick_s = 1.0 / 333.33

# %% [markdown]
# ## A drive full of trouble
#
# The drive is a table: what goes wrong, when, and what the engine is to make of it. In between the car launches,
# brakes hard, corners and hops over humps, and nothing may trip there. `ride` plays it through the whole engine.

# %%
trouble = ride(PROFILE, "trouble")
for incident in INCIDENTS:
    made_of = incident.event or incident.refused or incident.parks
    print(f"{incident.time:5.1f} s  {incident.name:36}{made_of.replace('_', ' ')}")
print("\ncounted:", trouble.stats["events"], trouble.stats["rejected"])

# %% [markdown]
# ## What a car cannot do
#
# Two frames of one drive, $\Delta t$ apart, cannot be further apart than the speed that they report allows:
#
# $$|\mathbf p_2 - \mathbf p_1| \le \tfrac12\,\mathrm{m} + v\,(\Delta t + \tau) + \tfrac12\, a\, \Delta t^2$$
#
# where $a$ is 20 m/s², for what is not reported, and $\tau$ (`watch.jitter_s`) is how unevenly frames may
# arrive. Velocity is held to the reported accelerations in the same way, attitude to the reported rates;
# accelerations and rates themselves to what no car exceeds. So the bounds move with the drive: hard driving passes
# because it says that it is hard. What does not pass begins a new *epoch*, and this table decides what happens:

# %%
for state, conditions, to, reason in TABLE:
    print(f"{state:9} {', '.join(conditions):24} -> {to:9} {reason}")

# %% [markdown]
# ## Raw input, cue without supervisor, cue with it
#
# Without a supervisor the washout gets whatever the simulator said last (`motioncue.cue` of `trouble.motion`), and
# without limits it sends what it makes of it.

# %%
time, motion, cue, weight = trouble.time, trouble.motion, trouble.ticks["cue"], trouble.ticks["weight"]
bare = motioncue.cue(motioncue.load_profile(PROFILE, "limits=none"), motion)
axes = ("surge", "sway", "heave")

figure, rows = plt.subplots(4, 1, figsize=(11, 8), sharex=True, layout="constrained")
for row, name in zip(rows, axes, strict=False):
    row.plot(time, motion[name], color="0.6", linewidth=0.8, label="raw input")
    row.plot(time, bare[name], color="C3", linewidth=0.8, label="cue without supervisor")
    row.plot(time, cue[name], color="C0", linewidth=1.2, label="cue with supervisor")
    row.set_ylim(-9, 9)
    row.set_ylabel(f"{name}\n[m/s²]")
rows[3].plot(time, trouble.ticks["state"], color="k", linewidth=1)
rows[3].set_yticks([int(s) for s in State][:-1], [s.name.lower() for s in State][:-1], fontsize="small")
for row in rows:
    row.grid(True, axis="y", alpha=0.3)
    for incident in INCIDENTS:
        row.axvline(incident.time, color="C1", linewidth=0.8, alpha=0.7)
rows[0].legend(loc="upper right", fontsize="small", ncols=3)
rows[3].set_xlabel("time [s]")
rows[0].set_title("lines: something goes wrong")
figure.canvas.draw()

# %% [markdown]
# **See:** at each line but five the supervisor goes to neutral in a second and comes back as smoothly. The five:
# the frame that is not a number is dropped, and what comes once and contradicts the frames around it (the spike at
# 27 s, the frame time at 37.5 s) is not followed, and nothing else happens; the gap of 0.3 s and the freeze are over
# before neutral is reached, and the fade turns round. After a teleport at speed (22 s) the forces go on as before, so
# a washout alone would not notice; nobody knows that beforehand, so the supervisor leaves.
#
# **Try this:** play it at another rate, `ride(PROFILE, "trouble", rate_hz=30.0)`. Then play `"tour"`: how often does
# the state change?

# %% [markdown]
# ## Jerk
#
# What is felt as a jolt is the change of the force, $\mathbf j = \mathrm d\mathbf f/\mathrm dt$, from tick to tick.


# %%
def jerk(record):
    """Return the magnitude of the jerk from tick to tick [m/s^3]."""
    f = np.column_stack([record[name] for name in axes])
    return np.linalg.norm(np.diff(f, axis=0), axis=1) / tick_s


figure, row = plt.subplots(figsize=(11, 3.2), layout="constrained")
since = time[1:]
bins = np.arange(0.0, 72.0, 0.1)
for record, color, label in ((motion, "0.6", "raw input"), (bare, "C3", "without"), (cue, "C0", "with supervisor")):
    peaks = [jerk(record)[(since >= a) & (since < a + 0.1)].max() for a in bins]
    row.step(bins, np.maximum(peaks, 1.0), where="post", color=color, label=label, linewidth=1)
row.set_yscale("log")
row.set_ylim(1.0, 1e5)
row.set_xlabel("time [s]")
row.set_ylabel("peak jerk in 0.1 s\n[m/s³]")
row.legend(loc="upper right", fontsize="small", ncols=3)
row.grid(True, alpha=0.3)
near = np.any([np.abs(since - incident.time - 1.3) < 1.5 for incident in INCIDENTS], axis=0)
worst = {name: [float(jerk(record)[w].max()) for w in (near, ~near)] for name, record in (("bare", bare), ("cue", cue))}
print(
    "largest jerk [m/s³] around incidents and in honest driving:", {n: np.round(w).tolist() for n, w in worst.items()}
)

# %% [markdown]
# **See:** the red peaks are what throws people about: more than ten thousand m/s³ at the acceleration spike, hundreds
# at the velocity jump, the freeze, the attitude jump and the respawn. With the supervisor what is left is the drive's
# own, mostly the humps and the edges of the simulator's frames.
#
# **Try this:** set `"supervisor.fade_s=0.3"`: how much does a quicker fade cost?

# %% [markdown]
# ## Leaving and coming back
#
# A look at the two ends of one case: the car's attitude jumps by 50° in a bend, and its velocity does not.

# %%
shown = (time > 49.8) & (time < 52.4)
figure, sides = plt.subplots(1, 2, figsize=(11, 2.8), layout="constrained")
sides[0].plot(time[shown], bare["sway"][shown], color="C3", label="without")
sides[0].plot(time[shown], cue["sway"][shown], color="C0", label="with supervisor")
sides[0].set_ylabel("sway [m/s²]")
sides[0].legend(fontsize="small")
sides[1].plot(time[shown], weight[shown], color="C2")
sides[1].set_ylabel("weight of the fade")
for side in sides:
    side.set_xlabel("time [s]")
    side.grid(True, alpha=0.3)
figure.canvas.draw()

# %% [markdown]
# **See:** the jump never reaches the platform: the last good motion is held while it fades out in a second. Then the
# washout begins again from rest, with no memory of what came before, and is warm when the fade lets it through.

# %% [markdown]
# ## Limits
#
# A platform ends somewhere. Bounds on value, rate, acceleration and jerk of a channel hold for every input, so
# braking must begin in time: with $d$ left and the brake $a$,
#
# $$v^2 \le 2\,a\,d$$
#
# and less than that, as the brake has to build up within the jerk. Here the washout of the tour gets 0.4 m of surge.

# %%
bound, rate, brake = 0.4, 0.8, 3.0
table = f"value_m = {bound}, rate_m_s = {rate}, acceleration_m_s2 = {brake}, jerk_m_s3 = 60.0"
limited = motioncue.load_profile(PROFILE, f"limits.surge_displacement={{ {table} }}")
asked, kept = (ride(profile, "tour") for profile in (PROFILE, limited))
x0, x = (r.ticks["cue"]["surge_displacement"] for r in (asked, kept))
v, a, j = (np.diff(x, order) / tick_s**order for order in (1, 2, 3))
left = bound - np.abs(x[1:])
towards = v * np.sign(x[1:])

figure, sides = plt.subplots(1, 2, figsize=(11, 3.2), layout="constrained", width_ratios=(2, 1))
sides[0].plot(asked.time, x0, color="0.6", label="asked for")
sides[0].plot(kept.time, x, color="C0", label="sent")
sides[0].axhline(bound, color="C3", linewidth=0.8)
sides[0].axhline(-bound, color="C3", linewidth=0.8)
sides[0].set_xlabel("time [s]")
sides[0].set_ylabel("surge displacement [m]")
sides[0].legend(fontsize="small")
sides[1].plot(left, towards, color="C0", linewidth=0.8)
d = np.linspace(0.0, bound, 200)
sides[1].plot(d, np.minimum(rate, np.sqrt(2 * brake * d)), "C3--", linewidth=1, label="v² = 2 a d")
sides[1].set_xlim(0.0, bound)
sides[1].set_ylim(0.0, 1.0)
sides[1].set_xlabel("distance left [m]")
sides[1].set_ylabel("speed towards the bound [m/s]")
sides[1].legend(fontsize="small")
for side in sides:
    side.grid(True, alpha=0.3)
share = kept.stats["limited"]["surge_displacement"]
print(f"limited in {100 * share:.0f} % of the ticks")

# %% [markdown]
# **See:** the bound is approached along a curve, never hit; every path on the right stays below the dashed line.
#
# **Try this:** a limit is a safety net. Half of the ticks in it means that the washout asks for too much: set
# `"cueing.surge.cutoff_hz=0.5"` as well. What is the share now?

# %% [markdown]
# ## Checked
#
# Everything said above, as the computer sees it.

# %%
# The engine counts what the table of the drive says, leaves when it says, and never else.
assert trouble.stats["events"] == Counter(name for _, name in EVENTS)
assert trouble.stats["rejected"] == {"not_finite": 1}
parks = [move for move in trouble.stats["transitions"] if move["to"] == "PARKING"][:-1]  # the last is the drive's end
assert [move["reason"] for move in parks] == [reason for _, reason in PARKS]
assert all(move["to"] != "FAULT" for move in trouble.stats["transitions"])

# Neutral after each park but two: the gap and the freeze are over before.
offline = [move["reason"] for move in trouble.stats["transitions"] if move["from"] == "PARKING"]
assert offline.count("input_back") == 2

# Jerk: without the supervisor trouble is far beyond the drive's own, with it below.
assert worst["bare"][0] > 50 * worst["bare"][1]
assert worst["cue"][0] < worst["cue"][1]
assert worst["cue"][1] < 300.0

# The spike is never sent; without a supervisor and limits it is.
assert np.abs(cue["sway"]).max() < 4.0
assert np.hypot(bare["surge"], bare["sway"]).max() > 50.0

# The limits hold, to rounding, and braking is in time.
for values, most in ((x, bound), (v, rate), (a, brake), (j, 60.0)):
    assert np.abs(values).max() <= most * (1 + 1e-6)
assert (towards <= np.sqrt(2 * brake * np.maximum(left, 0.0)) + brake * tick_s).all()
assert np.abs(x0).max() > 2 * bound
assert 0.3 < share < 1.0
