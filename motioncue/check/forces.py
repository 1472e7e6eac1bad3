"""The drive according to one track, from which the questions about its channels are answered."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from motioncue.check.compare import (
    CORRELATION,
    FASTEST_REVERSE_M_S,
    LATE_S,
    LEAST_M_S,
    MOVING_M_S,
    OPEN,
    SLOW_M_S,
    SURE,
    TURNED_SIGN,
    WINDOW_S,
    WINDOWS,
    Array,
    Drive,
    Finding,
    Mask,
    Relation,
    Track,
    Windows,
    axes,
    by_velocity,
    changes,
    climbs,
    compare,
    following,
    gained,
    mean,
    open_,
    summed,
)
from motioncue.core.channels import GRAVITY, WHEELS


class Going(NamedTuple):
    """The drive according to one track."""

    drive: Drive
    forward: Array  # (n, 3), the body's axes in world axes, for each frame
    down: Array
    w: Windows
    track: Track | None  # None: at most the speed is known
    velocity: Array = np.zeros((0, 3))  # mean of each window [m/s]; NaN without a track
    slip: Array = np.zeros(0)  # angle of the nose to the right of the course [rad]; 0 where unreliable
    back: Mask = np.zeros(0, bool)  # the nose points away from the course, and accelerations or stops confirm it

    @property
    def speed(self) -> Array:
        """The mean speed along the track in each window [m/s]."""
        return np.asarray(np.linalg.norm(self.velocity, axis=1))


def unseen(g: Going, name: str, maneuver: str) -> Finding:
    """Return why the question cannot be answered without a track."""
    if np.isfinite(g.drive.position).all():
        return open_(name, "the position changes by less than 1 m", maneuver)
    return open_(name, "no position, and the velocity is along the car's axes", maneuver)


def slip_of(g: Going) -> Array:
    """Return the angle of the nose to the right of the course in each window [rad]; NaN at low speed."""
    yaw = g.drive.motion["yaw"][(g.w.first + g.w.last) // 2]
    course = np.arctan2(g.velocity[:, 1], g.velocity[:, 0])
    slip = (yaw - course + np.pi) % (2 * np.pi) - np.pi
    return np.asarray(np.where(g.speed > SLOW_M_S, slip, np.nan))


STANDING_M_S = 0.1
DELAYS_S = np.round(np.arange(-0.6, 0.601, 0.1), 1)  # delays of the attitude to try
LEAST_BETTER = 0.0003  # share of the squares that a delay must explain

FELT_UNITS = {
    1 / GRAVITY: "in g?",
    GRAVITY: "in m/s^2, taken as g?",
    3.28084: "feet?",
    1 / 3.6: "velocity in km/h?",
    0.44704: "velocity in mph?",
    1852 / 3600: "velocity in knots?",
}

LEAN, SURGE, SWAY, HEAVE = "roll and leaning", "surge and speed", "sway and turning", "heave and climb"
NOSE, CLIMB, COURSE = "attitude and course", "pitch and climb", "yaw and course"
GRAVITY_IN = "gravity"
CURVES = "drive at more than 5 m/s through curves to both sides"
CRESTS = "drive over crests and through dips, fast enough to feel them"


def _along_the_car(g: Going) -> Track:
    """Return the track integrated from the velocity, or from the speed along the nose if there is no velocity."""
    drive = g.drive
    if not np.isfinite(drive.velocity).all():
        drive = drive._replace(velocity=drive.motion["speed"][:, None] * g.forward)
    return by_velocity(drive)


def _expected(g: Going, late_s: float) -> tuple[Array, Array, Array]:
    """Return the expected gains of surge, sway and heave from each window to the next [m/s]."""
    if g.track is None:
        said = _along_the_car(g)
        # The velocity has the attitude's heading, so sway and heave would agree with any attitude.
        slip = np.nan_to_num(slip_of(g._replace(velocity=said.velocity(g.w))))
        ahead, _ = changes(g.w, said.velocity(g.w, late_s), slip)
        return ahead, np.full(len(ahead), np.nan), np.full(len(ahead), np.nan)
    velocity = g.track.velocity(g.w, late_s)
    ahead, right = changes(g.w, velocity, g.slip)
    return ahead, right, climbs(g.w, velocity, g.down)


def felt_of(g: Going) -> list[Finding]:
    """Judge surge, sway and heave by the track."""
    expected = cache(lambda late_s: _expected(g, late_s))
    return [
        _felt(g, expected, SURGE, 0, LEAST_M_S, "accelerate and brake in a straight line"),
        _sway_in_car(g, CURVES) if g.track is None else _felt(g, expected, SWAY, 1, LEAST_M_S, CURVES),
        _heave_in_car(g) if g.track is None else _felt(g, expected, HEAVE, 2, 0.2, CRESTS),
    ]


def _felt(
    g: Going,
    expected: Callable[[float], tuple[Array, Array, Array]],
    name: str,
    index: int,
    least: float,
    maneuver: str,
) -> Finding:
    """Compare surge, sway or heave with the track."""
    channels = ("surge", "sway", "heave")
    now = dict(zip(channels, expected(0.0), strict=True))
    channel = channels[index]
    return compare(
        Relation(
            name,
            gained(g.drive, g.w, g.drive.motion[channel]),
            lambda late_s: expected(late_s)[index],
            least,
            "m/s",
            maneuver,
            FELT_UNITS,
            {other: values for other, values in now.items() if other != channel} | _of_the_world(g),
            1.0 * WINDOW_S,
            against="velocity",
        )
    )


def _of_the_world(g: Going) -> dict[str, Array]:
    """Return the gains along the world's axes [m/s], which an acceleration follows that is not along the car's."""
    if g.track is None:
        return {}
    gains = np.where(following(g.w)[:, None], np.diff(g.velocity[:, :2], axis=0), np.nan)
    return {"the acceleration northwards": gains[:, 0], "the acceleration eastwards": gains[:, 1]}


def _sway_in_car(g: Going, maneuver: str) -> Finding:
    """Compare sway with the velocity along the car's axes, turned by the yaw rate, or by yaw if the rate is derived.

    The lateral acceleration is the change of the lateral velocity plus forward velocity times yaw rate.  If only the
    speed is known, a car may slide or reverse: there is only evidence for a turned sign, where it must drive forward.
    """
    drive, w = g.drive, g.w
    motion, alone = drive.motion, not np.isfinite(drive.velocity).all()
    if not np.isfinite(motion["speed"]).all() or len(w.span) < WINDOWS:
        return unseen(g, SWAY, maneuver)
    heading = summed(drive, motion["yaw_rate"]) if drive.rates_are_independent else np.unwrap(motion["yaw"])
    ahead, right = motion["speed"], np.zeros(len(motion))
    if not alone:
        ahead, right = (
            np.einsum("ij,ij->i", drive.velocity, axis) for axis in (g.forward, np.cross(g.down, g.forward))
        )
    cosine, sine = np.cos(heading), np.sin(heading)
    level = np.stack([ahead * cosine - right * sine, ahead * sine + right * cosine, 0.0 * ahead], axis=-1)
    track = by_velocity(drive._replace(velocity=level))
    course = track.velocity(w)
    slip = heading[(w.first + w.last) // 2] - np.arctan2(course[:, 1], course[:, 0])
    slip = np.nan_to_num((slip + np.pi) % (2 * np.pi) - np.pi)
    sure = _forward_for_sure(drive, w) if alone else np.ones(len(w.span) - 1, bool)

    def expected(late_s: float) -> tuple[Array, Array]:
        along, across = changes(w, track.velocity(w, late_s), slip)
        return along, np.where(sure, across, np.nan)

    found = compare(
        Relation(
            SWAY,
            gained(drive, w, motion["sway"]),
            lambda late_s: expected(late_s)[1],
            LEAST_M_S,
            "m/s",
            maneuver,
            FELT_UNITS,
            {"surge": expected(0.0)[0]},
            1.0 * WINDOW_S,
            against="velocity",
        )
    )
    found = found._replace(evidence=f"{found.evidence}, by {'speed' if alone else 'velocity'} and turning of the car")
    slides = alone and found.verdict == "wrong" and TURNED_SIGN not in found.evidence
    return found._replace(verdict="unknown", maneuver=maneuver) if slides else found


def _heave_in_car(g: Going) -> Finding:
    """Compare heave with the velocity along the car's axes and how these turn, whatever their directions are."""
    if not (np.isfinite(g.drive.velocity).all() and g.drive.velocity.any()) or len(g.w.span) < WINDOWS:
        return unseen(g, HEAVE, CRESTS)
    track = by_velocity(g.drive)
    found = compare(
        Relation(
            HEAVE,
            gained(g.drive, g.w, g.drive.motion["heave"]),
            lambda late_s: climbs(g.w, track.velocity(g.w, late_s), g.down),
            0.2,
            "m/s",
            CRESTS,
            FELT_UNITS,
            offset=1.0 * WINDOW_S,
            against="velocity",
        )
    )
    return found._replace(evidence=f"{found.evidence}, by velocity and turning of the car")


