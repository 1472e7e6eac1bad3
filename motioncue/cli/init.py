"""``motioncue init``: writes a commented profile; ``motioncue`` alone asks the same and starts."""

import re
import sys
from pathlib import Path

import click

from motioncue.cli.common import folded
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.build import channels_of
from motioncue.platforms.settings import platform_presets
from motioncue.profile.profile import builtin_profiles, parse_profile, profile_text
from motioncue.profile.profile import platform as platform_of
from motioncue.wire.description import packet_presets

FED = "program-dk"  # fed by a program that runs the engine, and chooses for itself

WITHOUT_A_TERMINAL = """\
motioncue demo                     a virtual car drives a virtual platform; nothing is needed
motioncue init                     writes a profile for your simulator and your platform
motioncue run --profile rig.toml   drives your platform from your simulator
All commands: motioncue --help
"""

MBOX = """\
motion = "udp://192.168.15.201:7408?from=8410"
# scale: pulses of a whole stroke; 1000 hardly moves, set yours"""
SERIAL = 'motion = "serial:///dev/ttyUSB0"      # Windows: "serial://COM3"'
HEXAPOD = '[platform]\npreset = "hexapod-dim"          # a hexapod to begin with: put your own measures here'
POSTS = '[platform]\npreset = "posts-3"              # three posts to begin with: put your own measures here'
CHAIR = """\
[platform]                      # a chair that only turns; its true ranges, speeds and accelerations belong here
kind = "axes"
axes = [
    { name = "roll_axis", channel = "roll", turn = { min_deg = -15, max_deg = 15, speed_deg_s = 60, acceleration_deg_s2 = 300 } },
    { name = "pitch_axis", channel = "pitch", turn = { min_deg = -15, max_deg = 15, speed_deg_s = 60, acceleration_deg_s2 = 300 } },
    { name = "yaw_axis", channel = "yaw", turn = { min_deg = -60, max_deg = 60, speed_deg_s = 60, acceleration_deg_s2 = 300 } },
]"""  # noqa: E501 - as it is written

CONTROLLERS = {
    "thanos-amc": (HEXAPOD, SERIAL, ""),
    "smc3": (POSTS, SERIAL.replace("USB0", "USB0?baud=250000").replace("COM3", "COM3?baud=250000"), ""),
    "mbox-3": (POSTS, MBOX, ", scale = 1000"),
    "mbox-6": (HEXAPOD, MBOX, ", scale = 1000"),
    "moog-6dof2000e": (HEXAPOD, 'motion = "udp://192.168.1.20:991"\nrate_hz = 60', ""),
    "yaw-vr": (CHAIR, 'motion = "udp://192.168.1.20:50010"', ', check_in = { endpoint = "tcp://192.168.1.20:50020" }'),
    "mavlink-motion-platform": (HEXAPOD, 'motion = "udp://127.0.0.1:24400"', ""),
    "mavlink-rexroth": (HEXAPOD, 'motion = "udp://127.0.0.1:24400"', ""),
}
"""Tables, endpoint and further keys of the packet, by controller."""

STRAIGHT = '[cueing]\nalgorithm = "direct"            # straight through: the motion layers of DK do the rest'
PREDICTIVE = """\
[cueing]
algorithm = "predictive"        # plans ahead within [platform], without gains; or "classical", with gains"""


def simulators() -> dict[str, str]:
    """Return the built-in profile of each simulator, by the simulator's name."""
    return {name.removesuffix("-dk"): name for name in builtin_profiles() if name.endswith("-dk") and name != FED}


def platforms() -> dict[str, str]:
    """Return a sentence on each platform: DK, controllers, and geometries with a packet of one's own."""
    controllers = {name: packet_presets()[name]["description"] for name in CONTROLLERS}
    own = {
        name: f"{table['description']}; a packet of your own"
        for name, table in platform_presets().items()
        if not name.startswith("box")
    }
    return {"dk": "DK (SIGMA INTEGRALE), which does the motion layers itself", **controllers, **own}


def written(simulator: str, platform: str, file: str = "rig.toml") -> str:
    """Return a commented profile."""
    tune = "" if platform == "dk" else f"  motioncue tune {file} looks for better settings."  # direct has none to tune
    head = f"""\
description = "{simulator} to {platform}"

# motioncue check {file}             does what your simulator sends hold?  Signs, axes, units, rate.
# motioncue demo --profile {file}    the virtual car on this platform; nothing is connected
# motioncue run --profile {file}     drive; an empty seat first, and a hand at the emergency stop (docs/safety.md)
# Every key: motioncue profiles keys, or docs/profile.md.{tune}
"""
    return "\n\n".join([head.rstrip(), _source(profile_text(simulators()[simulator])), *_rest(platform)]) + "\n"


def _source(text: str) -> str:
    """Return the tables of a profile that are about its source, with their comments."""
    kept, block, ours = list[str](), list[str](), False
    for line in [*text.splitlines(), "[end]"]:
        if re.match(r"\[", line):
            comments = len(block)
            while comments and block[comments - 1].startswith("#"):
                comments -= 1
            kept += block[:comments] if ours else []
            block, ours = block[comments:], bool(re.match(r"\[+(source|watch)\b", line))
        block.append(line)
    return "\n".join(kept).strip()


