"""From a profile to the parts of an engine: checked, designed and connected."""

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from motioncue import cueing, sources
from motioncue.core.channels import AHEAD_S, BODY, CHASSIS, CHASSIS_DTYPE, CUE, CUE_DTYPE, MOTION_DTYPE, MOVERS, WHEELS
from motioncue.core.interfaces import Algorithm, Stage
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.along import Recalled
from motioncue.engine.fitting import gains_for
from motioncue.engine.leaving import check_leaving, leaving_of
from motioncue.engine.reception import check_endpoints
from motioncue.engine.tick import Settings
from motioncue.errors import ConfigError, not_among
from motioncue.frames.intake import Intake
from motioncue.output import packet as custom
from motioncue.output.actuation import CarMotion, ChassisMotion, OutputChain, UpVector
from motioncue.output.check_in import check_exchanges
from motioncue.platforms import build as platforms
from motioncue.platforms.servo import PlatformPose, Servos
from motioncue.platforms.settings import ActuatorBounds, Platform, Posts
from motioncue.profile.explain import explain, shown
from motioncue.profile.profile import Output, Profile, Scaled, Source, parse_profile, platform_table, profile_text
from motioncue.safety.limiter import CueLimits, OutputLimits
from motioncue.transports.claim import Claims
from motioncue.transports.endpoint import BAUD, Endpoint, parse_endpoint
from motioncue.wire.packet import Derivation, Encoding

__all__ = ["actuate", "cue", "load_profile", "load_profile_on"]

ONE_FOR_ALL = ("rate_hz", "spin_us", "keep_awake", "core", "lock_memory")  # one loop sends all outputs


def load_profile(name_or_path: str | Path, *overrides: str | Mapping[str, Any]) -> Profile:
    """Return a checked profile: a built-in one by name, or a TOML file.

    Parameters
    ----------
    name_or_path : str or Path
        Such as ``"ccd-dk"`` or ``"rig.toml"``.
    *overrides : str or mapping
        ``KEY=VALUE`` with a dotted key, such as ``"output.rate_hz=250"``; or values by dotted key or in nested tables.

    Raises
    ------
    ConfigError
        If the profile does not exist, or a key or value is not allowed; names the path, what was found and what is
        allowed.
    EndpointError
        If an endpoint is not a URL that is allowed there.

    Examples
    --------
    >>> motioncue.load_profile("ccd-dk").output.rate_hz
    333.33
    """
    return _loaded(name_or_path, overrides, gains_for)


def load_profile_on(
    name_or_path: str | Path,
    platform: Platform | Mapping[str, Any] | str | Path | None,
    *overrides: str | Mapping[str, Any],
) -> Profile:
    """Return a checked profile on another platform, for which its preset ``auto`` is chosen and resolved.

    Outputs are checked with the profile's own platform: what is offered beside it is for scoring, not for sending.
    """
    if platform is None:
        return load_profile(name_or_path, *overrides)
    table = platform_table(platform)

    def scaled(found: Profile) -> Mapping[str, Any]:
        return gains_for(msgspec.structs.replace(found, platform=table))

    return msgspec.structs.replace(_loaded(name_or_path, overrides, scaled, placed=True), platform=table)


def _loaded(
    name_or_path: str | Path, overrides: Iterable[str | Mapping[str, Any]], scaled: Scaled, *, placed: bool = False
) -> Profile:
    """Return a checked profile, whose preset ``auto`` is resolved by `scaled`."""
    if not isinstance(name_or_path, str | os.PathLike):
        raise ConfigError(f"profile: found {shown(name_or_path)}, allowed is a name or a path")
    name = str(name_or_path)
    try:
        profile = parse_profile(profile_text(name), name=name, overrides=overrides, scaled=scaled, placed=placed)
    except ConfigError as error:
        if not str(error).endswith("source.system: missing, allowed is a text"):
            raise
        known = ", ".join(sources.having("intake"))  # the systems are not known where texts become settings
        raise ConfigError(f"{error}: {known}, or 'custom' with [source.packet]") from error
    check(profile)
    return profile


