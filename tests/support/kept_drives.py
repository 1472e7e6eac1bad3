"""The short drives in data/drives: how each was recorded, and where it is stored."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.replay import START_NS, keep
from motioncue.profile.profile import Record
from motioncue.recording.recording import read
from motioncue.sources.city_car_driving.packets import FRAME
from motioncue.virtual.installation import drive_packages, recorded_packages

FOLDER = Path(__file__).parents[1] / "data" / "drives"


class Making(NamedTuple):
    """How a drive is recorded."""

    profile: tuple[str, ...]
    """Argument of `motioncue.load_profile`."""
    begins: float
    """Start of the drive in the virtual car's tour, or in the real sample [s]."""
    retune: dict
    """The setting changed while running."""


LEGS = ", ".join(
    f'{{ offset = {4 * leg}, type = "f4", channel = "leg_{leg + 1}", measure = "stroke" }}' for leg in range(6)
)
HEXAPOD = (
    "platform.preset=hexapod-simona",
    "platform.leg.speed_m_s=5.0",  # quick enough for fades of COMMON
    "platform.leg.acceleration_m_s2=100.0",
    "platform.rise_s=2.5",  # so that it has risen again when the drive ends
    f'output={{ motion = "udp://127.0.0.1:4445", packet = {{ size = 24, fields = [{LEGS}] }} }}',
)
COMMON = ("supervisor.fade_s=0.3", "output.rate_hz=100")  # so that much happens in a few seconds and a small file
MAKINGS = {
    "city-car-driving": Making(
        ("ccd-dk-classical",), 30.0, {"cueing.surge.gain": 0.3, "source.head_m": [0.4, -0.3, 0.6]}
    ),
    "beamng": Making(("beamng-dk",), 14.5, {"limits.pitch_rate": "none", "source.head_m": [0.1, -0.4, 0.7]}),
    "beamng-simulink": Making(
        ("beamng-simulink-dk", "source.bridge=linear", f"source.options.simulink_time_s={1 / 60}"),
        15.5,
        {"source.bridge": "hold"},
    ),
    "morai": Making(("morai-dk", "source.options.imu=true"), 16.0, {"limits.surge.value_m_s2": 2.0}),
    "vehicle-physics-pro": Making(
        ("vehicle-physics-pro-dk", "cueing.algorithm=classical", "cueing.preset=utias", *HEXAPOD),
        15.5,
        {"cueing.tilt.rate_limit_deg_s": 2.0, "supervisor.hold_s": 0.2},
    ),
}
"""The drives by source system."""


# From and to [s] of the source, since the drive begins; when its first package comes [s].
DRIVEN = ((0.0, 1.2, 0.0), (1.5, 2.2, 1.5), (2.2, 2.6, 2.65), (10.0, 11.2, 3.05), (12.0, 12.5, 4.4))
PAUSE = (2.2, 2.65)  # the last package is repeated
BROKEN_S = 1.0  # a package that is cut short; on a stream, which would wait for the byte, one with a NaN
RETUNE_S, PARK_S, ENGAGE_S, CONNECT_S, END_S = 1.75, 4.0, 4.3, 4.39, 4.9


def path_of(system, folder=FOLDER):
    """Return the file of a system's drive."""
    return folder / f"{system}.mcap"


def arrivals(system, begins):
    """Return the arrival [s] and the bytes of each package, in order of time."""
    if system == "city-car-driving":
        packages, first = recorded_packages(system, "sample"), 1
    else:
        packages, first = drive_packages(system, "tour", 60.0), 0
    times = np.cumsum([package.duration for package in packages]) - begins
    rows = [(0.0, package.package) for package in packages[:first]]
    for since, until, comes in DRIVEN:
        if comes > CONNECT_S:
            rows += [(comes, package.package) for package in packages[:first]]
        own = [package for package, time in zip(packages, times, strict=True) if since <= time < until]
        when = times[(times >= since) & (times < until)] - since + comes
        rows += [(float(time), package.package) for time, package in zip(when, own, strict=True)]
    last = max((row for row in rows if row[0] < PAUSE[0]), key=lambda row: row[0])
    rows += [(float(time), last[1]) for time in np.arange(PAUSE[0] + 1 / 60, PAUSE[1], 1 / 60)]
    cut = 19 if system == "beamng" else -1  # longer ones are read by offset
    rows.append((BROKEN_S, broken(last[1]) if first else last[1][:cut]))
    return sorted(rows, key=lambda row: row[0])


def broken(package):
    """Return a City Car Driving frame whose acceleration is NaN."""
    row = np.frombuffer(package, FRAME.dtype).copy()
    row["acceleration"] = np.nan
    return row.tobytes()


def record(system, folder=FOLDER):
    """Record a system's drive anew, through the engine's own loops and recorder; return the file."""
    making = MAKINGS[system]
    pipeline = Pipeline(motioncue.load_profile(*making.profile, *COMMON), FakeClock(START_NS))
    rng = np.random.default_rng(7)
    doings = [
        (0.0, lambda: pipeline.intake.begin(START_NS)),
        (RETUNE_S, lambda: pipeline.retune(making.retune)),
        (PARK_S, pipeline.emitter.park),
        (ENGAGE_S, pipeline.emitter.engage),
        (CONNECT_S, lambda: pipeline.intake.begin(START_NS + round(1e9 * CONNECT_S))),
        (END_S, pipeline.emitter.stop),
    ]
    came = START_NS

    def feed(package, time):
        nonlocal came
        came = max(came + 1, time)
        pipeline.intake.feed(package, came)

    for time, package in arrivals(system, making.begins):
        late = round(1e9 * time) + int(rng.integers(0, 4_000_000))
        doings.append((late * 1e-9, lambda package=package, late=late: feed(package, START_NS + late)))
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "made.mcap"
        with pipeline.record(Record(file=str(made)), {}) as recorder:
            for time, do in sorted(doings, key=lambda doing: doing[0]):
                pipeline.emitter.run(until_ns=START_NS + round(1e9 * time))
                do()
            pipeline.emitter.run(until_ns=START_NS + round(1e9 * (END_S + 0.6)))
        assert recorder.counts()["lost"] == 0
        return keep_drive(system, read(made), folder)


def keep_drive(system, drive, folder=FOLDER):
    """Write a drive for storage, without traces of the machine and the time of its recording."""
    taken = {event.detail: event.time for event in drive.events if event.what == "retuned"}
    settings = [row._replace(time=taken.get(row.number, START_NS)) for row in drive.settings]
    drive = drive._replace(settings=settings, about={})
    about = {"host": "", "system": "", "python": ""}
    return keep(drive, path_of(system, folder), force=True, about=about)
