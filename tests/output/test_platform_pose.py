"""The pose that the platform has, as a headset's program reads it from shared memory."""

import errno
import math
import os
import socket
import struct
import subprocess
import sys
import time

import msgspec
import numpy as np
import pytest
from test_controllers import table_of

import motioncue
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError, EndpointError
from motioncue.output import packet as custom
from motioncue.platforms.build import build
from motioncue.transports.claim import Claims
from motioncue.transports.mapped import Written

NAME = f"motioncue-test-{os.getpid()}"
PRESET = {"preset": "openxr-motion-compensation"}
DT = 3_000_030e-9
linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is no file")


def profile_of(*overrides, pose=None, platform="hexapod-dim", rest=()):
    headset = {"motion": f"memory://{NAME}", "packet": PRESET, **({"pose": pose} if pose else {})}
    outputs = [{"motion": "udp://127.0.0.1:4124", "packet": LEGS}, headset] if platform else [headset]
    tables = {"output": [{"system": "custom", "gauges": None, **each} for each in outputs]}
    tables |= {"platform": {"preset": platform}} if platform else {}
    return motioncue.load_profile("program-dk", tables, "cueing={algorithm='classical', preset='simona'}", *overrides)


LEGS = {"size": 24, "fields": [{"offset": 4 * n, "type": "f4", "channel": f"leg_{n + 1}"} for n in range(6)]}


def read_by_the_program(data):
    """Return position and orientation in OpenXR's axes, as its tracker of type flypt makes them from the mapping.

    Restated from tracker.cpp: the orientation is that of pitch about x, yaw about y and minus roll about z, in
    DirectX's order roll, pitch, yaw; the position is sway, heave, -surge, turned by it.
    """
    sway, surge, heave, yaw, roll, pitch = struct.unpack("<6d", data)
    x, y, z = (math.radians(angle) for angle in (pitch, yaw, -roll))
    about_x = np.array([[1, 0, 0], [0, math.cos(x), -math.sin(x)], [0, math.sin(x), math.cos(x)]])
    about_y = np.array([[math.cos(y), 0, math.sin(y)], [0, 1, 0], [-math.sin(y), 0, math.cos(y)]])
    about_z = np.array([[math.cos(z), -math.sin(z), 0], [math.sin(z), math.cos(z), 0], [0, 0, 1]])
    turned = about_y @ about_x @ about_z
    return turned @ np.array([sway, heave, -surge]) / 1000.0, turned


def in_openxr(pose):
    """Return the same of a pose of the platform, from the glossary's signs alone: x right, y up, z back."""
    surge, sway, heave, roll, pitch, yaw = pose
    # Nose right about down, then nose up about right, then right side down about forward: axes forward, right, down.
    c, s = math.cos, math.sin
    heading = np.array([[c(yaw), -s(yaw), 0], [s(yaw), c(yaw), 0], [0, 0, 1]])
    nose = np.array([[c(pitch), 0, s(pitch)], [0, 1, 0], [-s(pitch), 0, c(pitch)]])
    side = np.array([[1, 0, 0], [0, c(roll), -s(roll)], [0, s(roll), c(roll)]])
    axes = np.array([[0, 1, 0], [0, 0, -1], [-1, 0, 0]])  # right, up and back in forward, right, down
    return np.array([sway, heave, -surge]), axes @ heading @ nose @ side @ axes.T


def packet_of(actuation):
    """Return the bytes that are written for an actuation, encoded by the description."""
    values = {field.offset: (field.channel, field.scale) for field in table_of(PRESET["preset"]).fields}
    return struct.pack("<6d", *(actuation[values[8 * n][0]] * values[8 * n][1] for n in range(6)))


def cues_of(poses):
    cues = np.zeros(len(poses), CUE_DTYPE)
    names = ("surge_displacement", "sway_displacement", "heave_displacement", "roll", "pitch", "yaw")
    for name, values in zip(names, np.asarray(poses, float).T, strict=True):
        cues[name] = values
    return cues


# Signs.


