"""Gran Turismo 7: a packet that is enciphered, from a console that sends only while it hears a heartbeat."""

import socket
import threading
import time

import numpy as np
import pytest
from helpers import free_port, truth

from motioncue.core.channels import MOTION_DTYPE
from motioncue.drive.car import drive
from motioncue.engine.assembly import load_profile
from motioncue.engine.reception import Listener, Reception
from motioncue.errors import ConfigError
from motioncue.profile.profile import parse_profile, profile_text
from motioncue.sources import DescribedSource, system_of
from motioncue.sources.described.twin import channel_values, encode
from motioncue.virtual.installation import drive_packages
from motioncue.wire.messages import CIPHER_BYTES, Cipher

PROFILE = "gran-turismo-7-dk"
START = 1_000_000_000
KEY = b"Simulator Interface Packet GT7 ver 0.0"[:32]
MASK = 0xDEADBEAF

# ECRYPT's test vectors of Salsa20/20 with 256-bit keys: key, nonce, and the key stream by its first byte.
VECTORS = {
    "set 1, vector 0": (
        "80" + 31 * "00",
        8 * "00",
        {
            0: "E3BE8FDD8BECA2E3EA8EF9475B29A6E7003951E1097A5C38D23B7A5FAD9F6844"
            "B22C97559E2723C7CBBD3FE4FC8D9A0744652A83E72A9C461876AF4D7EF1A117",
            192: "57BE81F47B17D9AE7C4FF15429A73E10ACF250ED3A90A93C711308A74C6216A9"
            "ED84CD126DA7F28E8ABF8BB63517E1CA98E712F4FB2E1A6AED9FDC73291FAA17",
            256: "958211C4BA2EBD5838C635EDB81F513A91A294E194F1C039AEEC657DCE40AA7E"
            "7C0AF57CACEFA40C9F14B71A4B3456A63E162EC7D8D10B8FFB1810D71001B618",
            448: "696AFCFD0CDDCC83C7E77F11A649D79ACDC3354E9635FF137E929933A0BD6F53"
            "77EFA105A3A4266B7C0D089D08F1E855CC32B15B93784A36E56A76CC64BC8477",
        },
    ),
    "set 1, vector 9": (
        "0040" + 30 * "00",
        8 * "00",
        {
            0: "01F191C3A1F2CC6EBED78095A05E062E1228154AF6BAE80A0E1A61DF2AE15FBC"
            "C37286440F66780761413F23B0C2C9E4678C628C5E7FB48C6EC1D82D47117D9F",
            192: "86D6F824D58012A14A19858CFE137D768E77597B96A4285D6B65D88A7F1A8778"
            "4BF1A3E44FC9D3525DDC784F5D99BA222712420181CABAB00C4B91AAEDFF521C",
        },
    ),
    "set 6, vector 0": (
        "0053A6F94C9FF24598EB3E91E4378ADD3083D6297CCF2275C81B6EC11467BA0D",
        "0D74DB42A91077DE",
        {0: "F5FAD53F79F9DF58C4AEA0D0ED9A9601F278112CA7180D565B420A48019670EA"},
    ),
}


