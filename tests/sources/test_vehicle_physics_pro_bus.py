"""The data bus: ids, units, NaN, and values without an id."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motioncue import sources
from motioncue.errors import ConfigError, PacketError
from motioncue.sources.vehicle_physics_pro import packets as vpp
from motioncue.sources.vehicle_physics_pro import twin
from motioncue.sources.vehicle_physics_pro.bus import CHANNELS, GEAR_MODES, SDKS, Bus, to_raw

# The document's examples: channel, value, its meaning, the integer.
DOCUMENTED = [
    ("Input", "Steer", -1.0, -10000),
    ("Input", "Steer", 1.0, 10000),
    ("Input", "Throttle", 1.0, 10000),
    ("Input", "Brake", 0.5, 5000),
    ("Input", "Handbrake", 0.5, 5000),
    ("Input", "Clutch", 0.5, 5000),
    ("Input", "ManualGear", -1.0, -1),
    ("Input", "AutomaticGear", "D", 4),
    ("Input", "Key", "off", -1),
    ("Input", "Key", "acc-on", 0),
    ("Input", "Key", "start", 1),
    ("Vehicle", "Speed", 14.5, 14500),
    ("Vehicle", "EngineRpm", 1200.0, 1200000),
    ("Vehicle", "EngineLoad", 0.2, 200),
    ("Vehicle", "EngineTorque", 200.0, 200000),
    ("Vehicle", "EnginePower", 10.0, 10000),
    ("Vehicle", "EngineFuelRate", 20.23, 20230),
    ("Vehicle", "ClutchTorque", 150.0, 150000),
    ("Vehicle", "ClutchLock", 0.8, 800),
    ("Vehicle", "GearboxGear", -1.0, -1),
    ("Vehicle", "GearboxMode", "D3", 7),
    ("Vehicle", "RetarderTorque", 2000.0, 2000000),
    ("Vehicle", "TransmissionRpm", 100.0, 100000),
    ("Vehicle", "AidedSteer", 1.0, 10000),
    ("Settings", "DifferentialLock", "locked", 1),
    ("Settings", "FrontDifferentialLock", "open", 2),
    ("Settings", "DrivelineLock", "open", 2),
    ("Settings", "AbsOverride", "no override", 0),
    ("Settings", "TcsOverride", "disabled", 2),
    ("Settings", "AutoShiftOverride", "manual", 2),
    ("Settings", "SteeringAidsOverride", "disabled", 2),
    ("Settings", "MaxGearOverride", 5.0, 5),
]


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize(("channel", "value", "says", "raw"), DOCUMENTED)
def test_the_documents_examples_both_ways(sdk, channel, value, says, raw):
    bus = Bus(sdk)
    bus.set(channel, value, says)
    assert bus.raw(channel, value) == raw
    bus = Bus(sdk)
    bus.set_raw(channel, value, raw)
    assert bus.get(channel, value) == says


@pytest.mark.parametrize(
    ("sdk", "ids"),
    [
        ("old", {"Input": 0, "Vehicle": 1, "Settings": 2}),
        ("newer", {"Input": 0, "RaceInput": 1, "Vehicle": 2, "Settings": 3, "Custom": 4}),
    ],
)
def test_channels_by_the_ids_of_each_sdk(sdk, ids):
    bus = Bus(sdk)
    for name, number in ids.items():
        assert bus.raw_channel(name) is bus.raw_channel(number)
    for missing in (len(ids), -1, "vehicle", *(set(CHANNELS) - set(ids))):
        with pytest.raises(ConfigError, match="allowed are Input"):
            bus.raw_channel(missing)
    lengths = {"old": [10, 22, 10], "newer": [10, 16, 26, 10, 100]}[sdk]
    assert [len(bus.raw_channel(number)) for number in range(len(ids))] == lengths


@pytest.mark.parametrize(
    ("sdk", "channel", "ids"),
    [
        ("old", 1, {"Speed": 0, "EngineRpm": 1, "GearboxMode": 13, "AsrEngaged": 20, "AidedSteer": 21}),
        ("newer", 2, {"Speed": 0, "AsrEngaged": 20, "FuelConsumption": 21, "AidedSteer": 22}),
        ("newer", 2, {"ThrottleSignal": 23, "BrakePressure": 24, "ClutchSignal": 25}),
        ("newer", 1, {"Drs": 0, "BrakeBias": 5, "RegenBraking": 9, "TcPresetChange": 10, "RegenBrakingChange": 15}),
        ("old", 0, {"Steer": 0, "AutomaticGear": 6, "Key": 9}),
        ("old", 2, {"DifferentialLock": 0, "AutoShiftOverride": 2, "EscOverride": 4, "SteeringAidsOverride": 7}),
        ("newer", 3, {"DrivelineLock": 1, "AbsOverride": 3, "TcsOverride": 5, "AsrOverride": 6}),
    ],
)
def test_values_by_the_ids_of_each_sdk(sdk, channel, ids):
    bus = Bus(sdk)
    for number, (name, place) in enumerate(ids.items(), 1):
        bus.set_raw(channel, name, 1000 + number)
        assert bus.raw(channel, place) == bus.raw_channel(channel)[place] == 1000 + number


def test_no_two_values_share_an_id():
    for channel in CHANNELS.values():
        for sdk in SDKS:
            ids = [value.id(sdk) for value in channel.values if value.id(sdk) is not None]
            assert len(set(ids)) == len(ids)
            assert all(0 <= number < channel.length(sdk) for number in ids)


@pytest.mark.parametrize("raw", [-2147483647, -2147483648])
def test_both_extremes_are_not_a_number(raw):
    bus = Bus()
    bus.set_raw("Vehicle", "Speed", raw)
    assert math.isnan(bus.get("Vehicle", "Speed"))
    assert bus.raw("Vehicle", "Speed") == raw


def test_not_a_number_is_written_as_the_document_says():
    bus = Bus()
    bus.set("Vehicle", "Speed", math.nan)
    assert bus.raw("Vehicle", "Speed") == -2147483647
    assert to_raw([1.0, np.nan], 1000).tolist() == [1000, -2147483647]


@pytest.mark.parametrize("bad", [2147483.647, -2147483.647, math.inf, -math.inf])
def test_a_value_that_does_not_fit_or_would_mean_nan_is_refused(bad):
    with pytest.raises(ConfigError, match=r"Vehicle\.Speed: found .*allowed is up to 2147483\.646"):
        Bus().set("Vehicle", "Speed", bad)
    with pytest.raises(ConfigError, match="32 bits"):
        Bus().set_raw("Vehicle", "Speed", 2**31)


@given(st.integers(-2147483646, 2147483646), st.sampled_from([1, 100, 1000, 10000]))
def test_every_integer_survives_its_unit(raw, resolution):
    assert to_raw(raw / resolution, resolution) == raw


@pytest.mark.parametrize(("raw", "word"), list(enumerate(("M", "P", "R", "N", "D", "D1", "D2", "D3", "D4", "D5"))))
@pytest.mark.parametrize(("channel", "value"), [("Input", "AutomaticGear"), ("Vehicle", "GearboxMode")])
def test_gear_modes_are_words(channel, value, raw, word):
    bus = Bus()
    bus.set(channel, value, word)
    assert bus.raw(channel, value) == raw
    assert bus.get(channel, value) == word == GEAR_MODES[raw]


def test_a_gear_mode_that_has_no_word_is_its_number():
    bus = Bus()
    bus.set_raw("Vehicle", "GearboxMode", 12)
    assert bus.get("Vehicle", "GearboxMode") == 12.0
    with pytest.raises(ConfigError, match="found 'L', allowed are M, P, R"):
        bus.set("Vehicle", "GearboxMode", "L")
    with pytest.raises(ConfigError, match="found 'fast', allowed are numbers"):
        bus.set("Vehicle", "Speed", "fast")


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize(
    "name", ["FrontDifferentialLock", "RearDifferentialLock", "MinGearOverride", "MaxGearOverride"]
)
def test_values_without_a_published_id_have_a_name_alone(sdk, name):
    bus = Bus(sdk)
    assert bus.raw("Settings", name) == 0
    bus.set("Settings", name, 2)
    assert bus.raw("Settings", name) == 2
    assert not bus.raw_channel("Settings").any()
    assert not any(field.endswith(name) for field in vpp.STATES[sdk].fields)


def test_an_id_without_a_name_is_an_integer():
    bus = Bus()
    bus.set("Custom", 99, 12.0)
    bus.set_raw("Settings", 9, 5)
    assert (bus.get(4, 99), bus.get("Settings", 9)) == (12.0, 5.0)


@pytest.mark.parametrize(
    ("sdk", "channel", "value"),
    [
        ("old", "Vehicle", "FuelConsumption"),
        ("old", "Vehicle", 22),
        ("newer", "Vehicle", 26),
        ("newer", "Vehicle", -1),
        ("newer", "Vehicle", "speed"),
        ("newer", "Custom", "x"),
    ],
)
def test_a_value_the_sdk_does_not_have_is_refused(sdk, channel, value):
    with pytest.raises(ConfigError, match=f"{channel} of the {sdk} SDK: found value {value!r}, allowed are ids 0 to"):
        Bus(sdk).get(channel, value)


def test_an_sdk_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="found '2022', allowed are 'old', 'newer'"):
        Bus("2022")


@pytest.mark.parametrize("sdk", SDKS)
def test_a_packet_has_the_three_channels_of_its_bus(sdk):
    rows = vpp.blank(sdk)
    for name in ("Input.Steer", "Vehicle.AidedSteer", "Settings.SteeringAidsOverride"):
        rows[name] = len(name)
    bus = vpp.bus_of(rows[0].tobytes())
    assert bus.sdk == sdk
    assert (bus.raw("Input", 0), bus.raw("Settings", 7)) == (len("Input.Steer"), len("Settings.SteeringAidsOverride"))
    assert bus.raw("Vehicle", {"old": 21, "newer": 22}[sdk]) == len("Vehicle.AidedSteer")
    with pytest.raises(PacketError):
        vpp.bus_of(rows[0].tobytes()[:-1])


def test_nothing_writes_the_bus_of_a_running_vehicle():
    """What moves a car is sent by `motioncue send` only, which has no command for this one; nor is it answered."""
    with pytest.raises(ConfigError, match="vehicle-physics-pro"):
        sources.commands("vehicle-physics-pro")
    packages = [each.package for each in twin.driven("tour", duration_s=1.0)]
    intake = vpp.intake(vpp.Options())
    intake.begin(1)
    assert {intake.feed(package, 1 + 16_000_000 * n)[0] for n, package in enumerate(packages)} == {b""}
    assert intake.accepted > 50


# As an add-on of the vehicle has it: data[channel][value].


def test_channels_are_indexed_by_name_or_id_as_in_the_document():
    bus = Bus("newer")
    bus["Input"]["Steer"] = -5000
    assert bus[0][0] == bus["Input"][0] == bus[0]["Steer"] == -5000
    assert bus.get("Input", "Steer") == -0.5
    bus["Settings"]["FrontDifferentialLock"] = 1
    assert bus.get("Settings", "FrontDifferentialLock") == "locked"
    assert {name: channel.access for name, channel in CHANNELS.items()} == {
        **{"Input": "write", "RaceInput": "write"},
        **{"Vehicle": "read", "Settings": "read and write", "Custom": "read and write"},
    }
    with pytest.raises(ConfigError, match="Vehicle: found a value to set, allowed is to read this channel"):
        bus["Vehicle"]["Speed"] = 14500
    with pytest.raises(ConfigError, match="channel of the newer SDK: found 'Wheels'"):
        bus["Wheels"]