def check(profile: Profile) -> None:
    """Refuse a profile that cannot run; raises as `load_profile` does."""
    options_of(profile)
    algorithm_of(profile)
    check_pose(profile)
    check_source(profile.source)
    used: dict[str, str] = {}
    controllers: set[str] = set()
    for output in profile.outputs:
        streams = streams_of(output, profile.platform)
        chain_of(profile, output)
        highest = highest_rate_of(output)
        if output.rate_hz > highest:
            name = (output.packet and output.packet.preset) or output.system
            raise ConfigError(
                f"output.rate_hz: found {output.rate_hz:g}, allowed is up to {highest:g} Hz for {name}, "
                "the highest rate its document calls stable"
            )
        for key in ONE_FOR_ALL:
            found, first = getattr(output, key), getattr(profile.outputs[0], key)
            if found != first:
                raise ConfigError(f"output.{key}: found {found} beside {first}, allowed is the same for all outputs")
        if output.packet is not None and output.packet.check_in is not None:
            check_exchanges(output.packet.check_in)
            checks_in = output.packet.check_in.endpoint
            if checks_in is not None:
                parse_endpoint(checks_in, ("tcp",), "output.packet.check_in.endpoint")
                if checks_in in controllers:
                    raise ConfigError(
                        f"output.packet.check_in.endpoint: found {checks_in!r} twice, allowed is one output that "
                        "checks in at a controller"
                    )
                controllers.add(checks_in)
        for name, (url, encoding) in streams.items():
            endpoint = parse_endpoint(url, ("udp", "serial", "memory") if output.packet else ("udp",), f"output.{name}")
            if output.packet is not None:
                actuators = platforms.channels_of(profile.platform) if profile.platform is not None else {}
                custom.replies_of(output.packet, actuators, stream=endpoint.scheme == "serial")
            if endpoint.scheme == "serial":
                check_line(output, endpoint, encoding)
            if endpoint.scheme == "memory":
                check_memory(output, encoding)
            where = endpoint.path or f"{endpoint.host.lower().replace('localhost', '127.0.0.1')} {endpoint.port}"
            if where in used:
                what = "line" if endpoint.path else "port"
                raise ConfigError(
                    f"output.{name}: found {url!r}, where output.{used[where]} is sent already; allowed is a {what} of "
                    f"its own for each stream"
                )
            used[where] = name
    check_leaving(profile)


def check_source(source: Source) -> None:
    """Refuse endpoints at which a source cannot be received; a described source needs none."""
    if source.endpoints or source.packet is None:
        check_endpoints(sources.source(sources.system_of(source)), source.endpoints, source.forward)
        return
    for key in ("allow", "forward"):
        if getattr(source, key):
            raise ConfigError(f"source.{key}: allowed with source.endpoint, without one nothing is received")


def highest_rate_of(output: Output) -> float:
    """Return the highest rate that an output's document allows [Hz]."""
    if output.packet is not None:
        return output.packet.max_rate_hz or custom.MAX_RATE_HZ
    return float(sources.platform(output.system).MAX_RATE_HZ)


def check_memory(output: Output, encoding: Encoding) -> None:
    """Refuse what cannot be written into shared memory: all but one packet of one size."""
    assert output.packet is not None
    for key in ("text", "others", "check_in", "reply"):
        if getattr(output.packet, key):
            raise ConfigError(f"output.packet.{key}: allowed is none where the packet is written into shared memory")
    if output.shared:
        raise ConfigError("output.shared: found true, allowed is false with memory://: two would write over each other")


def check_line(output: Output, endpoint: Endpoint, encoding: Encoding) -> None:
    """Refuse a serial line that cannot carry the packets."""
    size, others = encoding.table.largest, encoding.others
    baud, bits = baud_of(output, endpoint), endpoint.bits_of_a_byte
    beside = sum(each.table.largest * bits / every_s for each, every_s in others if every_s)
    needs = math.ceil(size * bits * output.rate_hz + beside)
    if output.shared:
        raise ConfigError(
            f"output.shared: found true, allowed is false with {endpoint}: a line mixes the bytes of two programs"
        )
    if needs > baud:
        slower = math.floor(10 * max(0.0, baud - beside) / size / bits) / 10
        raise ConfigError(
            f"output.motion: {size} bytes x {bits} bits x {output.rate_hz:g} Hz"
            f"{f' + {beside:.0f} for the others' if beside else ''} = {needs} bits/s, more than the {baud} "
            f"baud of {endpoint}; allowed are a rate_hz of up to {slower:g} or a baud of at least {needs}"
        )


def baud_of(output: Output, endpoint: Endpoint) -> int:
    """Return the speed of an output's serial line [baud]."""
    return endpoint.baud or (output.packet and output.packet.baud) or BAUD


