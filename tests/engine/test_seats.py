"""Several rigs on one simulator: each feels the car at its own head, and they are operated together."""

import json
import os

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from engine_rig import Background, Rig, neutral, whole
from helpers import FRAMES, PACKAGES, Sink, eventually
from same_bits import assert_same_bits

import motioncue
from motioncue.cli import cli
from motioncue.core.clock import FakeClock
from motioncue.engine.journal import SeatLog
from motioncue.engine.pipeline import Pipeline
from motioncue.engine.reception import beside_driver
from motioncue.errors import ConfigError, EndpointError
from motioncue.wire.motionsim import MOTION

BEGIN_NS = 10**9
HEADS = {"driver": (0.3, -0.4, 0.5), "passenger": (-0.6, 0.5, 0.7)}  # forward, right, up [m]


def pipeline_of(name, head_m, *overrides):
    profile = motioncue.load_profile(name, f"source.head_m={list(head_m)}", *overrides)
    return Pipeline(profile, FakeClock(BEGIN_NS), trace=100_000)


def run(pipelines, fed, packages, rate_hz):
    """Run pipelines side by side; only `fed` is given the packages."""
    fed.intake.begin(BEGIN_NS)
    for number, package in enumerate(packages):
        now = BEGIN_NS + round(number * 1e9 / rate_hz)
        for pipeline in pipelines:
            pipeline.emitter.run(until_ns=now)
        fed.intake.feed(package, now)
    for pipeline in pipelines:
        pipeline.emitter.run(until_ns=now + 500_000_000)


def turning(count, rate_hz, yaw_rate, yaw_bent):
    """Return BeamNG's packets of a car that stands, but for turning about its up axis."""
    time = np.arange(count) / rate_hz
    yaw = yaw_rate * time + 0.5 * yaw_bent * time**2
    return [
        MOTION.encode({"yaw": float(at), "yaw_rate": float(rate), "yaw_acceleration": yaw_bent})
        for at, rate in zip(np.remainder(yaw + np.pi, 2 * np.pi) - np.pi, yaw_rate + yaw_bent * time, strict=True)
    ]


@pytest.mark.parametrize("algorithm", ["classical", "predictive"])
def test_a_seat_gets_bit_for_bit_what_it_would_get_alone(algorithm):
    """A stream's frames, over the real drive: the passenger's pipeline fed by itself is the reference."""
    name = "ccd-dk-classical" if algorithm == "classical" else "ccd-dk-washout"
    driver, seat, alone = (pipeline_of(name, HEADS[who]) for who in ("driver", "passenger", "passenger"))
    driver.intake.add_beside(seat.intake)
    packages = PACKAGES[:400]
    run([driver, seat], driver, packages, 60.0)
    run([alone], alone, packages, 60.0)
    assert seat.intake.accepted == len(FRAMES[:399])
    assert_same_bits(seat.emitter.trace, alone.emitter.trace)
    assert np.abs(seat.emitter.trace["motion"]["sway"] - driver.emitter.trace["motion"]["sway"]).max() > 0.01


def test_each_head_feels_its_own_acceleration():
    """Of a car that turns about its up axis at w, w' in compass sense: a = w' x r + w x (w x r), r from the middle."""
    bent, rate_hz = 0.4, 100.0
    driver, seat = (pipeline_of("beamng-dk", head, "source.bridge=hold") for head in HEADS.values())
    driver.intake.add_beside(seat.intake)
    run([driver, seat], driver, turning(300, rate_hz, 0.2, bent), rate_hz)
    for pipeline, (forward, right, _) in zip((driver, seat), HEADS.values(), strict=True):
        rows = pipeline.emitter.trace
        rows = rows[rows["weight"] == 1.0]
        assert len(rows) > 500
        w = rows["motion"]["yaw_rate"]
        np.testing.assert_allclose(rows["motion"]["surge"], -right * bent - forward * w**2, rtol=0, atol=1e-5)
        np.testing.assert_allclose(rows["motion"]["sway"], forward * bent - right * w**2, rtol=0, atol=1e-5)


def test_a_seat_that_has_left_gets_nothing_and_those_behind_it_go_on():
    pipelines = [pipeline_of("ccd-dk", HEADS["driver"]) for _ in range(4)]
    first, *seats = (each.intake for each in pipelines)
    for seat in seats:
        first.add_beside(seat)
    first.begin(0)
    for number, package in enumerate(PACKAGES[:101]):
        if number == 51:
            first.remove_beside(seats[1])
            first.remove_beside(seats[1])  # once more does nothing
        first.feed(package, number * 16_000_000)
    assert [each.accepted for each in (first, *seats)] == [100, 100, 50, 100]


