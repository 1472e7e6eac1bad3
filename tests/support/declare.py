"""Write the C and Cython declarations of the records from their one table, motioncue/core/channels.py.

python tests/support/declare.py     # after a change of the table; then build

What is written stands between two marks in each file; the rest of the file is written by hand.
"""

import runpy
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "motioncue"
TABLES = runpy.run_path(str(PACKAGE / "core" / "channels.py"))  # by itself: it may be ahead of what is compiled
BEGIN, END = "made from core/channels.py by tests/support/declare.py", "end of what is made"
RECORDS = {
    "Motion": ("MOTION", "what the vehicle does"),
    "Cue": ("CUE", "what the platform is asked to do"),
    "Actuation": ("OUTPUT", "what one output is sent"),
    "Tick": ("TICK", "one tick of the emitter"),
    "Telemetry": ("TELEMETRY", "a simulator's report, in SI units but in its own axes"),
}
PUBLIC = {"Motion": "motioncue_motion", "Cue": "motioncue_cue", "Actuation": "motioncue_actuation"}
TYPES = {"f8": "double", "i8": "int64_t"}


def fields(record, types):
    """Give the declaration of each field, and what it means."""
    for channel in TABLES[RECORDS[record][0]]:
        size = f"[{channel.size}]" if channel.size > 1 else ""
        unit = f"[{channel.unit}] " if channel.unit else ""
        yield f"{types.get(channel.format, channel.format)} {channel.name}{size}", f"{unit}{channel.positive}"


def struct(record, name, types):
    """Return a record as a C struct, and the check that the compiler leaves no gaps in it."""
    rows = list(fields(record, types))
    width = max(len(declared) for declared, _ in rows)
    lines = [f"    {declared + ';':{width + 1}} /* {meaning} */" for declared, meaning in rows]
    size = TABLES[f"{record.upper()}_DTYPE"].itemsize
    head = f"typedef struct {name} {{ /* {RECORDS[record][1]} */"
    check = f"typedef char {name}_is_{size}_bytes[sizeof({name}) == {size} ? 1 : -1];"
    return "\n".join([head, *lines, f"}} {name};", check])


def public_header():
    """Return the structs of motioncue.h."""
    structs = [struct(record, name, {**TYPES, **PUBLIC}) for record, name in PUBLIC.items()]
    ahead, chassis = len(TABLES["AHEAD_S"]), len(TABLES["CHASSIS"])
    numbers = f"MOTIONCUE_ACTUATORS = {TABLES['ACTUATORS']}, MOTIONCUE_AHEAD = {ahead}, MOTIONCUE_CHASSIS = {chassis}"
    numbers = f"enum {{ {numbers} }};"
    mark = f'#define MOTIONCUE_AHEAD_MARK "{TABLES["AHEAD_MARK"].decode()}"'
    return "\n\n".join([f"{numbers}\n{mark}", *structs])


def places():
    """Give the C name of each channel's place among the doubles of a record, and the counts that loops need."""
    body, moving = len(TABLES["BODY"]), len(TABLES["MOVING"])
    cue, motion = TABLES["CUE"], TABLES["MOTION"]
    for place, channel in enumerate((*TABLES["BODY"], *cue[body:-1])):
        yield channel.name.upper(), place, ""
    yield "MOVING", moving, "number of a motion's channels that move the platform; they come first"
    yield "MOTION_TIME", body, "number of doubles a motion begins with, and place of its time"
    yield "FRAME_TIME", body + 1, ""
    yield "MOTION_SIZE", len(motion), "number of all its fields, of 8 bytes each"
    yield "CUE_ONLY", body, "place of the first channel that a cue has and a motion has not"
    yield "CHANNELS", len(cue) - 1, "number of doubles a cue begins with: all but its time"
    yield "CUE_SIZE", len(cue), ""
    yield "LIMITED", len(cue) - 1 - (body - moving), "number of a cue's channels that move the platform"
    yield "ACTUATORS", len(cue) + 3, "place of the first actuator's position in an actuation"
    yield "CAR", body, "number of an actuation's channels of the car's own motion"
    yield "CHASSIS", len(TABLES["CHASSIS"]), "number of channels of wheels, suspension and cab"
    beside = body + len(TABLES["POSE"]) + len(TABLES["TEXTURE"])
    yield "ACTUATION_SIZE", len(cue) + 3 + TABLES["ACTUATORS"] + beside, ""


def header():
    """Return the places and the structs of core/records.h."""
    rows = [(f"    MC_{name} = {place},", meaning) for name, place, meaning in places()]
    lines = [f"{row} /* {meaning} */" if meaning else row for row, meaning in rows]
    names = "\n".join(f"typedef {name} {record};" for record, name in PUBLIC.items())
    own = [struct(record, record, TYPES) for record in RECORDS if record not in PUBLIC]
    return "\n\n".join([names, "\n".join(["enum {", *lines, "};"]), *own])


def declarations():
    """Return the same for Cython."""
    rows = [(f'        {name} "MC_{name}"', meaning) for name, _, meaning in places() if name in DECLARED]
    lines = ["    enum:", *(f"{row}  # {meaning}" if meaning else row for row, meaning in rows)]
    for record, (_, meaning) in RECORDS.items():
        lines += ["", f"    ctypedef struct {record}:  # {meaning}"]
        lines += [f"        {declared}  # {said}" for declared, said in fields(record, TYPES)]
    return "\n".join(lines)


DECLARED = ("ROLL", "YAW", "ROLL_RATE", "MOVING", "MOTION_TIME", "CUE_ONLY", "CHANNELS", "LIMITED", "CAR", "CHASSIS")
"""The places and counts that Cython code uses; all are for C."""
FILES = {"motioncue.h": public_header, "core/records.h": header, "core/records.pxd": declarations}


def written(name):
    """Return a file as it stands, and as the table has it."""
    given = (PACKAGE / name).read_text(encoding="utf-8")
    before, mark, rest = given.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise SystemExit(f"{name}: found no {BEGIN!r} and {END!r}")
    c = name.endswith(".h")
    return given, f"{before}{mark}{' */' if c else ''}\n{FILES[name]()}\n{'/* ' if c else '    # '}{end}{after}"


if __name__ == "__main__":
    for name in FILES:
        given, made = written(name)
        if given != made:
            (PACKAGE / name).write_text(made, encoding="utf-8")
            print(f"motioncue/{name}")