@pytest.mark.parametrize(
    "pose",
    [
        (0.05, 0, 0, 0, 0, 0),
        (0, 0.05, 0, 0, 0, 0),
        (0, 0, 0.05, 0, 0, 0),
        (0, 0, 0, 0.1, 0, 0),
        (0, 0, 0, 0, 0.1, 0),
        (0, 0, 0, 0, 0, 0.1),
        (0.04, -0.03, 0.02, 0.08, -0.06, 0.1),
    ],
)
@pytest.mark.parametrize("platform", ["hexapod-dim", "hexapod-on-sled", "hexapod-on-yaw-table"])
def test_the_program_reads_the_pose_that_the_platform_has(pose, platform):
    profile = profile_of("limits=none", platform=platform)
    sent = motioncue.actuate(profile, cues_of([pose] * 3000), 1)[-1]
    position, orientation = read_by_the_program(packet_of(sent))
    expected_position, expected_orientation = in_openxr(pose)
    np.testing.assert_allclose(orientation, expected_orientation, atol=1e-9)
    np.testing.assert_allclose(position, expected_position, atol=1e-9)


def test_signs_in_words():
    profile = profile_of("limits=none")
    sent = motioncue.actuate(profile, cues_of([(0, 0, 0, 0.1, 0.05, 0.02)] * 3000), 1)[-1]
    sway, surge, heave, yaw, roll, pitch = struct.unpack("<6d", packet_of(sent))
    assert roll == pytest.approx(math.degrees(0.1))  # right side down
    assert pitch == pytest.approx(math.degrees(0.05))  # nose up
    assert yaw == pytest.approx(-math.degrees(0.02))  # nose right is negative
    assert max(map(abs, (sway, surge, heave))) < 1e-6


# When.


@pytest.mark.parametrize(
    "pose",
    [
        {"lag_s": 0.05},
        {"lag_s": 0.05, "lag_damping": 0.7},
        {"lag_s": 0.03, "dead_time_s": 0.0275},
    ],
)
@pytest.mark.parametrize("platform", ["hexapod-dim", None])
def test_a_steady_motion_is_as_late_as_lag_and_dead_time_together(pose, platform):
    # A command that rises steadily is followed later by T of T s + 1, by 2 z / w, and by the dead time; a command is in
    # force for a tick, so that half a tick is added.
    speed = 0.02
    times = DT * np.arange(700)
    ramp = speed * np.maximum(0.0, times - 0.3)
    profile = profile_of("limits=none", pose=pose, platform=platform)
    sent = motioncue.actuate(profile, cues_of([(0, 0, height, 0, 0, 0) for height in ramp]), len(profile.outputs) - 1)
    late = times[-1] - 0.3 - sent["pose_up"][-1] / speed
    expected = pose.get("lag_s", 0.0) + pose.get("dead_time_s", 0.0)
    assert late == pytest.approx(expected + 0.5 * DT, abs=0.001)


def test_a_step_is_followed_as_the_equation_says():
    profile = profile_of("limits=none", pose={"lag_s": 0.04, "dead_time_s": 0.01}, platform=None)
    poses = [(0, 0, 0, 0, 0, 0)] * 10 + [(0, 0, 0, 0, 0.1, 0)] * 200
    sent = motioncue.actuate(profile, cues_of(poses), 0)
    since = DT * (np.arange(len(poses)) - 10) - 0.01
    expected = np.where(since > 0, 0.1 * (1 - np.exp(-np.maximum(since, 0.0) / 0.04)), 0.0)
    np.testing.assert_allclose(sent["pose_pitch"], expected, atol=1e-12)


def test_the_lag_of_the_platform_counts_if_the_output_says_none_and_what_leads_is_not_sent():
    # The legs lead by the platform's lag, so the platform is where it is asked to be, but for what is left of the lag.
    wave = [(0, 0, 0.02 * math.sin(2 * math.pi * 0.5 * k * DT), 0, 0, 0) for k in range(2000)]
    profile = profile_of("limits=none", "platform.lag_s=0.08")
    sent = motioncue.actuate(profile, cues_of(wave), 1)["pose_up"][600:]
    asked = np.array(wave)[600:, 2]
    assert np.abs(sent - asked).max() < 0.02 * 2 * math.pi * 0.5 * (0.08 / 16 + 2 * DT)
    late = profile_of("limits=none", pose={"lag_s": 0.08})
    undone = motioncue.actuate(late, cues_of(wave), 1)["pose_up"][600:]
    assert np.abs(undone - asked).max() > 0.003


# As the platform replies.


