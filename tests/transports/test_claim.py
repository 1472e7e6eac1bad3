"""Claims of places that packets are sent to: what is one place, and each way in which a system grants a claim."""

import os
import re
import subprocess
import sys

import pytest
from helpers import loopbacks

from motioncue.transports import claim as claims
from motioncue.transports.claim import Claim, place_of
from motioncue.transports.endpoint import parse_endpoint

UDP = parse_endpoint("udp://127.0.0.1:5000")
HOLDER = """
import sys
from motioncue.transports import claim
if sys.argv[2]:
    claim.WAYS, claim.FOLDER = ((claim._lock, claim._locked),), sys.argv[2]
held = claim.Claim(sys.argv[1])
print(held.holder or "held", flush=True)
sys.stdin.read()
"""
POSIX = sys.platform != "win32"


def udp(host, port=5000, scope=0):
    return place_of(UDP, (host, port, scope))


@pytest.mark.rt
@pytest.mark.parametrize("host", [*loopbacks(), "127.0.0.2", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_all_addresses_of_this_machine_are_one_place(host):
    assert udp(host) == udp("127.0.0.1")
    assert udp(host, 5001) != udp("127.0.0.1")


@pytest.mark.rt
def test_other_addresses_are_places_of_their_own():
    # Documentation's, groups', everybody's, and a link's, which are not this machine's.
    hosts = ["198.51.100.7", "198.51.100.8", "2001:db8::7", "239.1.2.3", "ff02::7", "255.255.255.255"]
    places = [udp(host) for host in hosts] + [udp("fe80::7%2", scope=2), udp("fe80::7%3", scope=3), udp("127.0.0.1")]
    assert len({*places}) == len(places)
    assert udp("::ffff:198.51.100.7") == udp("198.51.100.7")
    assert udp("2001:0db8:0::7") == udp("2001:db8::7")


@pytest.mark.skipif(not POSIX, reason="device files")
def test_a_line_is_its_device_by_whatever_path(tmp_path):
    end, line = os.openpty()
    (tmp_path / "line").symlink_to(os.ttyname(line))
    name, link, other = (
        place_of(parse_endpoint(f"serial://{path}")) for path in (os.ttyname(line), tmp_path / "line", os.devnull)
    )
    os.close(end)
    os.close(line)
    assert name == link != other


@pytest.mark.skipif(POSIX, reason="names of lines on Windows")
def test_a_line_has_one_name_in_any_case():
    assert place_of(parse_endpoint("serial://com3")) == place_of(parse_endpoint("serial://COM3?baud=9600"))


@pytest.fixture(params=["of this system", "by a file"])
def folder(request, tmp_path, monkeypatch):
    """Claims as this system grants them, or by files as on systems without abstract sockets."""
    if request.param == "of this system":
        return ""
    if not POSIX:
        pytest.skip("Windows never uses files")
    tmp_path.chmod(0o1777)  # as /tmp
    monkeypatch.setattr(claims, "WAYS", ((claims._lock, claims._locked),))
    monkeypatch.setattr(claims, "FOLDER", str(tmp_path))
    return str(tmp_path)


@pytest.fixture
def place(request):
    """A place of this test alone."""
    return f"test {os.getpid()} {request.node.name}"


def holder(place, folder, before=()):
    """Start a process that takes a claim, and return it with what it says about that."""
    command = [*before, sys.executable, "-c", HOLDER, place, folder, "\x1b[2J\n"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


@pytest.mark.rt
def test_a_place_has_one_holder_which_is_named(place, folder):
    with holder(place, folder)[0] as first:
        assert re.match(rf"process {first.pid}\b", Claim(place).holder)
        assert not Claim(f"{place}, another").holder
        _, said = second = holder(place, folder)
        with second[0]:
            assert re.match(rf"process {first.pid}\b", said)
            second[0].stdin.close()
        first.stdin.close()
    mine = Claim(place)
    assert not mine.holder
    assert Claim(place).holder == "another engine or relay of this program"
    mine.release()
    mine.release()
    other = Claim(place)
    assert not other.holder
    del other
    assert not Claim(place).holder


@pytest.mark.rt
def test_a_claim_goes_with_its_process_however_that_ends(place, folder):
    for _ in range(5):
        process, said = holder(place, folder)
        assert said == "held"
        with process:
            process.kill()
    assert not Claim(place).holder


@pytest.mark.rt
@pytest.mark.skipif(sys.platform != "linux", reason="command lines of Linux")
def test_another_programs_command_line_writes_nothing_to_the_terminal(place, folder):
    process, _ = holder(place, folder)
    with process:
        said = Claim(place).holder
        process.stdin.close()
    assert sys.executable in said
    assert said.isprintable()
    assert len(said) < 200


@pytest.mark.rt
@pytest.mark.skipif(not POSIX or os.getuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_another_users_file_that_is_left_over_is_in_nobodys_way(place, folder, umask):
    nobody = ["setpriv", "--reuid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, sys.executable, "-c", "import motioncue.errors"], check=False).returncode:
        pytest.skip("another user may not read this installation")
    for first, second in (([], nobody), (nobody, [])):
        shell = ["sh", "-c", f'umask {umask:04o}; exec "$@"', "sh"]
        for before in (first, second):
            process, said = holder(place + str(first), folder, [*shell, *before])
            process.communicate()
            assert said == "held"


@pytest.mark.rt
@pytest.mark.skipif(not POSIX, reason="files of POSIX")
def test_a_link_in_place_of_the_file_is_not_followed(place, tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "WAYS", ((claims._lock, claims._locked),))
    monkeypatch.setattr(claims, "FOLDER", str(tmp_path))
    (tmp_path / "precious").write_text("untouched", encoding="utf-8")
    os.symlink(tmp_path / "precious", claims._path(f"motioncue {place}"))
    assert not Claim(place).holder
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "untouched"


def test_a_system_that_grants_no_claims_keeps_nobody_from_driving(monkeypatch):
    def forbidden(name):
        raise PermissionError(name)

    monkeypatch.setattr(claims, "WAYS", ((forbidden, str),))
    assert not Claim("test forbidden").holder
