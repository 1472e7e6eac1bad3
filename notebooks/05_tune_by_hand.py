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
# **What you will do.** Change the washout of one direction, surge, with four numbers, and see at once what the driver
# feels, how far the platform travels, and what the change is worth.
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
from ipywidgets import FloatSlider, interactive

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


def tuned(gain: float, cutoff_hz: float, tilt_cutoff_hz: float, tilt_rate_deg_s: float) -> Traces:
    """Return the score of the washout with these numbers for surge, with the motions that it was made from."""
    profile = motioncue.load_profile(
        "ccd-dk-classical",
        "cueing.preset=utias",
        f"cueing.surge.gain={gain}",
        f"cueing.surge.cutoff_hz={cutoff_hz}",
        f"cueing.tilt.surge_cutoff_hz={tilt_cutoff_hz}",
        f"cueing.tilt.rate_limit_deg_s={tilt_rate_deg_s}",
    )
    return trace(profile, motion, platform="box-small")


# %% [markdown]
# What a driver feels is specific force. The vestibular organs report it in their own way, so car and platform are
# compared in what the organs report, in *thresholds*: below 1 nobody notices.


# %%
def show(
    gain: float = 0.5, cutoff_hz: float = 0.4, tilt_cutoff_hz: float = 0.8, tilt_rate_deg_s: float = 3.0
) -> Traces:
    """Draw what is felt along surge, and what the platform does for it."""
    result = tuned(gain, cutoff_hz, tilt_cutoff_hz, tilt_rate_deg_s)
    slow = np.linspace(0.0, result.time[-1], len(result.felt["car"]))
    _, rows = plt.subplots(3, 1, figsize=(9, 6.5), sharex=True, layout="constrained")
    rows[0].plot(slow, result.felt["car"][:, 0], color="C0", label="felt in the car")
    rows[0].plot(slow, result.felt["stopped"][:, 0], color="C1", label="felt on the platform")
    rows[0].plot(slow, result.felt["best"][:, 0], color="C2", linewidth=0.8, label="best possible")
    rows[0].set_ylabel("surge felt\n[thresholds]")
    rows[1].plot(result.time, result.poses["asked"][:, 0], color="C1", linewidth=0.8, linestyle=":", label="asked for")
    rows[1].plot(result.time, result.poses["stopped"][:, 0], color="C1", label="made")
    for end in (-0.15, 0.15):
        rows[1].axhline(end, color="C3", linewidth=0.8)
    rows[1].set_ylim(-0.5, 0.5)
    rows[1].set_ylabel("surge travel\n[m]")
    rows[2].plot(result.time, np.degrees(result.poses["stopped"][:, 4]), color="C1", label="pitch of the platform")
    rows[2].set_ylabel("pitch\n[deg]")
    rows[2].set_xlabel("time [s]")
    for row in rows:
        row.grid(True, alpha=0.3)
        row.legend(loc="upper right", ncols=3, fontsize="small")
    score = result.score
    rows[0].set_title(
        f"gain {gain:g}, cutoff {cutoff_hz:g} Hz, tilt {tilt_cutoff_hz:g} Hz up to {tilt_rate_deg_s:g} deg/s:  "
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
# Four sliders over the same function. Without a running kernel you see the pictures above.

# %%
sliders = interactive(
    lambda **values: show(**values) and None,
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