def emitted(profile, feedback, ticks=1500):
    """Return what the headset's output is sent after ticks in which the platform says where its legs are."""
    with Written(NAME, 48) as written:
        pipeline = Pipeline(profile, FakeClock(10**9), trace=ticks)
        how = custom.encoding(profile.outputs[1].packet, {})
        pipeline.emitter.add_output(written, None, how.table, how.packet, how.seal, 1)
        pipeline.intake.begin(10**9)
        times = np.array([[k, 10**9 + round(k * DT * 1e9), 0] for k in range(ticks)])
        pipeline.emitter.replay_ticks(times, np.tile(feedback, (ticks, 1)))
        return bytes(written.memory[:48])


@linux
@pytest.mark.parametrize("listens", [True, False])
def test_where_the_platform_says_it_is_counts_unless_that_is_not_wanted(listens):
    profile = profile_of(pose={"feedback": listens})
    built = build(profile.platform)
    pose = np.array([[0.03, -0.02, 0.01, 0.05, -0.04, 0.06]])
    feedback = np.zeros(12)
    feedback[:6] = built.kinematics.inverse(pose)[0]
    position, orientation = read_by_the_program(emitted(profile, feedback))
    expected = in_openxr(pose[0])
    if listens:
        np.testing.assert_allclose(position, expected[0], atol=1e-9)
        np.testing.assert_allclose(orientation, expected[1], atol=1e-9)
    else:
        assert position[1] < -0.1  # parked, the legs at their lowest
        np.testing.assert_allclose(orientation, np.eye(3), atol=1e-6)


# The memory.


@linux
def test_the_file_is_made_goes_with_the_run_and_stays_if_it_was_there():
    where = f"/dev/shm/{NAME}"
    with Written(NAME, 48) as written:
        assert os.stat(where).st_size == 48
        assert os.stat(where).st_mode & 0o777 == 0o600
        written.memory[0:4] = b"abcd"
        with open(where, "rb") as file:
            assert file.read(4) == b"abcd"
    assert not os.path.exists(where)
    with open(where, "wb") as file:
        file.write(b"x" * 4096)
    try:
        with Written(NAME, 48), open(where, "rb") as file:
            assert file.read() == bytes(48) + b"x" * 4048
        assert os.path.exists(where)
    finally:
        os.unlink(where)


@linux
def test_what_is_no_file_of_this_user_is_not_written(tmp_path):
    where = f"/dev/shm/{NAME}"
    (tmp_path / "other").write_bytes(b"keep")
    os.symlink(tmp_path / "other", where)
    try:
        with pytest.raises(EndpointError, match=f"memory://{NAME}: .* cannot be written"):
            Written(NAME, 48)
    finally:
        os.unlink(where)
    os.mkfifo(where)
    try:
        with pytest.raises(EndpointError, match="is not a file of this user"):
            Written(NAME, 48)
    finally:
        os.unlink(where)
    assert (tmp_path / "other").read_bytes() == b"keep"


