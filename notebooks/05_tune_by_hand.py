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
# # 5. Tune by hand
#
# **What you will do.** Change the washout of one sense at a time, first surge, with four numbers, and see at once what
# the driver feels, how far the platform travels, and what the change is worth.
#
# **What you will learn.** What gain, cutoff frequency and tilt rate each do to a push; why a platform of half a metre
# wants a higher cutoff and not only a lower gain; that a score can be bought with fast tilt.
#
# **What you need.** `pip install ".[notebooks,score]"`. The pictures below were drawn when the notebook was executed;
# with a running kernel, the sliders at its end draw them anew.

# %%
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from ipywidgets import Dropdown, FloatSlider, interactive

import motioncue
from motioncue.recording.recording import read_motion, sample_recording
from motioncue.scoring.score import Traces, trace

plt.rcParams["figure.dpi"] = 100

# %% [markdown]
# ## One drive, one platform
#
# A minute of motorway, and a platform that travels 15 cm and leans 12° each way (`box-small`: six free axes).

# %%
motion = read_motion(sample_recording())
SENSES = ("surge", "sway", "heave", "roll", "pitch", "yaw")  # in the order of a pose
LEANT = {"surge": 4, "sway": 3}  # by pitch, by roll
REACH = {"surge": 0.15, "sway": 0.15, "heave": 0.15, "roll": 12.0, "pitch": 12.0, "yaw": 12.0}  # [m], [deg]


def tuned(sense: str, gain: float, cutoff_hz: float, tilt_cutoff_hz: float, tilt_rate_deg_s: float) -> Traces:
    """Return the score of the washout with these numbers for a sense, with the motions that it was made from."""
    profile = motioncue.load_profile(
        "ccd-dk-classical",
        "cueing.preset=utias",
        f"cueing.{sense}.gain={gain}",
        f"cueing.{sense}.cutoff_hz={cutoff_hz}",
        *([f"cueing.tilt.{sense}_cutoff_hz={tilt_cutoff_hz}"] if sense in LEANT else []),
        f"cueing.tilt.rate_limit_deg_s={tilt_rate_deg_s}",
    )
    return trace(profile, motion, platform="box-small")


# %% [markdown]
# What a driver feels is specific force. The vestibular organs report it in their own way, so car and platform are
# compared in what the organs report, in *thresholds*: below 1 nobody notices.


# %%
def show(
    sense: str = "surge",
    gain: float = 0.5,
    cutoff_hz: float = 0.4,
    tilt_cutoff_hz: float = 0.8,
    tilt_rate_deg_s: float = 3.0,
) -> Traces:
    """Draw what is felt of a sense, and what the platform does for it."""
    result = tuned(sense, gain, cutoff_hz, tilt_cutoff_hz, tilt_rate_deg_s)
    at, leant = SENSES.index(sense), LEANT.get(sense)
    scale, unit = (1.0, "m") if at < 3 else (np.degrees(1.0), "deg")
    slow = np.linspace(0.0, result.time[-1], len(result.felt["car"]))
    _, rows = plt.subplots(2 if leant is None else 3, 1, figsize=(9, 6.5), sharex=True, layout="constrained")
    rows[0].plot(slow, result.felt["car"][:, at], color="C0", label="felt in the car")
    rows[0].plot(slow, result.felt["stopped"][:, at], color="C1", label="felt on the platform")
    rows[0].plot(slow, result.felt["best"][:, at], color="C2", linewidth=0.8, label="best possible")
    rows[0].set_ylabel(f"{sense} felt\n[thresholds]")
    asked, made = (scale * result.poses[name][:, at] for name in ("asked", "stopped"))
    rows[1].plot(result.time, asked, color="C1", linewidth=0.8, linestyle=":", label="asked for")
    rows[1].plot(result.time, made, color="C1", label="made")
    for end in (-REACH[sense], REACH[sense]):
        rows[1].axhline(end, color="C3", linewidth=0.8)
    rows[1].set_ylim(-3.3 * REACH[sense], 3.3 * REACH[sense])
    rows[1].set_ylabel(f"{sense} travel\n[{unit}]")
    if leant is not None:
        tilt = np.degrees(result.poses["stopped"][:, leant])
        rows[2].plot(result.time, tilt, color="C1", label=f"{SENSES[leant]} of the platform")
        rows[2].set_ylabel(f"{SENSES[leant]}\n[deg]")
    rows[-1].set_xlabel("time [s]")
    for row in rows:
        row.grid(True, alpha=0.3)
        row.legend(loc="upper right", ncols=3, fontsize="small")
    score = result.score
    rows[0].set_title(
        f"{sense}: gain {gain:g}, cutoff {cutoff_hz:g} Hz, tilt {tilt_cutoff_hz:g} Hz up to {tilt_rate_deg_s:g} deg/s: "
        f"score {score.stopped:.0f}, fast tilt {100 * score.motions['stopped'].fast_tilt:.0f} % of the time",
        fontsize="medium",
    )
    return result


# %% [markdown]
# ## Too much travel
#
# A low cutoff frequency lets a push last, and asks for far more than the platform has. What is beyond the red lines is
# not made; where the platform is stopped, the driver feels the stop.

# %%
far = show(cutoff_hz=0.1)

# %% [markdown]
# ## A higher cutoff frequency
#
# The travel of a push falls with the square of the frequency. Its onset stays.

# %%
near = show(cutoff_hz=0.4)

# %% [markdown]
# ## Faster tilt
#
# What lasts is presented by leaning. Leaning faster follows the car better and is itself felt, above about 3°/s, as
# turning that the car does not do.

# %%
fast = show(cutoff_hz=0.4, tilt_rate_deg_s=10.0)

# %% [markdown]
# ## By hand
#
# The same function with a list of senses and four sliders; those of tilt act on surge and sway. Without a running
# kernel you see the pictures above.

# %%
sliders = interactive(
    lambda **values: show(**values) and None,
    sense=Dropdown(options=SENSES),
    gain=FloatSlider(0.5, min=0.0, max=2.0, step=0.05, continuous_update=False),
    cutoff_hz=FloatSlider(0.4, min=0.05, max=2.0, step=0.05, continuous_update=False),
    tilt_cutoff_hz=FloatSlider(0.8, min=0.1, max=3.0, step=0.1, continuous_update=False),
    tilt_rate_deg_s=FloatSlider(3.0, min=1.0, max=20.0, step=0.5, continuous_update=False),
)
display(sliders)

# %% [markdown]
# **Try this:** find the gain at which the score falls again. Why is it not 1? Then look at
# `near.score.motions["stopped"].opposite`: how much of the time is the platform felt against the car?
#
# ## Checked

# %%
used = {name: each.score.asked["surge_displacement"][0] for name, each in (("far", far), ("near", near))}
print({name: round(share, 2) for name, share in used.items()})
assert used["far"] > 1.0 > used["near"]
quick = [each.score.motions["stopped"].fast_tilt for each in (near, fast)]
assert quick[1] > quick[0]
for sense in SENSES[1:]:
    assert abs(tuned(sense, 0.5, 0.4, 0.8, 3.0).score.stopped - tuned(sense, 0.0, 0.4, 0.8, 3.0).score.stopped) > 0.0