@pytest.mark.parametrize(("key", "nonce", "stream"), VECTORS.values(), ids=VECTORS)
def test_the_key_stream_is_that_of_the_published_vectors(key, nonce, stream):
    nonce = bytes.fromhex(nonce)
    packet = bytes(1024) + nonce  # the nonce after the bytes that are looked at
    found = Cipher(bytes.fromhex(key), (1024, 1028)).applied(packet)
    for at, expected in stream.items():
        assert found[at : at + len(expected) // 2].hex().upper() == expected
    assert found[1024:] == nonce


def test_the_mask_is_combined_with_the_nonce_and_both_halves_may_be_the_same_bytes():
    seed = 0x12345678
    nonce = (seed ^ MASK).to_bytes(4, "little") + seed.to_bytes(4, "little")
    plain = bytes(range(64)) + seed.to_bytes(4, "little") + bytes(228)
    expected = Cipher(KEY, (296, 300)).applied(plain + nonce)
    found = Cipher(KEY, (64, 64), MASK.to_bytes(4, "little") + bytes(4)).applied(plain)
    assert found[:64] == expected[:64]
    assert found[68:] == expected[68:296]
    assert found[64:68] == plain[64:68]


@pytest.mark.parametrize("size", [0, 1, 67, CIPHER_BYTES + 1, 70_000])
def test_a_packet_of_another_size_stays_as_it_is(size):
    assert Cipher(KEY, (64, 64)).applied(bytes(size)) == bytes(size)


@pytest.mark.parametrize("size", [68, 296, CIPHER_BYTES])
def test_deciphering_undoes_enciphering(size):
    packet = np.random.default_rng(size).bytes(size)
    cipher = Cipher(KEY, (64, 0))
    assert cipher.applied(packet) != packet
    assert cipher.applied(cipher.applied(packet)) == packet


@pytest.mark.parametrize("of", [(KEY[:31], (0, 4)), (KEY, (-1, 4)), (KEY, (0, CIPHER_BYTES - 3)), (KEY, (0, 4), b"\0")])
def test_settings_that_cannot_be_are_refused(of):
    with pytest.raises(ValueError, match="allowed are"):
        Cipher(*of)


# ---- the packet ------------------------------------------------------------------------------------------------------


def source():
    return system_of(load_profile(PROFILE).source)


def packets(states):
    """Return enciphered packets of states."""
    of = source()
    values = channel_values(of.table, states) | {"time": states["time"]}
    rows = encode(of.table, of.table, values, len(states))
    rows[:, 64:68] = np.arange(1, len(states) + 1, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return [of.plain(row.tobytes()) for row in rows]


def read(intake, packages, step_ns=16_666_667):
    intake.begin(0)
    motion = np.zeros(len(packages), MOTION_DTYPE)
    for place, package in enumerate(packages):
        intake.feed(package, START + place * step_ns)
        motion[place] = intake.frame()[0]
    return motion


def test_the_car_is_understood_through_the_cipher():
    states = drive("tour", 60.0)
    intake = source().intake()
    motion = read(intake, packets(states))
    assert (intake.accepted, intake.rejected) == (len(states), {})
    expected = truth(states)
    for channel in ("roll", "pitch", "speed", "roll_rate", "pitch_rate", "yaw_rate"):  # rates are taken, not derived
        assert np.abs(motion[channel] - expected[channel]).max() < 1e-5, channel
    assert np.abs(np.angle(np.exp(1j * (motion["yaw"] - expected["yaw"])))).max() < 1e-5
    for channel, least in {"surge": 0.98, "sway": 0.98}.items():
        late = [np.corrcoef(motion[channel][n:], expected[channel][: len(states) - n])[0, 1] for n in range(6)]
        assert max(late) > least, channel


def test_every_bit_of_a_packet_is_enciphered_but_the_nonce():
    (package,) = packets(drive("still", 60.0)[:1])
    assert package[:4] != b"0S7G"
    assert source().plain(package)[:4] == b"0S7G"
    assert source().identify(package).decode(package)["position_x"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("flags", "name"), [(1, "motion"), (3, "paused"), (2, "paused"), (0, "elsewhere"), (5, "elsewhere")]
)
def test_packets_of_menus_and_pauses_are_counted_and_not_followed(flags, name):
    (package,) = packets(drive("still", 60.0)[:1])
    of = source()
    plain = bytearray(of.plain(package))
    plain[142] = flags
    package = of.plain(bytes(plain))
    assert of.identify(package).name == name
    intake = of.intake()
    read(intake, [package])
    assert (intake.accepted, intake.others, intake.rejected) == (flags == 1, flags != 1, {})


@pytest.mark.parametrize("size", [0, 3, 67, 68, 295, 297, 316, 2048, 2049, 65507])
def test_other_sizes_are_refused_and_any_bytes_are_survived(size):
    intake = source().intake()
    read(intake, [np.random.default_rng(7).bytes(size)])
    assert (intake.accepted, sum(intake.rejected.values())) == (0, 1)


def test_a_packet_that_is_not_enciphered_is_refused():
    (package,) = packets(drive("still", 60.0)[:1])
    intake = source().intake()
    read(intake, [source().plain(package)])
    assert intake.rejected == {"type": 1}


def test_the_inverse_turn_is_a_reading_to_try():
    module = source()
    states = drive("turns", 60.0)
    right, inverse = (
        read(module.intake(module.Options(quaternion_w=sense)), packets(states))
        for sense in ("as_described", "opposite")
    )
    known = np.abs(np.sin(right["yaw"])) > 0.1
    assert known.any()
    assert (np.sign(right["yaw"][known]) == -np.sign(inverse["yaw"][known])).mean() > 0.95


# ---- descriptions that cannot be -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('key = "53 69', 'key = "53', "source.packet.cipher.key: found '53 6d"),
        ('key = "53 69', 'key = "5x 69', "allowed are 32 pairs of hexadecimal digits"),
        ("nonce = [64, 64]", "nonce = [64, 293]", "source.packet.cipher.nonce: found 293, allowed is up to 292"),
        ("nonce = [64, 64]", "nonce = [64]", "source.packet.cipher.nonce"),
        ('mask = "af be ad de 00', 'mask = "af be ad de', "source.packet.cipher.mask: found 'af be ad de 00 00 00'"),
        ('type = "salsa20"', 'type = "rot13"', "source.packet.cipher.type: found 'rot13', allowed are 'salsa20'"),
        (
            "size = 296\nworld",
            "size = 4096\nworld",
            "source.packet.size: found 4096 with a cipher, allowed are up to 2048",
        ),
        (
            'bytes = "41", port',
            'bytes = "", port',
            "source.packet.heartbeat.bytes: found '', allowed are 1 to 64 pairs",
        ),
        ("port = 33739", "port = 0", "source.packet.heartbeat.port: found 0"),
        ("every_s = 2 ", "every_s = 0 ", "source.packet.heartbeat.every_s: found 0"),
        ("every_s = 2 ", "every_s = nan ", "source.packet.heartbeat.every_s: found nan"),
    ],
)
def test_a_cipher_or_a_heartbeat_that_cannot_be_is_refused_by_its_key(old, new, message):
    text = profile_text(PROFILE)
    assert old in text
    with pytest.raises(ConfigError) as caught:
        DescribedSource(parse_profile(text.replace(old, new)).source.packet)
    assert message in str(caught.value)


