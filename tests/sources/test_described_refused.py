"""Descriptions and packets that are refused: the error names the key, what was found and what is allowed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue.errors import ConfigError, PacketError
from motioncue.profile.profile import parse_profile
from motioncue.sources import DescribedSource, source
from motioncue.sources.described.channels import CHANNELS, UNITS

START = 1_000_000_000
REST = 'cueing = { algorithm = "direct" }\noutput = { system = "dk", motion = "udp://127.0.0.1:4445" }\n'
HEAD = 'source.system = "custom"\nsource.endpoint = "udp://127.0.0.1:20777"\n[source.packet]\n'
GOOD = {
    "size": "44",
    "world": '["east", "north", "up"]',
    "constants": '[{ offset = 0, bytes = "4d 43 01 00" }]',
    "fields": """[
        { offset = 4, type = "f4", channel = "surge" },
        { offset = 8, type = "f4", channel = "sway" },
        { offset = 12, type = "f4", channel = "heave" },
        { offset = 16, type = "f4", channel = "roll" },
        { offset = 20, type = "f4", channel = "pitch" },
        { offset = 24, type = "f4", channel = "yaw" },
        { offset = 28, type = "f4", channel = "velocity_x" },
        { offset = 32, type = "f4", channel = "velocity_y" },
        { offset = 36, type = "f4", channel = "velocity_z" },
        { offset = 40, type = "f4", channel = "engine_speed" },
    ]""",
}


def described(**changes):
    """Return the source of the good description with keys changed, or removed if None."""
    keys = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    text = "\n".join(f"{key} = {value}" for key, value in keys.items())
    return DescribedSource(parse_profile(REST + HEAD + text).source.packet)


def fields(**changes):
    """Return the good fields with some replaced by channel; a text that is empty removes the field."""
    lines = GOOD["fields"].splitlines()
    for channel, line in changes.items():
        place = next(index for index, each in enumerate(lines) if f'"{channel}"' in each)
        lines[place] = f"{line}," if line else ""
    return "\n".join(lines)


def more(*lines):
    return GOOD["fields"].rstrip("]") + ",\n".join(lines) + "]"


def fixed(number, offset=0):
    return "[" + ", ".join(f'{{ offset = {offset + k}, bytes = "01" }}' for k in range(number)) + "]"


REFUSED = {
    "unknown channel": (
        {"fields": fields(surge='{ offset = 4, type = "f4", channel = "surj" }')},
        "source.packet.fields[0].channel: found 'surj', allowed are surge, sway",
    ),
    "unknown unit": (
        {"fields": fields(surge='{ offset = 4, type = "f4", channel = "surge", unit = "km/h" }')},
        "source.packet.fields[0].unit: found 'km/h', allowed are m/s^2, g, ft/s^2 for surge",
    ),
    "scale 0": (
        {"fields": fields(surge='{ offset = 4, type = "f4", channel = "surge", scale = 0 }')},
        "source.packet.fields[0].scale: found 0, allowed is any other number",
    ),
    "scale that is no number": (
        {"fields": fields(surge='{ offset = 4, type = "f4", channel = "surge", scale = nan }')},
        "source.packet.fields[0].scale: found nan, allowed are finite numbers",
    ),
    "scale beyond any unit": (
        {"fields": fields(surge='{ offset = 4, type = "f4", channel = "surge", scale = 1e300 }')},
        "source.packet.fields[0].scale: found 1e+300, allowed is a number from -1e+12 to 1e+12",
    ),
    "scale that makes everything zero": (
        {"fields": fields(surge='{ offset = 4, type = "f4", channel = "surge", scale = 1e-320 }')},
        "source.packet.fields[0].scale: found 9.99989e-321, allowed are magnitudes of 1e-12 and more",
    ),
    "always paused": (
        {"paused": '[{ offset = 1, bytes = "43" }, { offset = 2, bytes = "01", mask = "0f" }]'},
        "source.packet.paused: found only what source.packet.constants says of every packet",
    ),
    "paused beyond the size": (
        {"paused": '[{ offset = 99, bytes = "01" }]'},
        "source.packet.paused[0].offset: found 99, allowed is up to 43",
    ),
    "unknown type": (
        {"fields": fields(surge='{ offset = 4, type = "f2", channel = "surge" }')},
        "source.packet.fields[0].type: found 'f2', allowed are 'f4', 'f8'",
    ),
    "beyond the size": (
        {"fields": fields(engine_speed='{ offset = 41, type = "f4", channel = "engine_speed" }')},
        "source.packet.fields[9].offset: found 41, allowed is up to 40 for f4 in a packet of 44 bytes",
    ),
    "overlap": (
        {"fields": fields(engine_speed='{ offset = 38, type = "f4", channel = "engine_speed" }')},
        "field 'engine_speed' at 38 overlaps 'velocity_z'",
    ),
    "over a constant": (
        {"constants": '[{ offset = 2, bytes = "01 02 03" }]'},
        "field 'surge' at 4 overlaps 'constant_0'",
    ),
    "a channel twice": (
        {"fields": more('{ offset = 0, type = "f4", channel = "surge" }'), "constants": None},
        "source.packet.fields[10].channel: found 'surge' a second time, allowed is one field of each",
    ),
    "unknown key": (
        {"endian": '"little"'},
        "source.packet.endian: unknown key, allowed are acceleration, blocks, byte_order",
    ),
    "no fields": ({"fields": None}, "source.packet.fields: missing"),
    "no attitude": (
        {"fields": fields(roll="", pitch="", yaw="")},
        "source.packet.fields: found no attitude, allowed is one of: roll, pitch and yaw; quaternion_w",
    ),
    "half an attitude": (
        {"fields": fields(pitch="")},
        "source.packet.fields: found roll, yaw, allowed is one of: roll, pitch and yaw",
    ),
    "no yaw": ({"fields": fields(yaw="")}, "source.packet.fields: found no yaw, which a velocity in world axes needs"),
    "two attitudes": (
        {
            "size": "60",
            "car": '["forward", "left", "up"]',
            "fields": more(
                *(
                    f'{{ offset = {44 + 4 * k}, type = "f4", channel = "quaternion_{axis}" }}'
                    for k, axis in enumerate("wxyz")
                )
            ),
        },
        "source.packet.fields: found roll, pitch, yaw and a quaternion, allowed is one of",
    ),
    "part of a vector": (
        {"fields": fields(velocity_y="")},
        "source.packet.fields: found velocity_x, velocity_z without velocity_y, allowed are all three together or none",
    ),
    "no axes": ({"world": None}, "source.packet.world: missing, the directions of x, y and z of velocity_x"),
    "axes that are none": (
        {"world": '["north", "south", "up"]'},
        "source.packet.world: found ('north', 'south', 'up'), allowed are three directions at right angles",
    ),
    "axes of something else": (
        {"world": '["forward", "north", "up"]'},
        "source.packet.world[0]: found 'forward', allowed are 'north', 'east'",
    ),
    "nothing to derive from": (
        {"fields": fields(heave="", velocity_x="", velocity_y="", velocity_z="")},
        "source.packet.fields: found neither heave nor a velocity to derive it from",
    ),
    "gravity in a part": (
        {"fields": fields(heave=""), "gravity": '"included"'},
        "source.packet.gravity: found 'included' with surge, sway alone, allowed is 'excluded'",
    ),
    "named axes in the world's": (
        {"acceleration": '"world"'},
        "source.packet.acceleration: found 'world' with surge, sway, heave, allowed is 'car'",
    ),
    "rates of angles there are none of": (
        {
            "size": "56",
            "rates": '"angles"',
            "car": '["forward", "left", "up"]',
            "fields": more(
                *(
                    f'{{ offset = {44 + 4 * k}, type = "f4", channel = "angular_velocity_{axis}" }}'
                    for k, axis in enumerate("xyz")
                )
            ),
        },
        "source.packet.rates: found 'angles' with angular_velocity_x",
    ),
    "an order that is none": (
        {"order": '["yaw", "yaw", "roll"]'},
        "source.packet.order: found yaw, yaw, roll, allowed are yaw, pitch and roll in any order",
    ),
    "bytes that are none": (
        {"constants": '[{ offset = 0, bytes = "4x" }]'},
        "source.packet.constants[0].bytes: found '4x', allowed are 1 to 24 pairs of hexadecimal digits",
    ),
    "constant beyond the size": (
        {"constants": '[{ offset = 42, bytes = "01 02 03" }]'},
        "source.packet.constants[0].offset: found 42, allowed is up to 41 for 3 bytes in a packet of 44 bytes",
    ),
    "many constants": (
        {"constants": fixed(8, 44), "size": "60"},
        "source.packet.constants: found 8, allowed are up to 7",
    ),
    "size 0": ({"size": "0"}, "source.packet.size: found 0, allowed is a whole number"),
    "size beyond a datagram": ({"size": "70000"}, "source.packet.size: found 70000, allowed is a whole number"),
    "longer with sizes": (
        {"size": "[44, 48]", "longer": "true"},
        "source.packet.longer: found true with several sizes, allowed is one size then",
    ),
    "blocks beyond the size": (
        {"blocks": "{ count = 3, stride = 40, first = 4, index = 3 }", "size": "88", "constants": None},
        "in block 2, allowed is up to",
    ),
    "too many messages": (
        {
            "blocks": "{ count = 64, stride = 40, first = 4, index = 3 }",
            "size": "[2604, 2608, 2612]",
            "constants": None,
        },
        "source.packet: found 192 forms, blocks and sizes, allowed are 128",
    ),
    "a form that says it again": (
        {
            "forms": '[{ size = 48, role = "motion", fields = [{ offset = 44, type = "f4", channel = "surge" }] }]',
        },
        "source.packet.forms[0].fields: found surge, which source.packet.fields has for it already",
    ),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_a_bad_description_is_refused_by_its_key(changes, message):
    with pytest.raises(ConfigError) as error:
        described(**changes)
    assert message in str(error.value)


def test_left_handed_axes_beside_right_handed_ones_make_no_quaternion():
    text = """size = 40
        world = ["east", "north", "up"]
        car = ["right", "up", "forward"]
        fields = [FIELDS]
    """.replace(
        "FIELDS",
        ", ".join(
            f'{{ offset = {4 * k}, type = "f4", channel = "{name}" }}'
            for k, name in enumerate(
                [*(f"quaternion_{axis}" for axis in "wxyz"), *(f"velocity_{axis}" for axis in "xyz")]
            )
        ),
    )
    with pytest.raises(ConfigError, match="one of them left-handed; allowed with a quaternion are both"):
        DescribedSource(parse_profile(REST + HEAD + text).source.packet)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'source = { system = "custom", endpoint = "udp://:1" }',
            "allowed is a name, or 'custom' with [source.packet]",
        ),
        (HEAD.replace('"custom"', '"beamng"') + "size = 4\nfields = []", "source.system: found 'beamng', allowed is"),
    ],
)
def test_a_custom_source_and_its_packet_come_together(text, message):
    with pytest.raises(ConfigError) as error:
        parse_profile(REST + text)
    assert message in str(error.value)


def test_a_name_that_is_neither_a_system_nor_a_profile_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="found 'forca', allowed are beamng"):
        source("forca")
    with pytest.raises(ConfigError, match="neither a built-in profile nor a file"):
        source(str(tmp_path / "none.toml"))
    assert source("beamng-dk") is source("beamng")  # a profile whose source is built in stands for it


# ---- packets ---------------------------------------------------------------------------------------------------------


def good(**values):
    """Return a packet of the good description."""
    data = bytearray(44)
    data[:4] = b"MC\x01\x00"
    for place, name in enumerate(("surge", "sway", "heave", "roll", "pitch", "yaw", "vx", "vy", "vz", "engine")):
        data[4 + 4 * place : 8 + 4 * place] = np.float32(values.get(name, 0.0)).tobytes()
    return bytes(data)


def counted(*packages, **changes):
    """Return the accepted and the refused packages of a fresh intake."""
    intake = described(**changes).intake()
    intake.begin(0)
    for place, package in enumerate(packages):
        intake.feed(package, START + place * 10_000_000)
    return intake.accepted, intake.rejected


def test_packets_of_another_size_or_mark_are_counted_and_dropped():
    whole = good(surge=1.0)
    assert counted(whole) == (1, {})
    assert counted(whole[:-1], whole + b"\0") == (0, {"size": 2})
    assert counted(b"MD" + whole[2:], b"") == (0, {"type": 2})
    two = '[{ offset = 0, bytes = "4d 43" }, { offset = 2, bytes = "01 00" }]'
    assert counted(b"MC\x02\0" + whole[4:], constants=two) == (0, {"envelope": 1})
    assert counted(whole, whole + b"more", longer="true") == (2, {})


@pytest.mark.parametrize("name", ["surge", "roll", "yaw", "vx"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused(name, value):
    assert counted(good(**{name: value})) == (0, {"not_finite": 1})


def test_an_impossible_number_is_refused_and_engine_speed_may_be_unknown():
    assert counted(good(surge=2001.0), good(vx=501.0), good(roll=11.0)) == (0, {"implausible": 3})
    intake = described().intake()
    intake.feed(good(engine=math.nan), START)
    assert math.isnan(intake.frame()["engine_speed"][0])
    assert intake.accepted == 1


def test_a_quaternion_of_zeros_is_refused():
    names = [*(f"quaternion_{axis}" for axis in "wxyz"), *(f"velocity_{axis}" for axis in "xyz")]
    lines = ", ".join(f'{{ offset = {4 * k}, type = "f4", channel = "{name}" }}' for k, name in enumerate(names))
    same = '["north", "east", "down"]'
    text = f'size = 28\nworld = {same}\ncar = ["forward", "right", "down"]\nfields = [{lines}]'
    intake = DescribedSource(parse_profile(REST + HEAD + text).source.packet).intake()
    intake.begin(0)
    intake.feed(bytes(28), START)
    assert (intake.accepted, intake.rejected) == (0, {"quaternion": 1})


VECTORS = [f"{vector}_{axis}" for vector in ("forward", "right", "velocity") for axis in "xyz"]


@pytest.mark.parametrize(
    "axes",
    [
        [0, 0, 0, 0, 1, 0],
        [1, 0, 0, 0, 0, 0],
        [1, 0, 0, 1, 0, 0],
        [1, 0, 0, 0, 2, 0],
        [math.nan, 0, 0, 0, 1, 0],
        [1, 0, 0, 0.2, 1, 0],
    ],
)
def test_axes_that_are_no_rotation_are_refused(axes):
    lines = ", ".join(f'{{ offset = {4 * k}, type = "f4", channel = "{name}" }}' for k, name in enumerate(VECTORS))
    text = f'size = 36\nworld = ["north", "east", "down"]\nfields = [{lines}]'
    intake = DescribedSource(parse_profile(REST + HEAD + text).source.packet).intake()
    intake.begin(0)
    intake.feed(np.array([*axes, 0, 0, 0], "<f4").tobytes(), START)
    assert intake.accepted == 0
    assert intake.rejected in ({"quaternion": 1}, {"not_finite": 1})
    intake.feed(np.array([1, 0, 0, 0, 1, 0, 0, 0, 0], "<f4").tobytes(), START + 10_000_000)
    assert intake.accepted == 1


@given(st.binary(max_size=60))
def test_any_bytes_are_identified_or_refused_as_the_intake_does(data):
    own = described(constants=None)
    intake = own.intake()
    intake.begin(0)
    intake.feed(data, START)
    try:
        own.identify(data)
    except PacketError:
        assert set(intake.rejected) <= {"size", "type"}
        assert intake.accepted == 0
    else:
        assert set(intake.rejected) <= {"not_finite", "implausible"}
    assert intake.accepted + sum(intake.rejected.values()) == 1


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "offset": st.integers(-2, 70),
                "type": st.sampled_from(["f4", "f8", "i1", "u2", "i8", "x4"]),
                "channel": st.sampled_from([*CHANNELS, "nothing"]),
                "unit": st.sampled_from([unit for units in UNITS.values() for unit in units]),
                "scale": st.floats(),
                "bias": st.floats(),
            }
        ),
        max_size=8,
    ),
    st.integers(-1, 100),
)
def test_any_description_is_a_source_or_refused_with_its_key(rows, size):
    lines = ", ".join(
        "{ " + ", ".join(f"{key} = {value!r}" for key, value in row.items()).replace("'", '"') + " }" for row in rows
    )
    text = f'size = {size}\nworld = ["east", "up", "south"]\ncar = ["right", "up", "back"]\nfields = [{lines}]'
    try:
        own = DescribedSource(parse_profile(REST + HEAD + text).source.packet)
    except ConfigError as error:
        refused = str(error)
        assert "source.packet" in refused  # most descriptions are refused, some are not
        return
    intake = own.intake()
    intake.feed(bytes(max(size, 0)), START)
    assert intake.accepted + sum(intake.rejected.values()) == 1


FLAGS = """
size = 44
constants = [{ offset = 40, bytes = "01 00", mask = "07 00" }]      # on track, neither paused nor loading
paused = [{ offset = 40, bytes = "02", mask = "02" }]
forms = [{ name = "elsewhere", size = 44 }]
fields = [
    { offset = 0, type = "f4", channel = "roll" },
    { offset = 4, type = "f4", channel = "pitch" },
    { offset = 8, type = "f4", channel = "surge" },
    { offset = 12, type = "f4", channel = "sway" },
    { offset = 16, type = "f4", channel = "heave" },
]
"""


def bits_of(text):
    return DescribedSource(parse_profile(REST + HEAD + text).source.packet)


@pytest.mark.parametrize("flags", [*range(32), 0xFF00, 0xFF01, 0xFF02])
def test_single_bits_tell_whether_the_simulation_runs(flags):
    source = bits_of(FLAGS)
    data = bytes(40) + flags.to_bytes(2, "little") + bytes(2)
    runs, paused = flags & 7 == 1, bool(flags & 2)
    assert source.identify(data).name == ("paused" if paused else "motion" if runs else "elsewhere")
    intake = source.intake()
    intake.begin(0)
    intake.feed(data, 1_000_000_000)
    assert (intake.accepted, intake.others, intake.rejected) == (int(runs), int(not runs), {})


@pytest.mark.parametrize("mask", ["07", "07 00 00", "7", "", "xx yy"])
def test_a_mask_that_does_not_fit_its_bytes_is_refused(mask):
    with pytest.raises(ConfigError) as caught:
        bits_of(FLAGS.replace('"07 00"', f'"{mask}"'))
    assert str(caught.value).startswith(
        f"source.packet.constants[0].mask: found '{mask}', allowed are 2 pairs of hexadecimal digits"
    )


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        ("00 00", ", in which no bit counts; allowed is"),
        ("06 00", " beside the bytes '01 00', which have bits set that do not count; allowed is"),
    ],
)
def test_a_mask_by_which_nothing_or_no_packet_is_known_is_refused(mask, reason):
    with pytest.raises(ConfigError) as caught:
        bits_of(FLAGS.replace('"07 00"', f'"{mask}"'))
    assert str(caught.value).startswith(f"source.packet.constants[0].mask: found '{mask}'{reason}")


# ---- answers ---------------------------------------------------------------------------------------------------------

NANS = 'reply = { echo = 8, bytes = "00 00 00 00 00 00 f8 7f", repeat = 3, port = 64891 }'


def test_a_packet_of_the_motion_is_answered_with_its_beginning_and_bytes_of_ones_own():
    intake = described(reply=NANS.partition("= ")[2], forms='[{ name = "other", size = 9 }]').intake()
    intake.begin(0)
    data = bytes.fromhex("4d430100") + np.arange(10, dtype="<f4").tobytes()
    reply, _ = intake.feed(data, START)
    assert reply[:8] == data[:8]
    assert len(reply) == 32
    assert np.isnan(np.frombuffer(reply[8:], "<f8")).all()
    assert intake.reply_port == 64891
    assert intake.feed(bytes(9), START) == (b"", True)
    broken = bytearray(data)
    broken[4:8] = np.float32(np.nan).tobytes()
    assert intake.feed(bytes(broken), START)[0][:8] == bytes(broken[:8])  # refused as motion; it waits all the same
    assert (intake.accepted, intake.others, intake.replies) == (1, 1, 2)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("{ echo = 45 }", "reply.echo: found 45, allowed are up to 44, the packet's bytes"),
        ('{ bytes = "0" }', "reply.bytes: found '0', allowed are 0 to 512 pairs of hexadecimal digits"),
        ("{}", "reply: found 0 bytes, allowed are 1 to 512"),
        ('{ echo = 8, bytes = "00", repeat = 505 }', "reply: found 513 bytes, allowed are 1 to 512"),
    ],
)
def test_an_answer_that_cannot_be_is_refused(reply, message):
    with pytest.raises(ConfigError) as caught:
        described(reply=reply)
    assert str(caught.value) == f"source.packet.{message}"