def test_a_seat_takes_the_drivers_source_but_for_head_and_bridge():
    driver = motioncue.load_profile("beamng-dk", "source.bridge=hold")
    own = motioncue.load_profile("ccd-dk-classical", "source.head_m=[0, 0.5, 1]", "source.bridge=linear")
    found = beside_driver(own, driver)
    assert found.source.system == "beamng"
    assert (found.source.head_m, found.source.bridge) == ((0.0, 0.5, 1.0), "linear")
    assert msgspec.structs.replace(found, source=own.source) == own


def test_who_comes_in_the_middle_of_a_session_is_told_its_axes():
    """Its own packages, from then on, are a whole session: what announced the car's axes is the first."""
    driver, seat, alone = (pipeline_of("ccd-dk", HEADS["passenger"]).intake for _ in range(3))
    driver.begin(0)
    for number, package in enumerate(PACKAGES[:80]):
        if number == 50:
            driver.add_beside(seat)
            alone.begin(0)
            alone.feed(PACKAGES[0], number * 16_000_000)
        for each in (driver, alone) if number >= 50 else (driver,):
            each.feed(package, number * 16_000_000)
    assert (seat.accepted, seat.rejected, seat.sessions) == (30, {}, 1)
    assert_same_bits(seat.frame(), alone.frame())


def test_who_comes_before_a_new_session_has_told_its_axes_takes_nothing_until_then():
    """Those of the session before are another car's."""
    driver, seat = (pipeline_of("ccd-dk", HEADS["passenger"]).intake for _ in range(2))
    driver.begin(0)
    for number, package in enumerate(PACKAGES[:50]):
        driver.feed(package, number * 16_000_000)
    driver.begin(1_000_000_000)
    driver.add_beside(seat)
    for number, package in enumerate([*PACKAGES[50:60], PACKAGES[0], *PACKAGES[60:80]]):
        driver.feed(package, 1_000_000_000 + number * 16_000_000)
    assert driver.rejected == seat.rejected == {"before_init": 10}
    assert (seat.accepted, seat.sessions) == (20, 1)


# Whole engines.


@pytest.fixture
def pair(tmp_path):
    """A driver's engine and a passenger's, each with its DK, and a simulator that drives them."""
    with Rig(tmp_path) as rig, Sink() as motion, Sink() as gauges:
        driver = rig.engine("ccd-dk")
        profile = motioncue.load_profile(
            "ccd-dk",
            "limits=none",
            "supervisor.fade_s=0.1",
            f"source.head_m={list(HEADS['passenger'])}",
            f"output.motion={motion.url}",
            f"output.gauges={gauges.url}",
        )
        with Background(rig.url):
            yield driver, profile, motion, rig


@pytest.mark.rt
def test_what_is_asked_of_the_driver_is_asked_of_all(pair):
    driver, profile, motion, rig = pair
    with driver:
        with motioncue.Engine(profile, beside=driver) as seat:
            assert driver.seats == [seat]
            eventually(lambda: whole(driver) and whole(seat))
            driver.park()
            eventually(lambda: all(each.newest()["weight"][0] == 0.0 for each in (driver, seat)))
            driver.engage()
            eventually(lambda: whole(driver) and whole(seat))
            with pytest.raises(ConfigError, match="allowed is to feed that one"):
                seat.feed(np.zeros(1, motioncue.MOTION_DTYPE))
            seat.park()  # by itself
            eventually(lambda: seat.newest()["weight"][0] == 0.0)
            assert whole(driver)
        assert driver.seats == []
        assert neutral(motion.packets[-1])
        with motioncue.Engine(profile, beside=driver) as later:  # another one, while the driver drives
            eventually(lambda: whole(later))
            driver.stop()
            assert later.over
            assert driver.over
        assert neutral(motion.packets[-1])
        assert neutral(rig.motion.packets[-1])


@pytest.mark.rt
def test_a_seat_beside_a_seat_is_one_of_the_drivers(pair):
    driver, profile, _, _ = pair
    with Sink() as motion, Sink() as gauges, driver, motioncue.Engine(profile, beside=driver) as seat:
        output = msgspec.structs.replace(profile.outputs[0], motion=motion.url, gauges=gauges.url)
        with motioncue.Engine(msgspec.structs.replace(profile, output=output), beside=seat) as third:
            assert driver.seats == [seat, third]
            eventually(lambda: whole(driver) and whole(seat) and whole(third))
            seat.stop()
            driver.hold()
            driver.park()
            eventually(lambda: third.newest()["weight"][0] == 0.0)
            third.engage()
            eventually(lambda: whole(third))  # the simulator's frames still come
            third.retune(msgspec.structs.replace(third.profile, source=motioncue.load_profile("beamng-dk").source))
            assert third.requested.source.system == "city-car-driving"