def check_pose(profile: Profile) -> None:
    """Refuse an algorithm whose cue is no pose, if the profile has a platform that takes one."""
    if profile.platform is not None and not profile.cueing.poses:
        name = profile.cueing.__struct_config__.tag
        able = ", ".join(name for name, table in ALGORITHMS.items() if table.poses)
        raise ConfigError(
            f"cueing.algorithm: found {name!r}, whose cue is no pose for [platform] to take; allowed are {able}"
        )


def options_of(profile: Profile) -> Any:
    """Return the source's options in the profile; raise ConfigError if they are not allowed."""
    source = sources.source(sources.system_of(profile.source))
    try:
        return msgspec.convert(profile.source.options, source.Options)
    except msgspec.ValidationError as error:
        raise ConfigError(f"source.options.{explain(error, profile.source.options, source.Options)}") from error


def streams_of(output: Output, platform: Platform | None = None) -> dict[str, tuple[str, Encoding]]:
    """Return the endpoint of each of a platform's streams, and how its packet is encoded."""
    if output.packet is not None and output.system != "custom":
        raise ConfigError(f"output.system: found {output.system!r}, allowed is 'custom' if there is [output.packet]")
    if output.packet is not None:
        if output.gauges is not None:
            raise ConfigError("output.gauges: allowed is none beside [output.packet]")
        actuators = platforms.channels_of(platform) if platform is not None else {}
        return {"motion": (output.motion, custom.encoding(output.packet, actuators))}
    streams = sources.platform(output.system).STREAMS
    urls = {name: getattr(output, name) for name in streams}
    return {name: (url, streams[name].encoding()) for name, url in urls.items() if url is not None}


def claims_of(outputs: Sequence[Output], platform: Platform | None) -> Claims:
    """Claim the places that outputs send to; raise EndpointError if another program drives the platform there."""
    return Claims(
        (f"output.{name}", url, output.shared)
        for output in outputs
        for name, (url, _) in streams_of(output, platform).items()
    )


def period_ns_of(profile: Profile) -> int:
    return round(1e9 / profile.rate_hz)


def algorithm_of(profile: Profile, rate_hz: float | None = None) -> Algorithm:
    """Return an algorithm at rest for the profile's platform, designed for the exact rate of the emitter's grid."""
    return cueing.design(profile.cueing, rate_hz or 1e9 / period_ns_of(profile), profile.platform)


def _same_cueing(before: Profile, profile: Profile) -> bool:
    """Say whether the algorithm of one profile is that of another."""
    same_platform = before.platform == profile.platform or not profile.cueing.for_platform
    return before.cueing == profile.cueing and same_platform


def _same_outputs(before: Profile, profile: Profile) -> bool:
    """Say whether the stages of one profile's outputs are those of another."""
    same = (before.output, before.platform) == (profile.output, profile.platform)
    return same and before.cueing.eases == profile.cueing.eases


def settings_of(profile: Profile, before: Settings | None = None, recalled: Recalled | None = None) -> Settings:
    """Return the profile's settings for the ticks; parts equal to those of `before` are shared with it.

    They bring what is `recalled` of earlier sessions, or else what those of `before` brought: these may not have come
    into force.
    """
    algorithm, limits, chains = None, None, None
    if before is not None and _same_cueing(before.profile, profile):
        algorithm = before.algorithm
    if before is not None and before.profile.limits == profile.limits:
        limits = before.limits
    if before is not None and _same_outputs(before.profile, profile):
        chains = before.chains
    leaving = leaving_of(profile)
    platform = None  # its controller may have it move the actuators, and then no output's chain has it
    if profile.platform is not None and profile.cueing.poses:
        prompt = msgspec.structs.replace(profile.platform, lag_s=None, lag_damping=None)
        platform = platforms.stage_of(prompt, period_ns_of(profile))
    return Settings(
        algorithm or algorithm_of(profile),
        limits or limits_of(profile),
        chains or [chain_of(profile, output) for output in profile.outputs],
        period_ns=period_ns_of(profile),
        bridge=profile.bridge,
        hold_s=profile.supervisor.hold_s,
        fade_s=profile.supervisor.fade_s,
        engage_s=profile.supervisor.engage_s,
        leave_s=(leaving.fade_s, leaving.sink_s),
        watch=profile.watch,
        head_m=profile.source.head_m,
        profile=profile,
        recalled=before.recalled if recalled is None and before is not None else recalled,
        platform=platform,
        any_fade_s=leaving.any_fade_s,
    )