def _forward_for_sure(drive: Drive, w: Windows) -> Mask:
    """Say of each pair of windows whether the car drives forward: it has been too fast since it stood to reverse."""
    speed = drive.motion["speed"]
    run = np.cumsum((speed < STANDING_M_S) | (np.diff(drive.part, prepend=drive.part[:1]) != 0))
    fastest = np.zeros(run[-1] + 1)
    np.maximum.at(fastest, run, speed)
    return np.asarray((fastest[run[w.first[:-1]]] > FASTEST_REVERSE_M_S) & (run[w.first[:-1]] == run[w.last[1:]]))


def in_car(found: Finding, surge: Finding, rate: Finding, *, rates_are_independent: bool) -> Finding:
    """Return the answer about sway or heave of a car whose track is unknown, with what is to blame if it is wrong."""
    if found.verdict != "wrong":
        return found
    if rate.verdict == "wrong":
        return open_(found.name, f"{found.evidence}; but the {rate.name} contradicts the attitude", found.maneuver)
    if not rates_are_independent or rate.verdict != "ok":
        return found._replace(evidence=f"{found.evidence}; or the turning is", blames=OPEN[1])
    if TURNED_SIGN in found.evidence and surge.verdict != "wrong":
        return found._replace(blames="")
    return found._replace(evidence=f"{found.evidence}; or the velocity is", blames=OPEN[2])