def _rest(platform: str) -> list[str]:
    """Return the tables about cueing, platform and output."""
    if platform == "dk":
        streams = 'motion = "udp://127.0.0.1:4445"      # the machine on which DK runs\ngauges = "udp://127.0.0.1:4444"'
        return [STRAIGHT, f'[output]\nsystem = "dk"\n{streams}']
    if platform in packet_presets():
        tables, motion, more = CONTROLLERS[platform]
        remark = f"# What the controller's document leaves open: motioncue profiles packets {platform}"
        engage = ["[supervisor]\nengage_s = 10.0                 # longer than yours takes to engage"]
        moog = engage if platform == "moog-6dof2000e" else []
        return [PREDICTIVE, tables, *moog, f'[output]\n{remark}\n{motion}\npacket = {{ preset = "{platform}"{more} }}']
    names = list(channels_of(platform_of(platform).table))
    lines = [f'    {{ offset = {4 * at}, type = "f4", channel = "{name}" }},' for at, name in enumerate(names)]
    packet = [
        "[output.packet]                 # positions in m or rad, little-endian; other forms: docs/platforms.md",
        f"size = {4 * len(names)}",
        "fields = [",
        *lines,
        "]",
    ]
    measures = "# or your own measures: docs/platforms.md"
    geometry = f'[platform]\npreset = "{platform}"  {measures}'
    output = '[output]\nmotion = "udp://127.0.0.1:9999"      # where your controller listens'
    return [PREDICTIVE, geometry, output, "\n".join(packet)]


def _asked(question: str, choices: dict[str, str], none: str = "") -> str:
    """Ask for one of the choices, by number or name; return its name, empty for none of them."""
    click.echo(question)
    if none:
        click.echo(f"  0  {none}")
    for number, (name, text) in enumerate(choices.items(), 1):
        click.echo(folded(f"{number:>3}  {name:<24}{text}", indent=5))
    names = list(choices)
    while True:
        said = click.prompt("number or name", default="0" if none else None, prompt_suffix=": ").strip()
        if none and said == "0":
            return ""
        if said.isdecimal() and 1 <= int(said) <= len(names):
            return names[int(said) - 1]
        if said in choices:
            return str(said)
        click.echo(folded(f"{not_among(said, names)}, or their numbers", indent=2))


def _about(names: dict[str, str]) -> dict[str, str]:
    """Return what each simulator's profile says of the simulator."""
    texts = {name: parse_profile(profile_text(profile), name=profile).description for name, profile in names.items()}
    return {name: re.split(r" to DK\b", text)[0].rstrip(",") for name, text in texts.items()}


def _terminal() -> bool:
    """Return whether somebody can be asked."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _write(file: Path, text: str, force: bool) -> None:
    """Write a profile; refuse to replace a file."""
    try:
        with file.open("w" if force else "x", encoding="utf-8") as written_to:
            written_to.write(text)
    except FileExistsError as error:
        raise ConfigError(f"init: found {str(file)!r}, which exists; allowed is another name, or --force") from error
    except OSError as error:
        raise ConfigError(f"init: {str(file)!r} cannot be written: {error.strerror or error}") from error
    click.echo(f"{file} is written", err=True)


def begin(ctx: click.Context) -> None:
    """Ask what there is, and start what fits: the demo, or an examination of the simulator."""
    if not _terminal():
        click.echo(WITHOUT_A_TERMINAL, nl=False)
        return
    simulator = _asked("Which simulator or game?", _about(simulators()), "none yet: a virtual car")
    platform = _asked("\nWhich platform or controller?", platforms(), "none yet: a virtual hexapod")
    arguments = [] if simulator else ["demo"]
    if platform:
        names = ("rig.toml", *(f"rig-{number}.toml" for number in range(1, 1000)))
        file = next(name for name in names if not Path(name).exists())
        _write(Path(file), written(simulator or "ccd", platform, file), False)
        arguments = ["check", file] if simulator else ["demo", "--profile", file]
    elif simulator:
        arguments = ["check", simulators()[simulator]]
    click.echo(f"\nmotioncue {' '.join(arguments)}\n")
    group = ctx.command
    assert isinstance(group, click.Group)
    chosen = group.get_command(ctx, arguments[0])
    assert chosen is not None
    with chosen.make_context(arguments[0], arguments[1:], parent=ctx) as context:
        chosen.invoke(context)
    if simulator and platform:
        click.echo(f"\nThen, with an empty seat: motioncue run --profile {file}")


@click.command()
@click.argument("file", metavar="[FILE.toml]", default="rig.toml")
@click.option("--simulator", metavar="NAME", help="The simulator or game; asked for if not given.")
@click.option("--platform", metavar="NAME", help="The platform or its controller; asked for if not given.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def command(file: str, simulator: str | None, platform: str | None, force: bool) -> None:
    """Write a commented profile for this simulator and this platform.

    On a terminal, what is not given is asked for.  A platform is dk, a controller of `motioncue profiles packets`, or a
    geometry of `motioncue platforms`, for which a packet is written that can be changed.

    \b
    Example:  motioncue init rig.toml --simulator beamng --platform hexapod-dim
    """
    offered = {"simulator": _about(simulators()), "platform": platforms()}
    chosen = {"simulator": simulator, "platform": platform}
    for what, names in offered.items():
        if (name := chosen[what]) is None and not _terminal():
            raise ConfigError(f"--{what}: missing, allowed are {', '.join(names)}")
        chosen[what] = _asked(f"Which {what}?", names) if name is None else name
        if chosen[what] not in names:
            raise ConfigError(f"--{what}: {not_among(str(chosen[what]), names)}")
    _write(Path(file), written(str(chosen["simulator"]), str(chosen["platform"]), file), force)
    click.echo(f"Next: motioncue demo --profile {file}, then motioncue check {file}", err=True)