def cue(
    profile: Profile | str | Path,
    motion: npt.NDArray[np.void],
    out: npt.NDArray[np.void] | None = None,
    *,
    ahead: npt.NDArray[np.void] | None = None,
) -> npt.NDArray[np.void]:
    """Return the engine's cues for `motion`, computed offline.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `load_profile` takes.
    motion : ndarray of MOTION_DTYPE, shape (n,)
        What each tick reads, one row per tick of ``output.rate_hz``.
    out : ndarray of CUE_DTYPE, shape (n,), optional
        Filled and returned; allocated if not given.
    ahead : ndarray of MOTION_DTYPE, shape (n, 7), optional
        For an algorithm that plans: what is known at each tick of what the car will do, such as `motioncue.preview`
        returns; rows with NaN are not known.

    Returns
    -------
    ndarray of CUE_DTYPE, shape (n,)
        Bit for bit the engine's cues for the same ticks at full weight; times are those of `motion`.  A motion that is
        not finite makes all later cues not finite; the engine refuses such frames.

    Raises
    ------
    ConfigError
        If the profile is refused, an array is not of its kind, `motion` and `out` share memory, or there is something
        ahead and the algorithm makes no use of it.

    Examples
    --------
    >>> motion = np.zeros(1000, motioncue.MOTION_DTYPE)
    >>> motion["surge"] = 1.0  # a steady 1 m/s^2 forward
    >>> cues = motioncue.cue("ccd-dk-classical", motion)
    >>> bool(0.0 < cues["pitch"][-1] < 0.11)  # the nose goes up, towards the 0.1 rad that stand for 1 m/s^2
    True
    """
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    motion = np.ascontiguousarray(motion)
    if motion.dtype != MOTION_DTYPE or motion.ndim != 1:
        raise ConfigError(f"motion: found {motion.dtype} of shape {motion.shape}, allowed is MOTION_DTYPE, shape (n,)")
    if out is not None:
        array = np.asarray(out)
        if array is not out or array.dtype != CUE_DTYPE or array.shape != motion.shape or not array.flags.carray:
            raise ConfigError(
                f"out: found {type(out).__name__} of {array.dtype}, shape {array.shape}, "
                f"allowed is CUE_DTYPE, shape {motion.shape}, contiguous and writeable"
            )
        if np.may_share_memory(motion, out):
            raise ConfigError("out: found memory of motion, allowed is an array of its own")
    algorithm = algorithm_of(profile)
    if ahead is not None:
        _check_ahead(profile, algorithm, ahead, len(motion))
    cues = algorithm.process(motion, out, ahead)
    limits_of(profile).process(cues)
    return cues


def _check_ahead(profile: Profile, algorithm: Algorithm, ahead: npt.NDArray[np.void], rows: int) -> None:
    """Refuse a preview that is not an array of its kind, or that nothing makes use of."""
    if not algorithm.sees_ahead:
        found = msgspec.to_builtins(profile.cueing)["algorithm"]
        raise ConfigError(f"ahead: found cueing.algorithm = {found!r}, allowed is one that plans: 'predictive'")
    allowed = (rows, len(AHEAD_S))
    if not isinstance(ahead, np.ndarray) or ahead.dtype != MOTION_DTYPE or ahead.shape != allowed:
        found = f"{ahead.dtype} of shape {ahead.shape}" if isinstance(ahead, np.ndarray) else type(ahead).__name__
        raise ConfigError(f"ahead: found {found}, allowed is MOTION_DTYPE, shape {allowed}")
    if not ahead.flags.c_contiguous:
        raise ConfigError("ahead: found an array that is not contiguous, allowed is one in the order of C")


def limits_of(profile: Profile) -> CueLimits:
    return _limits(profile.bounds(), period_ns_of(profile))


def limits_of_output(profile: Profile, output: Output) -> CueLimits:
    """Return the bounds that one output has in addition to the profile's."""
    return _limits(output.limits.bounds(), period_ns_of(profile))


def limits_of_car(profile: Profile, output: Output) -> CueLimits:
    """Return the bounds on the car's own motion, as one output sends it."""
    channels = [channel.name for channel in BODY]
    return _limits(output.limits.car_bounds(), period_ns_of(profile), channels)


