"""Candidate and floor measured in turn, on the same machine in the same minute."""

import time
from collections.abc import Callable
from statistics import quantiles
from typing import Any

PAIRS = 24
TRIED = 8 * PAIRS
LONGEST_S = 8.0  # that more pairs than needed are tried


def cpu_ns(call: Callable[[], object]) -> int:
    """Return the cost of a call [ns]: CPU time of this thread, so that other processes matter little."""
    began = time.thread_time_ns()
    call()
    return time.thread_time_ns() - began


def interleaved(
    candidate: Callable[[], object],
    floor: Callable[[], object],
    between: Callable[[], object] | None = None,
    crowded: Callable[[], object] | None = None,
) -> tuple[list[int], list[int]]:
    """Return the costs of both [ns], taken in pairs whose order alternates; `between` runs untimed before each.

    A virtual processor may be half of one: while another guest uses the other half, what keeps every unit busy slows
    down more than what waits for its own results, and a ratio says more of the guest than of the code.  `crowded` is
    such a loop; of many pairs, those are taken around which it was fastest.
    """
    pairs: list[tuple[int, int, int]] = []
    began = time.monotonic()
    for pair in range((TRIED if crowded else PAIRS) + 2):
        costs = [0, 0]
        around = cpu_ns(crowded) if crowded else 0
        for side in (0, 1) if pair % 2 else (1, 0):
            if between is not None:
                between()
            costs[side] = cpu_ns((candidate, floor)[side])
        around = max(around, cpu_ns(crowded)) if crowded else pair
        if pair >= 2:  # the first two warm up
            pairs.append((around, costs[0], costs[1]))
        if len(pairs) >= PAIRS and time.monotonic() - began > LONGEST_S:
            break
    calm = sorted(pairs)[:PAIRS]
    return [ours for _, ours, _ in calm], [floors for _, _, floors in calm]


def fact(figure: str, against: str, value: float, unit: str, target: float) -> dict[str, Any]:
    """Return a row of the table for a figure that is not a ratio: `value` [unit] should be at most `target`."""
    met = bool(value <= target)
    return {"figure": figure, "against": against, "value": value, "unit": unit, "target": target, "met": met}


def row(
    figure: str,
    against: str,
    ours: list[float],
    floors: list[float],
    *,
    target: float | None = None,
    faster: bool = False,
    unit: str = "ns",
) -> dict[str, Any]:
    """Return one row of the table.

    Parameters
    ----------
    figure, against : str
        The measured figure, and what it is compared with.
    ours, floors : list of float
        Costs in pairs, per item, in `unit`.
    target : float, optional
        Largest ratio ours / floor; or with `faster`, smallest ratio floor / ours.
    faster : bool
        Whether the ratio says how many times faster ours is.
    unit : str
        Unit of the costs.
    """
    ratios = [b / a if faster else a / b for a, b in zip(ours, floors, strict=True)]
    low, middle, high = quantiles(ratios, n=4)
    met = None if target is None else bool(middle >= target if faster else middle <= target)
    return {
        "figure": figure,
        "against": against,
        "ratio": middle,
        "quartiles": [low, high],
        "pairs": len(ratios),
        "ours": quantiles(ours, n=4)[1],
        "floor": quantiles(floors, n=4)[1],
        "unit": unit,
        "target": target,
        "faster": faster,
        "met": met,
    }