@pytest.mark.rt
def test_who_comes_to_a_parked_run_is_parked(pair):
    driver, profile, _, _ = pair
    with driver:
        eventually(lambda: whole(driver))
        driver.park()
        with motioncue.Engine(profile, trace=20_000, beside=driver) as seat:
            eventually(lambda: seat.stats()["frames_received"] > 200)
            assert not seat.trace["weight"].any()
            driver.engage()
            eventually(lambda: whole(seat))
    with pytest.raises(RuntimeError, match="that engine has ended"):
        motioncue.Engine(profile, beside=driver).start()


@pytest.mark.rt
def test_a_start_that_is_interrupted_leaves_nothing_open(pair, monkeypatch):
    driver, profile, _, _ = pair
    with driver:

        class Interrupting(list):
            def append(self, _):
                raise KeyboardInterrupt

        monkeypatch.setattr(driver, "seats", Interrupting())
        with pytest.raises(KeyboardInterrupt):
            motioncue.Engine(profile, beside=driver).start()
        monkeypatch.setattr(driver, "seats", [])
        with motioncue.Engine(profile, beside=driver) as seat:  # the platform is free
            eventually(lambda: whole(seat))


@pytest.mark.rt
def test_a_seat_is_refused_beside_nothing_and_at_the_drivers_platform(pair):
    driver, profile, _, rig = pair
    with pytest.raises(RuntimeError, match="does not run yet"):
        motioncue.Engine(profile, beside=driver).start()
    with driver:
        taken = msgspec.structs.replace(
            profile, output=msgspec.structs.replace(profile.outputs[0], motion=rig.motion.url)
        )
        with pytest.raises(EndpointError, match="drives"):
            motioncue.Engine(taken, beside=driver).start()
        assert driver.seats == []


@pytest.mark.rt
def test_seats_that_start_with_their_driver_are_open_before_anything_is_sent(pair):
    driver, profile, motion, rig = pair
    seat = motioncue.Engine(profile, beside=driver)
    missing = {"motion": "serial:///dev/no-such-line?baud=115200", "gauges": None, "system": "custom"}
    packet = {"size": 4, "fields": [{"offset": 0, "type": "f4", "channel": "surge"}]}
    last = motioncue.Engine(motioncue.load_profile("ccd-dk", {"output": {**missing, "packet": packet}}), beside=driver)
    with pytest.raises(EndpointError, match=r"no-such-line.*: cannot send there"):
        driver.start(seat, last)
    assert rig.motion.packets == motion.packets == []
    assert driver.seats == []
    for each in (driver, seat):
        with pytest.raises(RuntimeError, match="has been started already"):
            each.start()
    again = rig.engine("ccd-dk")  # everything has been let go
    other = motioncue.Engine(profile, beside=again)
    again.start(other)
    try:
        assert again.seats == [other]
        eventually(lambda: whole(again) and whole(other))
    finally:
        again.stop()
    assert other.over
    assert neutral(motion.packets[-1])
    assert neutral(rig.motion.packets[-1])


@pytest.mark.rt
@pytest.mark.slow
def test_the_command_runs_seats_and_says_what_became_of_each(tmp_path):
    with Rig(tmp_path) as rig, Sink() as motion, Background(rig.url):
        texts = {"driver": rig.motion.url, "passenger": motion.url}
        for name, url in texts.items():
            (tmp_path / f"{name}.toml").write_text(
                f'[source]\nsystem = "city-car-driving"\nendpoint = "{rig.url}"\nhead_m = {list(HEADS[name])}\n'
                f'[cueing]\nalgorithm = "direct"\n[output]\nsystem = "dk"\nmotion = "{url}"\n'
            )
        words = ["run", "--profile", str(tmp_path / "driver.toml"), "--seat", str(tmp_path / "passenger.toml")]
        done = CliRunner().invoke(cli, [*words, "--duration", "6", "--json"])
        assert done.exit_code == 0, done.output
        stats = json.loads(done.stdout.splitlines()[-1])
        assert stats["frames_received"] > 100
        assert stats["seats"]["passenger"]["frames_received"] > 100
        assert neutral(motion.packets[-1])
        assert not all(map(neutral, motion.packets))


