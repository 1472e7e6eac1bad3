"""``motioncue send``: commands are refused before anything is sent, or sent as often as requested."""

import math
import struct

import pytest
from click.testing import CliRunner
from helpers import Sink, eventually
from programs import INTERRUPT, Program

from motioncue.cli import cli
from motioncue.sources.beamng_simulink.packets import CONTROL
from motioncue.sources.morai.messages import COMMANDS


def invoke(*arguments):
    return CliRunner().invoke(cli, ["send", *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["beamng-simulink", "control"], "missing; it numbers the commands"),
        (
            ["beamng-simulink", "control", "id=1", "brake_pedal=2"],
            "brake_pedal: found 2, allowed is a number from 0 to 1",
        ),
        (["beamng-simulink", "control", "id=1", "brake_pedal"], "allowed is FIELD=VALUE"),
        (["beamng-simulink", "nothing"], "allowed is control"),
        (["beamng", "control"], "allowed are beamng-simulink"),
        (["beamng-simulink", "control", "id=1", "--id", "2"], "id is given already"),
        (["beamng-simulink", "control", "--id", "-2"], "id: found -2, allowed is a number from 0"),
        (["beamng-simulink", "control", "id=1", "--duration", "2"], "--duration is for --rate"),
        (["beamng-simulink", "control", "id=1", "--rate", "0"], "found 0.0, allowed are finite numbers above 0"),
        (
            ["beamng-simulink", "control", "id=1", "--to", "tcp://127.0.0.1:1"],
            "allowed is udp://HOST:PORT",
        ),
    ],
)
def test_what_is_not_allowed_is_refused_and_nothing_is_sent(arguments, message):
    with Sink() as sink:
        result = invoke(*arguments, *(["--to", sink.url]))
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
        assert sink.packets == []


def test_it_needs_to_know_where_to():
    assert "--to: missing" in invoke("beamng-simulink", "control", "id=1").output


@pytest.mark.rt
def test_a_command_is_sent_once_to_every_endpoint():
    with Sink() as one, Sink() as other:
        arguments = ["id=3", "brake_pedal=0.25", "custom[49]=-1.5", "--to", one.url, "--to", other.url]
        with Program("send", "beamng-simulink", "control", *arguments, "--json") as send:
            stats = send.end()
        (packet,) = one.all(1)
        assert other.all(1) == [packet]
    values = struct.unpack("<64d", packet)
    assert (values[0], values[2], values[63]) == (3.0, 0.25, -1.5)
    assert all(value != value for place, value in enumerate(values) if place not in (0, 2, 63))
    assert {key: stats[key] for key in ("system", "message", "size", "packets_sent", "lost")} == {
        "system": "beamng-simulink", "message": "control", "size": 512, "packets_sent": 2, "lost": 0,
    }  # fmt: skip


@pytest.mark.rt
def test_commands_are_repeated_with_numbers_that_count_up():
    arguments = ["steering=0.5", "--id", "100", "--rate", "200", "--duration", "0.25", "--json"]
    with Sink() as sink:
        with Program("send", "beamng-simulink", "control", "--to", sink.url, *arguments) as send:
            stats = send.end()
        packets = [CONTROL.decode(packet) for packet in sink.all(50)]
    assert stats["packets_sent"] == 50
    assert [packet["id"] for packet in packets] == list(range(100, 150))
    assert {packet["steering"] for packet in packets} == {0.5}
    assert all(math.isnan(packet["brake_pedal"]) for packet in packets)


@pytest.mark.rt
def test_repeating_ends_with_a_signal():
    with Sink() as sink:
        arguments = ["id=1", "--to", sink.url, "--rate", "50", "--json"]
        with Program("send", "beamng-simulink", "control", *arguments) as send:
            eventually(lambda: len(sink.packets) > 3)
            send.signal(INTERRUPT)
            stats = send.end()
        assert len(sink.all(stats["packets_sent"])) == stats["packets_sent"] > 3


@pytest.mark.rt
def test_a_command_without_numbers_has_no_number_option():
    with Sink() as sink:
        result = invoke("morai", "turn_signal_lamp", "turn_signal=1", "--id", "5", "--to", sink.url)
        assert (result.exit_code, sink.packets) == (2, [])
        assert "not numbered" in result.output
        assert invoke("morai", "turn_signal_lamp", "turn_signal=1", "--to", sink.url).exit_code == 0
        assert sink.all(1) == [b"#LampControl$" + struct.pack("<4i", 2, 0, 0, 0) + b"\x01\x00\r\n"]


def test_without_a_message_it_lists_them_and_without_an_endpoint_their_fields():
    listed = invoke("morai")
    assert listed.exit_code == 0
    assert "turn_signal_lamp, 33 bytes" in listed.output.splitlines()
    fields = invoke("morai", "turn_signal_lamp")
    assert fields.exit_code == 2
    assert "  turn_signal  0 none, 1 left, 2 right" in fields.output.splitlines()


@pytest.mark.rt
def test_steering_is_turned_for_a_simulator_that_has_left_positive():
    with Sink() as sink:
        for count, (sense, sent) in enumerate([("right", 0.5), ("left", -0.5)], 1):
            values = ["gear=D", "cmd_type=pedals", "steering=0.5", "--set", f"steering={sense}", "--to", sink.url]
            assert invoke("morai", "ego_ctrl_cmd", *values).exit_code == 0
            assert COMMANDS["ego_ctrl_cmd"].decode(sink.all(count)[-1])["steering"] == sent


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["morai", "turn_signal_lamp", "--set", "steering=up"], "sending.steering: found 'up', allowed are 'right', "),
        (["morai", "turn_signal_lamp", "--set", "sense=left"], "sending.sense: unknown key"),
        (["beamng-simulink", "control", "id=1", "--set", "steering=left"], "allowed are none for beamng-simulink"),
        (["morai", "ego_ctrl_cmd", "cmd_type=1"], "gear: missing, allowed is a whole number from 0 to 5 (0 M, 1 P"),
    ],
)
def test_conventions_that_a_simulator_does_not_have_are_refused(arguments, message):
    result = invoke(*arguments, "--to", "udp://127.0.0.1:9")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