def _limits(
    bounds: Mapping[str, Sequence[float | None]], period_ns: int, channels: Sequence[str] = MOVERS
) -> CueLimits:
    limits = CueLimits(channels)
    for channel, (value, rate, acceleration, jerk) in bounds.items():
        assert value is not None
        limits.add(channel, value, rate, acceleration, jerk, dt=period_ns * 1e-9)
    return limits


def chain_of(profile: Profile, output: Output) -> OutputChain:
    """Return the stages between the cue and one of the profile's outputs."""
    # An output without bounds has this stage too, because it may be given bounds while it runs.
    stages: list[Stage] = [OutputLimits(limits_of_output(profile, output))]
    reads = {channel for _, encoding in streams_of(output, profile.platform).values() for channel in encoding.reads}
    if reads & set(UpVector.fills):
        stages.append(UpVector())
    if reads & set(CarMotion.fills):
        pace = min(1.0, period_ns_of(profile) * 1e-9 / profile.supervisor.fade_s)
        stages.append(CarMotion(limits_of_car(profile, output), pace))
    poses = bool(reads & set(PlatformPose.fills))
    moves = profile.platform is not None and (poses or any(name.startswith("actuator_") for name in reads))
    lifts = moves and isinstance(profile.platform, Posts) and profile.platform.corners is not None
    if lifts or reads & set(ChassisMotion.fills):
        stages.append(chassis_of(profile, output, reads, lifts=lifts))
    if profile.platform is not None and moves:
        stages.append(platforms.stage_of(profile.platform, period_ns_of(profile), planned=profile.cueing.planned))
    if poses:
        stages.append(pose_of(profile, output))
    chain = OutputChain(stages)
    filled = [*(channel.name for channel in CUE if channel.name != "time"), *chain.fills]
    for channel in sorted(reads):
        if channel not in filled:
            raise ConfigError(f"output.packet: channel {not_among(channel, filled)}")
    return chain


def chassis_of(profile: Profile, output: Output, reads: Collection[str], *, lifts: bool = False) -> ChassisMotion:
    """Return the stage for what one output sends of wheels, suspension and cab, and its tactile signal.

    If it `lifts`, the platform's corners follow the wheels.
    """
    dt, tactile = period_ns_of(profile) * 1e-9, output.tactile
    posts, corners = None, (0.0, 1.0, 1.0, 1.0, 1.0)
    if lifts and isinstance(profile.platform, Posts) and profile.platform.corners is not None:
        table, posts = profile.platform.corners, corners_of(profile.platform)
        bounds = platforms.build(profile.platform).bounds
        # Of all four wheels together, a post gets one and a half times the largest: there is room for the cue then.
        slowest, softest = (min(getattr(each, name) for each in bounds) for name in ("speed", "acceleration"))
        corners = (table.gain, table.cutoff_hz, table.most_m, 0.5 * slowest, 0.5 * softest)
    return ChassisMotion(
        reads,
        output.limits.chassis_bounds(),
        dt=dt,
        pace=min(1.0, dt / profile.supervisor.fade_s),
        road=tactile.suspension,
        engine=tactile.engine,
        order=tactile.order,
        posts=posts,
        corners=corners,
    )


def corners_of(platform: Posts) -> list[tuple[float, float]]:
    """Return the places of four posts in the order of the wheels, or raise ConfigError unless each corner has one."""
    x, y = (sum(place[axis] for place in platform.at_m) / len(platform.at_m) for axis in range(2))
    found = [
        [place for place in platform.at_m if (place[0] > x) == front and (place[1] > y) == right]
        for front in (True, False)
        for right in (False, True)
    ]
    if [len(each) for each in found] != [1] * len(WHEELS):
        raise ConfigError(
            f"platform.corners: found {len(platform.at_m)} posts, allowed are four: one in front at the "
            f"left, one in front at the right, and two behind likewise"
        )
    return [each[0] for each in found]