def _standing(drive: Drive) -> Mask:
    """Return the frames that belong to at least a second at rest."""
    still = drive.motion["speed"] < STANDING_M_S
    out = np.zeros(len(still), bool)
    edges = np.diff(np.concatenate([[0], still, [0]]))
    for start, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        if drive.time[end - 1] - drive.time[start] >= 1.0:
            out[start:end] = True
    return out


def gravity_of(drive: Drive, forward: Array, down: Array) -> Finding:
    """Judge whether the acceleration excludes gravity: zero at rest, with an upward mean of zero on the ground."""
    name, motion = GRAVITY_IN, drive.motion
    right = np.cross(down, forward)
    upwards = -(motion["surge"] * forward[:, 2] + motion["sway"] * right[:, 2] - motion["heave"] * down[:, 2])
    steps = np.diff(drive.time)
    good = (np.diff(drive.part) == 0) & (steps >= 0.0) & (steps < WINDOW_S)
    span = float(steps[good].sum())
    climbed = np.nan_to_num(-np.diff(drive.velocity[:, 2]))
    gain = ((upwards[1:] + upwards[:-1]) / 2 * steps - climbed)[good].sum()
    excess = float(gain) / span if span > 0.0 else 0.0
    evidence, sizes = [], []
    still = _standing(drive)
    if still.any():
        rest = np.array([np.median(motion[channel][still]) for channel in ("surge", "sway", "heave")])
        sizes.append(float(np.linalg.norm(rest)) * (-1.0 if rest[2] < 0 else 1.0))
        evidence.append(f"surge, sway, heave at rest {rest[0]:+.2f}, {rest[1]:+.2f}, {rest[2]:+.2f} m/s^2")
    if span >= 5.0:
        sizes.append(excess)
        evidence.append(f"upwards {excess:+.2f} m/s^2 on the average of {span:.0f} s")
    if not sizes:
        return open_(name, "no second at rest, nor 5 s of driving", "stand still for two seconds")
    found, worst = ", ".join(evidence), max(sizes, key=abs)
    if abs(worst) < 0.5:
        return Finding(name, "ok", found)
    if abs(abs(worst) - GRAVITY) < 1.0:
        how = "gravity is in it" if worst > 0 else "gravity was taken out of what had none, or its sign is turned"
        return Finding(name, "wrong", f"{found}: {how}")
    if abs(worst) > 2.0:
        return Finding(name, "wrong", f"{found}: a car that stays on the ground does not accelerate so")
    return Finding(name, "unknown", found, "stand still on a flat road")