# ---- the console -----------------------------------------------------------------------------------------------------


class Console:
    """A console that sends 60 packets a second to whoever has sent it the heartbeat lately."""

    PATIENCE_S = 0.6

    def __init__(self, to):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(1 / 60)
        self.port = self._socket.getsockname()[1]
        self._to, self._stop = to, threading.Event()
        self.heard, self.senders, self.sent = [], set(), 0
        self._packages = [each.package for each in drive_packages(source(), "tour", 60.0, 10.0)]
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def _run(self):
        heard_s = -np.inf
        while not self._stop.is_set():
            try:
                data, sender = self._socket.recvfrom(100)
            except TimeoutError:
                pass
            else:
                self.heard.append(data)
                self.senders.add(sender)
                heard_s = time.monotonic()
            if time.monotonic() - heard_s < self.PATIENCE_S:
                self._socket.sendto(self._packages[self.sent % len(self._packages)], self._to)
                self.sent += 1


def receiving(port, console, every_s, allow=()):
    """Return an intake and a reception that asks the console."""
    text = (
        profile_text(PROFILE)
        .replace("port = 33739", f"port = {console}")
        .replace("every_s = 2 ", f"every_s = {every_s} ")
    )
    intake = DescribedSource(parse_profile(text).source.packet).intake()
    return intake, Reception(intake, [f"udp://127.0.0.1:{port}"], allow=allow)


@pytest.mark.check
@pytest.mark.rt
@pytest.mark.parametrize("allow", [(), ("127.0.0.1",)])
def test_a_console_is_asked_again_and_again_from_the_port_that_listens(allow):
    port = free_port(socket.SOCK_DGRAM)
    with Console(("127.0.0.1", port)) as console:
        intake, reception = receiving(port, console.port, 0.2, allow)
        thread = threading.Thread(target=reception.run, daemon=True)
        thread.start()
        wait_for(lambda: len(console.heard) >= 6 and intake.accepted >= 60)
        reception.stop()
        thread.join()
        reception.close()
        assert set(console.heard) == {b"A"}
        assert console.senders == {("127.0.0.1", port)}
        assert intake.rejected == {}
        sent = console.sent
        wait_for(lambda: (time.sleep(1.5 * Console.PATIENCE_S), console.sent)[1] >= sent)
        quiet = console.sent
        time.sleep(0.1)
        assert console.sent == quiet  # without a heartbeat the console falls silent


@pytest.mark.rt
def test_listen_hears_an_allowed_host_at_an_endpoint_that_others_can_reach(caplog, tmp_path):
    port = free_port(socket.SOCK_DGRAM)
    with Console(("127.0.0.1", port)) as console:
        path = tmp_path / "gt.toml"
        path.write_text(profile_text(PROFILE).replace("port = 33739", f"port = {console.port}"), encoding="utf-8")
        with Listener(
            str(path), f"udp://:{port}", f"udp://0.0.0.0:{free_port(socket.SOCK_DGRAM)}", allow=["127.0.0.1"]
        ) as listener:
            wait_for(lambda: listener.stats()["frames_received"] > 10)
        assert "no host is allowed" not in caplog.text
    with Listener(str(path), f"udp://0.0.0.0:{port}"):
        assert "no host is allowed" in caplog.text


def wait_for(reached, most_s=20.0):
    end = time.monotonic() + most_s
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.02)