def pose_of(profile: Profile, output: Output) -> PlatformPose:
    """Return the stage that knows the pose that the platform has; raise ConfigError if the cue is no pose."""
    if not profile.cueing.poses:
        name = profile.cueing.__struct_config__.tag
        raise ConfigError(f"cueing.algorithm: found {name!r}, whose cue is no pose, and an output sends the platform's")
    table, platform = output.pose, profile.platform
    lag_s, damping = table.lag_s, table.lag_damping
    bounds: Sequence[ActuatorBounds] = [ActuatorBounds(-1e3, 1e3, 1e6, 1e9)] * 6
    kinematics = None
    if platform is not None:
        built = platforms.build(platform)
        bounds, kinematics = built.bounds, built.kinematics
        if lag_s is None:
            lag_s, damping = platform.lag_s, damping or platform.lag_damping
    drives = Servos(bounds, period_ns_of(profile) * 1e-9, lag_s or 0.0, damping if lag_s else None, table.dead_time_s)
    return PlatformPose(drives, kinematics, feedback=table.feedback)


def actuate(
    profile: Profile | str | Path,
    cues: npt.NDArray[np.void],
    output: int = 0,
    *,
    motion: npt.NDArray[np.void] | None = None,
    weight: npt.NDArray[np.float64] | None = None,
    chassis: npt.NDArray[np.void] | None = None,
) -> npt.NDArray[np.void]:
    """Return what one output is sent for `cues`, computed offline.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `load_profile` takes.
    cues : ndarray of CUE_DTYPE, shape (n,)
        Cues such as `cue` returns, one row per tick.
    output : int
        Index of the output in the profile, from 0.
    motion : ndarray of MOTION_DTYPE, shape (n,), optional
        What the car does at each tick, for an output that sends channels such as ``car_surge``.
    weight : ndarray of float64, shape (n,), optional
        The share of it that is sent, 0 to 1; 1 if not given.  ``motion`` and ``weight`` of recorded ticks give what was
        sent.
    chassis : ndarray of CHASSIS_DTYPE, shape (n,), optional
        Wheels, suspension and cab at each tick, for an output that sends channels such as ``car_slip_front_left``; it
        sends 0 if not given.

    Returns
    -------
    ndarray of ACTUATION_DTYPE, shape (n,)
        Bit for bit what the engine encodes this output's packets from.

    Raises
    ------
    ConfigError
        If the profile is refused, an array is not of its kind, the output does not exist, or it sends the car's own
        motion and there is none.

    Examples
    --------
    >>> cues = motioncue.cue("ccd-hexapod", np.zeros(10, motioncue.MOTION_DTYPE))
    >>> motioncue.actuate("ccd-hexapod", cues)["actuators"].shape
    (10, 12)
    """
    profile = profile if isinstance(profile, Profile) else load_profile(profile)
    cues = np.ascontiguousarray(cues)
    if cues.dtype != CUE_DTYPE or cues.ndim != 1:
        raise ConfigError(f"cues: found {cues.dtype} of shape {cues.shape}, allowed is CUE_DTYPE, shape (n,)")
    if not isinstance(output, int | np.integer) or not 0 <= output < len(profile.outputs):
        raise ConfigError(f"output: found {shown(output)}, allowed are 0 to {len(profile.outputs) - 1}")
    chain = chain_of(profile, profile.outputs[output])
    if motion is None and set(CarMotion.fills) & set(chain.fills):
        raise ConfigError(f"motion: found None, allowed is what the car does: output {output} sends it")
    for name, array, dtype in (
        ("motion", motion, MOTION_DTYPE),
        ("weight", weight, np.dtype(np.float64)),
        ("chassis", chassis, CHASSIS_DTYPE),
    ):
        if array is not None and (array.dtype != dtype or array.shape != cues.shape):
            raise ConfigError(
                f"{name}: found {array.dtype} of shape {array.shape}, allowed is {dtype.name}, shape {cues.shape}"
            )
    sent: npt.NDArray[np.void] = chain.process(
        cues,
        None if motion is None else np.ascontiguousarray(motion),
        None if weight is None else np.ascontiguousarray(weight),
        None if chassis is None else np.stack([chassis[channel.name] for channel in CHASSIS], axis=1),
    )
    return sent


def intake_of(profile: Profile) -> Intake:
    """Return an intake for the profile's source."""
    source = profile.source
    derivation = Derivation(source.acceleration, source.derivative_delay_s)
    intake: Intake = sources.source(sources.system_of(source)).intake(options_of(profile), source.head_m, derivation)
    intake.watch(profile.watch)
    if source.car is not None:
        intake.read_car(source.car.offset, source.car.width, source.car.size or 0)
    if not source.endpoints:
        intake.take_ahead()
    return intake