def gravity_in_part(g: Going) -> Finding:
    """Judge whether surge and sway exclude gravity where heave is derived: it would follow the attitude in them."""
    name, maneuver = GRAVITY_IN, "drive up a hill and down again, and through banked curves"
    drive, w = g.drive, g.w
    level = dict(zip(("surge", "sway"), (g.forward, np.cross(g.down, g.forward)), strict=True))
    rest, pull = [np.zeros(0)], [np.zeros(0)]
    for (channel, axis), expected in zip(level.items(), _expected(g, 0.0), strict=False):
        if channel in drive.felt:
            rest.append(gained(drive, w, drive.motion[channel]) - expected)
            pull.append(gained(drive, w, -GRAVITY * axis[:, 2]))
    y, x = np.concatenate(rest), np.concatenate(pull)
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < WINDOWS or not x.any():
        return open_(name, "the track does not tell", maneuver)
    share = float(x @ y / (x @ x))
    error = float(np.sqrt(((y - share * x) ** 2).sum() / (len(x) - 1) / (x @ x)))
    evidence = f"{share:+.2f} of gravity along the car's axes, give or take {2 * error:.2f}"
    if 2 * error > 0.25 or 0.25 < abs(share) < 0.75 or abs(share) > 1.25:
        return open_(name, evidence, maneuver)
    if abs(share) < 0.5:
        return Finding(name, "ok", evidence)
    how = "gravity is in it" if share > 0 else "gravity was taken out of what had none"
    return Finding(name, "wrong", f"{evidence}: {how}")


def lean_of(g: Going, *, heave_holds: bool) -> Finding:
    """Judge whether the body leans as heave says; springs lean outwards, but banked curves lean inwards."""
    name, maneuver = LEAN, "drive fast through flat curves to both sides"
    sway = mean(g.drive, g.w, g.drive.motion["sway"])
    roll = mean(g.drive, g.w, g.drive.motion["roll"])
    strong = np.abs(sway) > 2.0
    if strong.sum() < WINDOWS or not ((sway[strong] > 0).any() and (sway[strong] < 0).any()):
        return open_(name, f"{int(strong.sum())} windows with more than 2 m/s^2 of sway", maneuver)
    x, y = sway[strong], roll[strong] - np.median(roll)
    slope = float(x @ y / (x @ x))
    correlation = float(x @ y / np.sqrt((x @ x) * (y @ y))) if y.any() else 0.0
    evidence = f"{np.degrees(slope):+.2f} degrees of roll per m/s^2 of sway, correlation {correlation:+.2f}"
    if abs(np.degrees(slope)) < 0.05 or abs(correlation) < CORRELATION:
        return open_(name, evidence, maneuver)
    felt = _roll_that_is_felt(g)
    inwards = slope > 0
    if inwards:
        evidence += ": it leans into the turn, which a car does only in banked curves"
    if felt < 0:
        evidence += "; heave says that it leans to the other side"
        return Finding(name, "wrong", evidence + ("" if inwards else ": roll or heave is turned"), blames="attitude")
    if felt and (not inwards or heave_holds):
        return Finding(name, "ok", f"{evidence}; heave agrees")
    if felt:
        return Finding(name, "unknown", f"{evidence}; or roll and heave both have the wrong sign", maneuver)
    if "heave" not in g.drive.felt:
        return open_(name, f"{evidence}; only a vertical acceleration tells the sign of roll, and none is reported")
    # A sprung body leans outwards, but so does a turned roll in banked curves.
    return open_(name, evidence, maneuver)


