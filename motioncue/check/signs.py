"""Evidence on whether a source's channels agree with each other and with the car's track.

All comparisons are over short windows, in which noise and the spacing of frames average out: the integral of a channel
against its expected value from the car's track.  A slope of 1 is agreement, -1 a wrong sign.  If the drive has not
shown enough, the answer is that it cannot be told, together with the maneuver that would settle it.

If position and velocity contradict each other, the track is the one of them that the other channels agree with.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np

from motioncue.check.compare import (
    CORRELATION,
    FASTEST_REVERSE_M_S,
    FELT,
    LATE_S,
    LEAST_M_S,
    MOVING_M_S,
    OPEN,
    SLOW_M_S,
    THROUGHOUT,
    TURNED_SIGN,
    WINDOWS,
    Array,
    Drive,
    Finding,
    Mask,
    Relation,
    Track,
    Windows,
    axes,
    by_position,
    by_velocity,
    changes,
    compare,
    delay,
    following,
    gained,
    integral,
    mean,
    moves,
    open_,
    turns,
    windows_of,
)
from motioncue.check.forces import (
    CLIMB,
    COURSE,
    GRAVITY_IN,
    HEAVE,
    LEAN,
    NOSE,
    SURGE,
    SWAY,
    UP,
    Going,
    attitude_late,
    felt_of,
    gravity_in_part,
    gravity_of,
    in_car,
    lean_of,
    slip_of,
    unseen,
)

SLOPING = 0.02  # slope of a road that climbs or falls
TURNED = np.radians(30.0)  # turn of the course needed to tell whether the attitude follows it
NO_SLIP = 0.005  # angle between nose and course that is none [rad]
ASTRAY = 0.35  # lasting angle between nose and course that no car has [rad]

SPEED_UNITS = {3.6: "km/h?", 1 / 3.6: "km/h, taken twice?", 2.23694: "mph?", 3.28084: "feet?", 1.94384: "knots?"}
TURN_UNITS = {np.degrees(1.0): "in degrees?", np.radians(1.0): "radians, taken as degrees?"}

DERIVED_BY = {"surge": SURGE, "sway": SWAY, "heave": HEAVE}
"""Findings about accelerations that may be derived from the velocity."""

NEEDS = {
    "surge": (NOSE, CLIMB),
    "sway": (NOSE, LEAN),
    "heave": (CLIMB, LEAN),
    "roll rate": (LEAN,),
    "pitch rate": (CLIMB,),
    "yaw rate": (COURSE,),
}
"""Findings without which what is derived is not shown to be right."""

STEERING = "drive forward at more than 3 m/s and turn by 30 degrees or more"


def examine(drive: Drive) -> list[Finding]:
    """Return a finding for each question, including those that the drive has not answered."""
    w = windows_of(drive)
    forward, down = axes(drive.motion)
    place = _place(drive, w)
    going = Going(drive, forward, down, w, None)
    said = by_velocity(drive) if np.isfinite(drive.velocity).all() else None
    if moves(drive, w):
        answers = _of_track(going._replace(track=by_position(drive)))
        if place.verdict == "wrong" and said is not None:
            place, answers = _blamed(going, place, answers, said)
    else:
        answers = _of_track(going._replace(track=said if drive.velocity_is_independent else None))
        if said is not None and not drive.velocity_is_independent:
            answers = [_forwards(going, said) or answers[0], *answers[1:]]
    rates = _rates(drive, w, turns(forward, down), {found.name: found.verdict for found in answers})
    if not (moves(drive, w) or drive.velocity_is_independent):
        named = {found.name: found for found in (*answers, *rates)}
        rates_of = {SWAY: named["yaw rate"], HEAVE: named["pitch rate"]}
        answers = [
            in_car(f, named[SURGE], rates_of[f.name], rates_are_independent=drive.rates_are_independent)
            if f.name in rates_of
            else f
            for f in answers
        ]
    if not any(found.name == GRAVITY_IN for found in answers):
        answers = [*answers, gravity_of(drive, forward, down)]
    found = _as_right_as_their_source(drive, [place, *answers, _upright(down), *rates])
    return _by_receiver(found, course=_is_course(drive), rates=drive.rates_are_independent)


def _is_course(drive: Drive) -> bool:
    """Say whether yaw is the course itself, as that of a phone or of a receiver of GPS; a car slips more."""
    north, east, _ = drive.velocity.T
    fast = np.hypot(north, east) > MOVING_M_S
    course = np.unwrap(np.arctan2(east[fast], north[fast]))
    if len(course) < WINDOWS or np.ptp(course) < TURNED:
        return False
    slip = (drive.motion["yaw"][fast] - course + np.pi) % (2 * np.pi) - np.pi
    return bool(np.quantile(np.abs(slip), 0.9) < NO_SLIP)


def _by_receiver(found: list[Finding], *, course: bool, rates: bool) -> list[Finding]:
    """Return the findings, without blame for a velocity and a yaw that come late together, as by GPS.

    The rates and accelerations of a phone are those of its sensors, and early beside them.  They show it without a
    course if yaw alone comes later than its rate.
    """
    named = {finding.name: finding for finding in found}
    alone = not any(named[name].verdict == "wrong" for name in ("roll rate", "pitch rate"))
    late = named["yaw rate"].late < 0.0 if rates else course
    if not course and not (late and alone):
        return found

    def excused(f: Finding) -> bool:
        lags = late and (f.late < 0.0 or (f.name == NOSE and "too late" in f.evidence))
        slips = course and THROUGHOUT in f.evidence
        return f.verdict == "wrong" and f.name in (NOSE, SURGE, SWAY, HEAVE, "yaw rate") and (lags or slips)

    told = "or yaw and velocity are those of a receiver of GPS, which come late and know no slip"
    return [open_(f.name, f"{f.evidence}; {told}", STEERING) if excused(f) else f for f in found]


def _as_right_as_their_source(drive: Drive, found: list[Finding]) -> list[Finding]:
    """Return the findings; what is derived agrees only if the attitude that turned it is shown to be right."""
    shown = {finding.name for finding in found if finding.verdict == "ok"}
    derived = {DERIVED_BY[channel]: NEEDS[channel] for channel in FELT - drive.felt}
    if not drive.rates_are_independent:
        derived |= {name: NEEDS[name] for name in ("roll rate", "pitch rate", "yaw rate")}
    return [
        open_(finding.name, f"{finding.evidence}; derived, and as right as {' and '.join(derived[finding.name])}")
        if finding.verdict == "ok" and not shown.issuperset(derived.get(finding.name, ()))
        else finding
        for finding in found
    ]


def _blamed(g: Going, place: Finding, answers: list[Finding], said: Track) -> tuple[Finding, list[Finding]]:
    """Return whether position or velocity is at fault if they contradict each other, and the other's answers.

    A velocity that was converted by the attitude always agrees with it, so it is believed only if nothing contradicts
    it.
    """
    others = _of_track(g._replace(track=said))
    here, there = (sum(finding.verdict == "wrong" for finding in found) for found in (answers, others))
    if here < there or (here and there == here):
        return _at_fault(place, "velocity", "position") if here < there else place, answers
    if g.drive.velocity_is_independent:
        # A velocity that shows no motion contradicts nothing, but nothing agrees with it either.
        agree, instead = (sum(finding.verdict == "ok" for finding in found) for found in (answers, others))
        believed = there < here and instead >= agree
        return (_at_fault(place, "position", "velocity"), others) if believed else (place, answers)
    if there:
        return place, answers
    blind = (NOSE, CLIMB, COURSE)
    others = [
        open_(f.name, "the position contradicts the velocity", STEERING) if f.name in blind else f for f in others
    ]
    evidence = f"{place.evidence}; it is the position, or the attitude is turned"
    return place._replace(evidence=evidence, blames=OPEN[0]), others


def _at_fault(place: Finding, bad: str, good: str) -> Finding:
    said = f"{place.evidence}; the rest agrees with the {good}, so it is the {bad}"
    return place._replace(evidence=said, blames=bad)


def _forwards(g: Going, said: Track) -> Finding | None:
    """Return that a velocity along the car's axes does not point forward; None if it does, or there is too little.

    That it points backward throughout while all accelerations agree is open, not without evidence: accelerations of the
    other sign would agree as well with a front that is taken for the back.
    """
    nose = _nose(*_along(g._replace(track=said)))
    if nose.verdict != "wrong":
        return nose if nose.verdict == "unknown" and nose.shown else None
    return nose._replace(evidence=f"{nose.evidence}, by the velocity along the car's axes", blames="velocity")


def _along(g: Going) -> tuple[Going, Array]:
    """Return the drive with its velocity along the track, and the angle of the nose to the right of the course."""
    count = len(g.w.span)
    velocity = np.full((count, 3), np.nan) if g.track is None else g.track.velocity(g.w)
    g = g._replace(velocity=velocity, slip=np.zeros(count), back=np.zeros(count, bool))
    slip = slip_of(g)
    return g._replace(back=_reversing(g, slip)), slip


def _of_track(g: Going) -> list[Finding]:
    """Return the answers to all questions that need a track."""
    count = len(g.w.span)
    g, slip = _along(g)
    nose = _nose(g, slip)
    if nose.verdict != "wrong":
        forward = (g.speed > MOVING_M_S) & ~g.back
        # If a car only reverses, its front and back may be exchanged, so surge and sway cannot be judged.
        unseen = g.back if forward.sum() < WINDOWS else np.zeros(count, bool)
        g = g._replace(slip=np.where(unseen, np.nan, np.nan_to_num(slip)))
    surge, sway, heave = felt_of(g)
    if g.back.any() and all(TURNED_SIGN in finding.evidence for finding in (surge, sway)):
        # A car that drives and reverses may be turned about as well: all its accelerations then have the other sign.
        surge, sway = (
            finding._replace(evidence=f"{finding.evidence}, or front and back are exchanged", blames=OPEN[1])
            for finding in (surge, sway)
        )
    # If an acceleration is wrong by itself, it may be that one that is late.
    told = nose.verdict == "ok" and "wrong" not in (surge.verdict, sway.verdict, heave.verdict)
    late = attitude_late(g) if told else 0.0
    if late:
        evidence = f"{nose.evidence}: the attitude comes about {abs(late):.1f} s too {'late' if late > 0 else 'early'}"
        nose = Finding(NOSE, "wrong", f"{evidence}, by the acceleration along the car's axes", blames="attitude")
    lean = lean_of(g, heave_holds=heave.verdict == "ok")
    if "wrong" in (surge.verdict, sway.verdict, heave.verdict):
        lean = lean._replace(blames="")  # then it is the acceleration
    answers = [nose, surge, sway, heave, _pitch(g), lean, _heading(g)]
    partly = g.track is not None and bool(g.drive.felt) and "heave" not in g.drive.felt
    return [*answers, gravity_in_part(g)] if partly else answers


def _place(drive: Drive, w: Windows) -> Finding:
    """Judge whether the position moves as the velocity says, in world axes."""
    name, maneuver = "velocity and position", "drive at more than 3 m/s, and turn by 30 degrees or more"
    if not np.isfinite(drive.position).all() or not np.isfinite(drive.velocity).all() or not np.ptp(drive.position):
        return open_(name, "the source says no position or no velocity")
    track = by_position(drive)
    said = np.array([integral(drive, w, axis) for axis in drive.velocity.T]).reshape(3, -1)

    @cache
    def moved(late_s: float) -> Array:
        return np.asarray((track.velocity(w, late_s) * w.span[:, None]).T)

    def along(name: str, rows: slice, least: float, unit: str, others: tuple[int, ...] = ()) -> Finding:
        return compare(
            Relation(
                name,
                said[rows].ravel(),
                lambda late_s: moved(late_s)[rows].ravel(),
                least,
                unit,
                maneuver,
                SPEED_UNITS,
                {"another axis": moved(0.0)[list(others)].ravel()} if others else {},
                far=1.0,
                noticed=0.0005,  # both are exact
            )
        )

    level = along(name, slice(0, 2), 0.5 * MOVING_M_S, "m", (1, 0))
    single = [
        along(name, slice(n, n + 1), 0.5 * MOVING_M_S, f"m {way}", (m,))
        for n, m, way in ((0, 1, "north"), (1, 0, "east"))
    ]
    late = _speed_late(w, track, said)
    if late and level.verdict == "ok":
        told = f"the speed comes about {abs(late):.2f} s too {'late' if late > 0 else 'early'}"
        level = level._replace(verdict="wrong", evidence=f"{level.evidence}: {told}", blames="velocity")
    upwards = _upwards(name, w, said, moved(0.0), maneuver, level=drive.velocity_is_independent)
    # A flat road shows nothing about the vertical axis, and need not.
    return next((finding for finding in (*single, upwards) if finding.verdict == "wrong"), level)


def _speed_late(w: Windows, track: Track, said: Array) -> float:
    """Return the delay of the velocity's size [s]; 0 if small or not shown.

    A velocity along the car's axes is turned by the attitude of now, so its direction shows no delay.
    """
    speed = np.linalg.norm(said, axis=0) / w.span
    late = delay(
        Relation(
            "speed",
            np.where(following(w), np.diff(speed), np.nan),
            lambda late_s: np.diff(np.linalg.norm(track.velocity(w, late_s), axis=1)),
            LEAST_M_S,
            "m/s",
            "",
        )
    )
    return late if abs(late) >= LATE_S else 0.0


def _upwards(name: str, w: Windows, said: Array, moved: Array, maneuver: str, *, level: bool) -> Finding:
    """Judge whether the position climbs as the velocity says; a body that is not level may turn the velocity."""
    far = np.linalg.norm(moved[:2], axis=0)
    going = far > SLOW_M_S * w.span
    tilt = float(np.median((said - moved)[2, going] / far[going])) if going.sum() >= WINDOWS and not level else 0.0
    found = said[2] - np.clip(tilt, -ASTRAY, ASTRAY) * far
    return compare(Relation(name, found, lambda _: moved[2], 0.15, "m upwards", maneuver, SPEED_UNITS, late_s=0.0))


def _reversing(g: Going, slip: Array) -> Mask:
    """Return the windows in which the car reverses: the nose says so, and accelerations or stops confirm it.

    A car that gets faster in reverse is pushed backwards, and curves to the other side; a car that also drives forward
    stops in between.  If only the nose points backwards, it is the attitude that is reversed.
    """
    back = np.asarray(np.abs(slip) > 2.7)
    none = np.zeros(len(back), bool)
    if not back.any() or float(np.max(g.speed[back])) > FASTEST_REVERSE_M_S:
        return none
    if (np.abs(slip) < 0.45).sum() >= WINDOWS and not _turned_about(back, np.isfinite(slip)):
        return back
    ahead, right = changes(g.w, g.velocity, np.zeros(len(slip)))
    both = back[1:] & back[:-1]
    shown = []
    for expected, channel in ((ahead, "surge"), (right, "sway")):
        found = gained(g.drive, g.w, g.drive.motion[channel])
        known = both & np.isfinite(found) & np.isfinite(expected)
        x, y = expected[known], found[known]
        if np.abs(x).max(initial=0.0) > LEAST_M_S and y.any():
            shown.append(float(x @ y / np.sqrt((x @ x) * (y @ y))))
    return back if shown and max(shown) < -CORRELATION else none


def _turned_about(back: Mask, moving: Mask) -> bool:
    """Say whether the nose ever turns from the course to the opposite direction while the car moves."""
    return bool((moving[1:] & moving[:-1] & (back[1:] != back[:-1])).any())


def _nose(g: Going, slip: Array) -> Finding:
    """Judge whether the nose points along the course at all headings."""
    name = NOSE
    if g.track is None:
        return unseen(g, name, STEERING)
    moving = (g.speed > MOVING_M_S) & ~g.back
    reverse = f", {int(g.back.sum())} in reverse" if g.back.any() else ""
    if moving.sum() < WINDOWS:
        evidence = f"{int(moving.sum())} windows forward above {MOVING_M_S:g} m/s{reverse}"
        if g.back.sum() >= WINDOWS:
            evidence += ": the car reversed, or its front is taken for its back"
            return Finding(name, "unknown", evidence, STEERING)
        return open_(name, evidence, STEERING)
    going = g.velocity[moving] / g.speed[moving][:, None]
    cosine = np.einsum("ij,ij->i", g.forward[(g.w.first + g.w.last) // 2][moving], going)
    turned = float(np.ptp(np.unwrap(np.arctan2(going[:, 1], going[:, 0]))))
    pointing = np.mean(np.exp(1j * slip[moving]))
    low, high = np.quantile(cosine, [0.1, 0.9])
    evidence = f"cosine between nose and course {low:+.3f} to {high:+.3f}, course turned by {np.degrees(turned):.0f}"
    evidence += f" degrees{reverse}"
    if abs(pointing) < 0.8 or abs(np.angle(pointing)) > ASTRAY or np.median(cosine) < 0.8:
        backwards = " (or the car was reversing)" if high < -0.9 else ""
        if backwards and turned < TURNED and np.max(g.speed[moving]) < FASTEST_REVERSE_M_S:
            return Finding(name, "unknown", f"{evidence}{backwards}", STEERING)
        return Finding(name, "wrong", f"{evidence}: the nose does not follow the course{backwards}")
    if turned < TURNED:
        return open_(name, evidence, STEERING)
    return Finding(name, "ok", evidence)


def _upright(down: Array) -> Finding:
    """Judge whether the car is upright most of the time."""
    share = float(np.mean(down[:, 2] > 0.8))
    evidence = f"upright within 37 degrees for {share:.0%} of the frames"
    if share < 0.5:
        return Finding(UP, "wrong", evidence)
    return Finding(UP, "ok" if share > 0.9 else "unknown", evidence, "" if share > 0.9 else "drive on the wheels")


def _pitch(g: Going) -> Finding:
    """Judge whether the nose is up where the road climbs."""
    name, maneuver = CLIMB, "drive up a hill and down again at more than 3 m/s"
    if g.track is None:
        return unseen(g, name, maneuver)
    with np.errstate(invalid="ignore", divide="ignore"):
        climb = np.where((g.speed > MOVING_M_S) & ~g.back, -g.velocity[:, 2] / g.speed, np.nan)
    pitch = mean(g.drive, g.w, np.sin(g.drive.motion["pitch"]))
    known = np.isfinite(climb)
    if known.sum() >= WINDOWS:  # a body need not be level on its wheels
        offset = float(np.median((pitch - climb)[known]))
        if abs(offset) > ASTRAY:
            return Finding(name, "wrong", f"the nose points {np.degrees(offset):+.0f} degrees off the road throughout")
        middle = float(np.median(climb[known]))
        climb, pitch = climb - middle, pitch - middle - offset
    return compare(Relation(name, pitch, lambda _: climb, SLOPING, "of slope", maneuver, late_s=0.0, far=np.inf))


def _heading(g: Going) -> Finding:
    """Judge whether yaw turns as the course does."""
    name = COURSE
    if g.track is None:
        return unseen(g, name, STEERING)
    track, w = g.track, g.w
    yaw = np.unwrap(g.drive.motion["yaw"])[(w.first + w.last) // 2]

    def turned(angle: Array, moving: Mask) -> Array:
        good = following(w) & moving[1:] & moving[:-1]
        return np.asarray(np.where(good, (np.diff(angle) + np.pi) % (2 * np.pi) - np.pi, np.nan))

    def course(late_s: float) -> Array:
        velocity = track.velocity(w, late_s)
        moving = np.asarray(np.linalg.norm(velocity, axis=1) > MOVING_M_S)
        return turned(np.arctan2(velocity[:, 1], velocity[:, 0]), moving)

    found = turned(yaw, np.ones(len(yaw), bool))
    # The nose of a sliding car leads or follows its course, which is not a delay.
    return compare(Relation(name, found, course, 0.03, "rad", STEERING, late_s=0.0))


def _rates(drive: Drive, w: Windows, total: Array, answers: Mapping[str, str]) -> list[Finding]:
    """Judge whether the integrals of the rates are the turns of the attitude, about each axis.

    A rate of the opposite sign may equally mean a wrong sign of the angle, unless the angle is known to be right.
    """
    maneuvers = {
        "roll_rate": "drive over bumps and through quick bends",
        "pitch_rate": "brake hard, and drive over bumps",
        "yaw_rate": "turn, also while heading in other directions",
    }

    def turned(axis: int, late_s: float) -> Array:
        edges = np.stack([w.start, w.start + w.span]) - late_s
        inside = (edges[0] >= w.earliest - 1e-9) & (edges[1] <= w.latest + 1e-9)
        return np.asarray(np.where(inside, np.diff(np.interp(edges, drive.time, total[:, axis]), axis=0)[0], np.nan))

    witnesses = dict(zip(maneuvers, (LEAN, CLIMB, COURSE), strict=True))
    findings = []
    for axis, (channel, maneuver) in enumerate(maneuvers.items()):
        others = {name.replace("_rate", ""): turned(n, 0.0) for n, name in enumerate(maneuvers) if n != axis}
        finding = compare(
            Relation(
                channel.replace("_", " "),
                integral(drive, w, drive.motion[channel]),
                lambda late_s, axis=axis: turned(axis, late_s),  # type: ignore[misc]
                0.02,
                "rad",
                maneuver,
                TURN_UNITS,
                others,
                late_s=LATE_S if drive.rates_are_independent else 0.0,
                against="attitude",
            )
        )
        witness = witnesses[channel]
        if finding.verdict == "wrong" and TURNED_SIGN in finding.evidence and answers[witness] != "ok":
            evidence = f"{finding.evidence}; or the angle's is: {witness} does not tell"
            finding = finding._replace(evidence=evidence, blames="attitude")
        findings.append(finding)
    return findings