@linux
@pytest.mark.rt
@pytest.mark.check
def test_another_process_reads_the_pose_of_a_run_and_it_is_at_rest_at_the_end():
    program = f"""if True:
        import mmap, os, struct, sys, time
        file = os.open("/dev/shm/{NAME}", os.O_RDONLY)
        memory = mmap.mmap(file, 48, prot=mmap.PROT_READ)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            surge = struct.unpack("<6d", memory[:])[1]
            if abs(surge) > 5:
                sys.exit(0)
            time.sleep(0.005)
        sys.exit(1)
    """
    motion = np.zeros(1, MOTION_DTYPE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as platform:
        platform.bind(("127.0.0.1", 0))
        port = platform.getsockname()[1]
        profile = profile_of("supervisor.hold_s=5", "supervisor.fade_s=0.3", "platform.park='neutral'")
        outputs = (msgspec.structs.replace(profile.outputs[0], motion=f"udp://127.0.0.1:{port}"), profile.outputs[1])
        with motioncue.Engine(msgspec.structs.replace(profile, output=outputs)) as engine:
            reader = subprocess.Popen([sys.executable, "-c", program])
            while reader.poll() is None:
                motion["frame_time"] += 0.01
                motion["surge"] = 3.0 * math.sin(2.0 * motion["frame_time"][0])
                engine.feed(motion)
                time.sleep(0.01)
            assert engine.stats()["outputs"][1]["refused"] == 0
    assert reader.returncode == 0
    assert not os.path.exists(f"/dev/shm/{NAME}")


def writing(written):
    """Return a pipeline that has written its first ten packets there."""
    profile = profile_of(pose={"feedback": False})
    pipeline = Pipeline(profile, FakeClock(10**9))
    how = custom.encoding(profile.outputs[1].packet, {})
    pipeline.emitter.add_output(written, None, how.table, how.packet, how.seal, 1)
    pipeline.emitter.run(ticks=10)
    return pipeline


CUT = """if True:
    import os, sys
    from test_platform_pose import *
    where = f"/dev/shm/{NAME}"
    with Written(NAME, 48) as written:
        pipeline = writing(written)
        for size in 0, 47, 4096, 0:
            os.truncate(where, size)
            pipeline.emitter.run(ticks=1)
            assert os.stat(where).st_size == max(size, 48)
            with open(where, "rb") as file:
                assert any(file.read(48))
        print(pipeline.emitter.outputs())
"""


@linux
def test_a_program_that_shrinks_the_file_does_not_end_the_run():
    path = os.pathsep.join([os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), os.pardir, "support")])
    done = subprocess.run(
        [sys.executable, "-c", CUT], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str([{"sent": 14, "unheard": 0, "refused": 0, "error": 0}])


@linux
def test_a_file_that_was_removed_or_replaced_is_noticed_and_made_or_taken_anew():
    where = f"/dev/shm/{NAME}"
    with Written(NAME, 48) as written:
        pipeline = writing(written)
        assert not written.renew()
        os.truncate(where, 0)
        os.unlink(where)
        pipeline.emitter.run(ticks=5)
        assert pipeline.emitter.outputs() == [{"sent": 15, "unheard": 5, "refused": 0, "error": 0}]
        assert written.renew()
        assert not written.renew()
        for replaced in (False, True):
            if replaced:
                with open(f"{where}-new", "wb") as file:
                    file.write(b"x" * 4096)
                os.rename(f"{where}-new", where)
                assert written.renew()
            with open(where, "rb") as file:
                before = file.read()
            assert any(before[:48])  # what was written last, not a step to zeros
            assert before[48:] == b"x" * (4048 if replaced else 0)
            written.memory[0:48] = bytes(48)
            pipeline.emitter.run(ticks=1)
            with open(where, "rb") as file:
                after = file.read()
            assert any(after[:48])
            assert after[48:] == before[48:]
        assert pipeline.emitter.outputs() == [{"sent": 17, "unheard": 5, "refused": 0, "error": 0}]
    assert os.path.exists(where)  # another program's
    os.unlink(where)


@linux
def test_memory_that_is_full_is_refused_and_leaves_nothing(monkeypatch):
    def full(file, data, at):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(EndpointError, match=rf"memory://{NAME}: .* cannot be written \(No space left"):
        Written(NAME, 48)
    assert not os.path.exists(f"/dev/shm/{NAME}")


# What is refused.


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("cueing={algorithm='direct'}", "found 'direct', whose cue is no pose"),
        (
            {"output": [{"motion": "memory://a", "packet": {"text": "{pose_up:.3f}"}}]},
            r"packet\.text: allowed is none",
        ),
        ({"output": [{"motion": "memory://a", "shared": True, "packet": PRESET}]}, r"output\.shared: found true"),
        ({"output": [{"motion": "memory://a/b", "packet": PRESET}]}, "a mapping's name has letters"),
        ({"output": [{"motion": "memory://a", "pose": {"lag_s": 0.7}, "packet": PRESET}]}, r"output\[0\]\.pose\.lag_s"),
    ],
)
def test_what_cannot_be_is_refused_by_name(override, says):
    tables = {"output": [{"motion": "memory://a", "packet": PRESET}]} if isinstance(override, str) else {}
    with pytest.raises((ConfigError, EndpointError), match=says):
        motioncue.load_profile("program-dk", "cueing={algorithm='classical', preset='simona'}", tables, override)


def test_two_runs_cannot_write_one_memory():
    first = Claims([("output.motion", f"memory://{NAME}", False)])
    with pytest.raises(EndpointError, match=r"output\.motion: .* drives the platform at memory://"):
        Claims([("output.motion", f"memory://{NAME}", False)])
    first.close()