def lines_of(caplog):
    return [record.getMessage() for record in caplog.records]


@pytest.mark.rt
def test_a_line_of_the_log_says_which_seat_it_is_about(pair, caplog, tmp_path):
    driver, profile, _, rig = pair
    caplog.set_level("DEBUG", "motioncue")
    profile = msgspec.structs.replace(profile, name="passenger")
    with driver, Sink() as motion, Sink() as gauges:
        output = msgspec.structs.replace(profile.outputs[0], motion=motion.url, gauges=gauges.url)
        other = msgspec.structs.replace(profile, output=output)  # of the same name
        file = tmp_path / "other.mcap"
        with (
            motioncue.Engine(profile, beside=driver) as one,
            motioncue.Engine(other, beside=driver, record=file) as two,
        ):
            eventually(lambda: whole(driver) and whole(one) and whole(two))
            two.park()
            eventually(lambda: two.newest()["weight"][0] == 0.0)
            two.retune("supervisor.fade_s=0.2")
            eventually(lambda: "retuned" in " ".join(lines_of(caplog)))
    told = lines_of(caplog)
    assert "seat passenger: beside ccd-dk" in told
    assert "seat passenger 2: beside ccd-dk" in told
    (parked,) = [line for line in told if line.endswith("to parking: operator_park")]
    assert parked.startswith("seat passenger 2: ")
    assert [line for line in told if "retuned: " in line] == ["seat passenger 2: retuned: supervisor.fade_s 0.1 → 0.2"]
    began = sorted(line for line in told if line.endswith("offline to engaging: input"))
    assert began == [f"{who}offline to engaging: input" for who in ("", "seat passenger 2: ", "seat passenger: ")]
    assert rig.url in " ".join(line for line in told if not line.startswith("seat "))


def test_a_line_with_signs_of_formatting_is_logged_as_it_is(caplog):
    caplog.set_level("INFO", "motioncue")
    log = SeatLog("50 % left")
    log.warning("laps: %s", "a %s b")
    log.info("nothing to fill in")
    assert lines_of(caplog) == ["seat 50 % left: laps: a %s b", "seat 50 % left: nothing to fill in"]


def test_rigs_on_one_simulator_keep_laps_in_files_of_their_own(tmp_path):
    def profile_of(name, laps):
        found = motioncue.load_profile("ccd-hexapod", "cueing={algorithm='predictive'}", f"laps={laps}")
        return msgspec.structs.replace(found, name=name)

    (tmp_path / "other").mkdir()
    (tmp_path / "same").symlink_to(tmp_path)
    monza = f"{{folder='{tmp_path}', name='monza'}}"
    driver = motioncue.Engine(profile_of("driver", monza))
    # Wine's Python does not see through a link.
    same = [tmp_path / "same"] if os.path.realpath(tmp_path / "same") == os.path.realpath(tmp_path) else []
    for folder in (tmp_path, *same, tmp_path / "other" / ".."):
        with pytest.raises(ConfigError, match=r"laps: found .*monza\.laps', which the driver keeps too"):
            motioncue.Engine(profile_of("left", f"{{folder='{folder}', name='monza'}}"), beside=driver)
    left = motioncue.Engine(profile_of("left", f"{{folder='{tmp_path}'}}"), beside=driver)  # by the profile's name
    with pytest.raises(ConfigError, match=r"left\.laps', which seat left keeps too"):
        motioncue.Engine(profile_of("left", f"{{folder='{tmp_path}'}}"), beside=driver)
    right = motioncue.Engine(profile_of("right", f"{{folder='{tmp_path / 'other'}', name='monza'}}"), beside=driver)
    assert right.profile.laps is not None
    del left  # it was never started
    assert motioncue.Engine(profile_of("left", f"{{folder='{tmp_path}'}}"), beside=driver).seats == []
    with pytest.raises(ConfigError, match="record") as refused:
        motioncue.Engine(profile_of("front", f"{{folder='{tmp_path}'}}"), beside=driver, record=5)
    again = motioncue.Engine(profile_of("front", f"{{folder='{tmp_path}'}}"), beside=driver)
    assert again._log.seat == "front", refused  # which keeps the one that was refused alive, as a prompt does
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    circle = motioncue.Engine(profile_of("back", f"{{folder='{tmp_path / 'circle'}'}}"), beside=driver)
    assert circle.profile.laps is not None  # that nothing can be kept there is said when it is tried
