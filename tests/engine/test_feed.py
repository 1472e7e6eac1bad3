"""The one feeder: what connects when, what is told before, and the times of packages that have none."""

from helpers import frame, init

from motioncue.recording.packages import START_NS, Timed, arriving, feed
from motioncue.sources.city_car_driving import packets as city_car_driving

INIT, FRAME = init(), frame(velocity=(0.0, 0.0, 1.0))


def new_intake():
    return city_car_driving.intake(city_car_driving.Options())


def test_a_simulator_connects_with_its_first_package_and_again_after_it_has_left():
    first, second = new_intake(), new_intake()
    packages = [Timed(10, INIT), Timed(20, FRAME), Timed(30, b""), Timed(40, b""), Timed(50, INIT), Timed(60, FRAME)]
    assert list(feed(packages, first, second)) == [False, True, False, False, False, True]
    for intake in (first, second):
        assert intake.sessions == 2
        assert intake.accepted == 2
        assert [time for time, reason, _ in intake.events() if reason == "session_began"] == [10, 50]
    assert first.frame()["time"] == 60


def test_the_callback_gets_each_time_before_the_package_is_fed():
    intake, told = new_intake(), []
    packages = [Timed(10, INIT), Timed(20, FRAME), Timed(30, FRAME)]
    for _ in feed(packages, intake, before=lambda time_ns: told.append((time_ns, intake.accepted))):
        pass
    assert told == [(10, 0), (20, 0), (30, 1)]


def test_packages_are_read_as_they_are_fed():
    """So that whoever feeds can stop, and times can depend on what has come of the packages before."""
    intake, read = new_intake(), []

    def packages():
        for number in range(10):
            read.append(number)
            yield Timed(10 * number, FRAME if number else INIT)

    for is_frame in feed(packages(), intake):
        if is_frame:
            break
    assert read == [0, 1]


def test_packages_have_the_times_of_the_file():
    intake = new_intake()
    timed = list(arriving([INIT, FRAME, FRAME], [7.5, 8.0, 8.25], 60.0, intake))
    assert [each.time_ns - START_NS for each in timed] == [0, 500_000_000, 750_000_000]


def test_without_times_frames_come_at_their_rate_and_other_packages_take_no_time():
    intake, times = new_intake(), []
    packages = [INIT, FRAME, INIT, FRAME, FRAME]
    for _ in feed(arriving(packages, None, 50.0, intake), intake, before=times.append):
        pass
    assert [time - START_NS for time in times] == [0, 0, 20_000_000, 20_000_000, 40_000_000]
    assert [each.time_ns for each in arriving(packages, None, None, intake)] == [START_NS] * 5