def _roll_that_is_felt(g: Going) -> int:
    """Return 1 if heave shows that roll has the right sign, -1 if the wrong one, 0 if it does not tell.

    In a leaning car, part of the acceleration in a turn is vertical.
    """
    if g.track is None or "heave" not in g.drive.felt:
        return 0
    mirrored = g.drive.motion.copy()
    mirrored["roll"] *= -1.0
    found = gained(g.drive, g.w, g.drive.motion["heave"])
    expected, other = (climbs(g.w, g.velocity, down) for down in (g.down, axes(mirrored)[1]))
    moving = np.isfinite(expected) & (np.minimum(g.speed[1:], g.speed[:-1]) > MOVING_M_S)
    if moving.sum() < WINDOWS:
        return 0
    apart, here, there = (
        float(np.sqrt(np.mean(values[moving] ** 2))) for values in (other - expected, found - expected, found - other)
    )
    if apart < 0.02 or max(here, there) < 2 * min(here, there):
        return 0
    return 1 if here < there else -1


def attitude_late(g: Going) -> float:
    """Return the delay with which the attitude turns the acceleration along the track [s]; 0 if small or not shown.

    In a turning car, an acceleration along the car's axes has the direction of the track's only with the attitude of
    the same instant.
    """
    drive, w = g.drive, g.w
    known = following(w) & np.isfinite(np.diff(g.velocity[:, :2], axis=0)).all(axis=1)
    if g.track is None or not {"surge", "sway"} <= drive.felt or known.sum() < WINDOWS:
        return 0.0
    expected = np.diff(g.velocity[:, :2], axis=0)[known]
    motion = drive.motion
    felt = (motion["surge"], motion["sway"], -motion["heave"])
    body = (g.forward, np.cross(g.down, g.forward), g.down)
    rest = []
    for late in DELAYS_S:
        level = [
            sum(
                values * np.interp(drive.time + late, drive.time, axis[:, n])
                for values, axis in zip(felt, body, strict=True)
            )
            for n in range(2)
        ]
        found = np.stack([gained(drive, w, np.asarray(values))[known] for values in level], axis=-1)
        rest.append(float(((found - expected) ** 2).sum()))
    best, small = int(np.argmin(rest)), min(r for r, late in zip(rest, DELAYS_S, strict=True) if abs(late) < LATE_S)
    better, whole = small - rest[best], float((expected**2).sum())
    clear = better * expected.size > SURE**2 * rest[best] and better > LEAST_BETTER * whole
    return float(DELAYS_S[best]) if clear and rest[best] < (1.0 - CORRELATION**2) * whole else 0.0


BRAKING, TURNS = "suspension in braking", "suspension in turns"
UP, ROLL_RATE, PITCH_RATE = "up", "roll rate", "pitch rate"
TILTED = {BRAKING: (CLIMB, PITCH_RATE), TURNS: (LEAN, ROLL_RATE)}  # what says how much of gravity a load has in it
SIGN = "turn the sign of its fields"
EXCHANGED = {BRAKING: "front and rear are exchanged", TURNS: "left and right are exchanged"}
LEAST_M = 0.001  # spread of the travel that says something: less is the road
LEAST_M_S2 = 1.0  # so does this of the load
AGREES, CONTRADICTS = 0.5, 0.75  # correlations; nobody is accused of what only may be


def suspension_of(g: Going, found: Mapping[str, Finding]) -> list[Finding]:
    """Judge the sense of the suspension's travel by where the load goes: forwards in braking, outwards in a turn.

    Springs feel the specific force, acceleration less gravity: on steep banking a slow car leans on its inner wheels.
    A wheel that comes nearer to the body counts positive.  Accelerations and attitude are believed if `found` does not
    call them wrong.
    """
    drive, w = g.drive, g.w
    if drive.travel is None:
        return []
    known = np.asarray(np.isfinite(drive.travel).all(axis=1))
    if not known.sum() > 0.5 * len(known):
        return []
    frames = np.arange(len(known))
    wheels = [np.interp(frames, frames[known], wheel[known]) for wheel in drive.travel.T]
    front_left, front_right, rear_left, rear_right = (mean(drive, w, wheel) for wheel in wheels)
    still = [name.replace("_", " ") for name, wheel in zip(WHEELS, wheels, strict=True) if not np.ptp(wheel)]
    forwards = {"on the left": front_left - rear_left, "on the right": front_right - rear_right}
    outwards = {"in front": front_left - front_right, "behind": rear_left - rear_right}
    surge, sway = (mean(drive, w, drive.motion[channel]) for channel in ("surge", "sway"))
    ahead, aside = (mean(drive, w, GRAVITY * axis[:, 2]) for axis in (g.forward, np.cross(g.down, g.forward)))
    braking = _loaded(BRAKING, forwards, still, -surge, ahead, found, SURGE, "brake hard, several times")
    turns = _loaded(TURNS, outwards, still, sway, -aside, found, SWAY, CURVES)
    return [
        each._replace(evidence=f"{each.evidence}: it gives where it should be pressed; {_cure(each, other)}")
        if each.verdict == "wrong"
        else each
        for each, other in ((braking, turns), (turns, braking))
    ]


def _cure(wrong: Finding, other: Finding) -> str:
    """Return what is to blame for a wrong sense: an order if only one difference of the wheels is wrong."""
    order = EXCHANGED[wrong.name]
    return {"ok": order, "wrong": SIGN}.get(other.verdict, f"{SIGN}, unless {order}: {other.name} would tell")


def _loaded(
    name: str,
    pairs: Mapping[str, Array],
    still: Sequence[str],
    pushed: Array,
    pulled: Array,
    found: Mapping[str, Finding],
    felt: str,
    maneuver: str,
) -> Finding:
    """Judge whether differences of travel follow their load: what the acceleration pushes and gravity pulls [m/s^2].

    The mean of the two pairs of wheels tells the sense; it is right only if each pair has it, and every wheel moves.
    """
    load, travel = pushed + pulled, np.mean(list(pairs.values()), axis=0)
    steady = np.median(load) if len(load) else 0.0  # a hill or banking that does not end presses, but tells nothing
    strong, spread = int((np.abs(load - steady) > LEAST_M_S2).sum()), float(np.std(travel)) if len(travel) else 0.0
    evidence = f"{strong} windows of {WINDOW_S} s with more than {LEAST_M_S2:g} m/s^2"
    if strong < WINDOWS or spread < LEAST_M:
        return open_(name, f"{evidence}, {1e3 * spread:.2g} mm of travel", maneuver)
    follows = float(np.corrcoef(travel, load)[0, 1])
    evidence = f"correlation {follows:+.2f} over {evidence}"
    if found[felt].verdict != "ok":
        return open_(name, f"{evidence}; as sure as {felt}", maneuver)
    tilt, rate = TILTED[name]
    wrong = [each for each in (NOSE, tilt, rate, UP, GRAVITY_IN) if each in found and found[each].verdict == "wrong"]
    if wrong:
        return open_(name, f"{evidence}; as sure as {wrong[0]}", maneuver)
    if follows > AGREES:
        astray = [
            where for where, pair in pairs.items() if not (np.ptp(pair) and np.corrcoef(pair, load)[0, 1] > AGREES)
        ]
        if still or astray:
            but = f"{', '.join(still)} never moves" if still else f"the wheels {' and '.join(astray)} do not agree"
            return Finding(name, "unknown", f"{evidence}; but {but}", maneuver)
        return Finding(name, "ok", evidence)
    if follows < -CONTRADICTS:
        mirrored = pushed - pulled
        turned = bool(np.ptp(mirrored)) and float(np.corrcoef(travel, mirrored)[0, 1]) > -CONTRADICTS
        # Heave tells the attitude's sign as well, because a car that leans or climbs has part of its turning in it.
        if turned and "ok" not in (found[tilt].verdict, found[HEAVE].verdict):
            return open_(name, f"{evidence}; or the attitude is turned, as sure as {tilt}", maneuver)
        return Finding(name, "wrong", evidence)
    return Finding(name, "unknown", f"{evidence}: neither agreement nor its opposite", maneuver)
