"""The README's promises: its code runs; its commands, options, profiles, links and files exist."""

import ast
import re
import shutil
import socket
import textwrap
import tomllib
from contextlib import ExitStack
from pathlib import Path

import dpkt
import pytest
from helpers import free_port
from programs import Program

import motioncue
from motioncue.cli import COMMANDS, cli
from motioncue.profile.profile import builtin_profiles
from motioncue.sources import SYSTEMS, command, compose
from motioncue.wire.commands import assigned

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FOLDERS = ("benchmarks", "contrib", "docs", "examples", "notebooks")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            path
            for top in ("benchmarks", "contrib", "docs", "examples", "notebooks")
            for path in ROOT.glob(f"{top}/**/*.md")
        ),
    ]
)
BLOCK = re.compile(r"^(?:<!-- (\w+) -->\n)?```(\w+)\n(.*?)^```$", re.M | re.S)
COMMANDS_PAGE = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
EMBED = (ROOT / "docs/tutorials/embed.md").read_text(encoding="utf-8")
RECORDINGS = (ROOT / "docs/recordings.md").read_text(encoding="utf-8")
BLOCKS = BLOCK.findall(README + COMMANDS_PAGE)  # (mark, language, text)
SHELL = [line.partition(" #")[0] for _, language, text in BLOCKS if language == "sh" for line in text.splitlines()]
CALLS = [line.split() for line in SHELL if line.startswith("motioncue ")]

SAYING = [*DOCUMENTS, *sorted((ROOT / "motioncue").rglob("*.py"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCAL = re.compile(
    r"(?<![\w.])(?:/(?:home|root|tmp|work|opt|mnt|Users)/|[A-Z]:\\)|pypi|index-url|find-links|anaconda", re.I
)


def blocks(language):
    return [text for _, found, text in BLOCKS if found == language]


def test_readme_fits_on_ninety_lines():
    assert len(README.splitlines()) <= 90


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("run", "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/motioncue demo"),
        ("test", 'python3 -m venv .venv && .venv/bin/pip install -e ".[test]" && .venv/bin/pytest'),
    ],
)
def test_one_line_runs_and_one_line_tests(mark, expected):
    assert [text.strip() for found, language, text in BLOCKS if found == mark and language == "sh"] == [expected]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_of_the_readme_runs_and_prints_what_it_says(code, capsys):
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    printed = [float(number) for number in re.findall(r"-?\d+\.\d+", capsys.readouterr().out)]
    for promised in re.findall(r"#.*?(\d+\.\d{3,})", code):
        decimals = len(promised.partition(".")[2])
        assert promised in [f"{number:.{decimals}f}" for number in printed]


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Change to a folder with the recordings of the documents: a drive, and what it would have been."""
    shutil.copy(ROOT / "tests/data/drives/beamng.mcap", tmp_path / "drive.mcap")
    shutil.copy(ROOT / "tests/data/drives/beamng.mcap", tmp_path / "quiet.mcap")
    monkeypatch.chdir(tmp_path)


@pytest.mark.check
def test_a_recording_is_a_data_frame_in_one_line(recorded):
    pandas = pytest.importorskip("pandas")
    line = re.findall(r"`(pandas\.DataFrame\(.+?\))`", RECORDINGS)[-1]
    drive = motioncue.read("drive.mcap")
    table = eval(line, {"pandas": pandas, "drive": drive})
    assert {f"cue_{name}" for name in motioncue.CUE_DTYPE.names} < set(table)
    assert table["cue_surge"].tolist() == drive.ticks["cue"]["surge"].tolist()


def test_python_of_the_recordings_page_runs(recorded, capsys):
    names = {}
    for _, language, code in BLOCK.findall(RECORDINGS):
        if language == "python":
            exec(compile(code, "recordings.md", "exec"), names)
    assert (names["drive"].unreadable, names["less"].max()) == ((), 0.0)


PLATFORMS = "".join((ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("platforms", "rig"))


@pytest.mark.parametrize(
    "text", [*blocks("toml"), *(text for _, language, text in BLOCK.findall(PLATFORMS) if language == "toml")]
)
def test_profile_of_the_readme_is_accepted(text, tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text(text, encoding="utf-8")
    assert motioncue.load_profile(path).name == "rig"


def test_every_public_name_has_its_place_on_the_page_of_python():
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    names = set(motioncue.__all__) - {"__version__"}
    assert {name for name in names if not re.search(rf"(::|`) ?{name}\b", page)} == set()


EXAMPLES = re.findall(r"::\n\n((?:    .*\n|\n)+)", (ROOT / "docs/api.md").read_text(encoding="utf-8"))


@pytest.mark.check
@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.split()[0].strip(","))
def test_examples_of_the_page_of_python_run(code, recorded):
    if "motioncue.tune" in code:
        pytest.importorskip("clarabel", reason="scoring takes a solver, which Windows Python under Wine has not")
        pytest.importorskip("cma")
    lines = [line for line in textwrap.dedent(code).splitlines() if not line.startswith("cc ")]
    exec(compile("\n".join(lines), "api.md", "exec"), {"motioncue": motioncue})


TUTORIAL_FILES = {"rig.toml": "docs/tutorials/own-platform.md", "rally.toml": "docs/simulators.md"}
"""The profiles that the tutorials work on: the first one in a document."""

BRIEFLY = {"tune": ("--evaluations", "8")} | dict.fromkeys(("run", "listen", "demo", "simulate"), ("--duration", "8"))
"""How a command of a tutorial is kept short."""


@pytest.fixture
def desk(tmp_path):
    """Return how to start the tutorials' commands where their files and both simulators are, at ports of our own."""
    ports = {port: str(free_port(socket.SOCK_DGRAM)) for port in ("4567", "4568", "9999", "20777", "4445")}
    ours = re.compile(r"(?<=:)(?:" + "|".join(ports) + r")\b")

    def moved(text):
        return ours.sub(lambda found: ports[found[0]], text)

    for name, document in TUTORIAL_FILES.items():
        page = BLOCK.findall((ROOT / document).read_text(encoding="utf-8"))
        text = next(text for _, language, text in page if language == "toml")
        (tmp_path / name).write_text(moved(text), encoding="utf-8")
    stage = (ROOT / "tests/data/packets/described/dirt_rally_2.bin").read_bytes()
    with (tmp_path / "drive.pcap").open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=dpkt.pcap.DLT_RAW)
        for number, at in enumerate(range(0, len(stage), 264)):
            datagram = dpkt.udp.UDP(sport=5000, dport=int(ports["20777"]), data=stage[at : at + 264])
            datagram.ulen = len(datagram)
            packet = dpkt.ip.IP(src=b"\x7f\0\0\1", dst=b"\x7f\0\0\1", p=dpkt.ip.IP_PROTO_UDP, data=datagram)
            packet.len = len(packet)
            writer.writepkt(bytes(packet), ts=number / 20)
    with ExitStack() as held:

        def start(line):
            return held.enter_context(Program(*moved(line).split()[1:], cwd=tmp_path))

        start("motioncue simulate beamng --to udp://127.0.0.1:4567 --to udp://127.0.0.1:4568 --duration 300")
        start("motioncue simulate rally.toml --to udp://127.0.0.1:20777 --duration 300")
        yield start


@pytest.mark.check
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name", ["own-platform", "own-simulator", "record", pytest.param("tune", marks=pytest.mark.search)]
)
def test_every_command_of_a_tutorial_runs_on_its_own_files(name, desk):
    if name == "tune":
        pytest.importorskip("clarabel", reason="scoring takes a solver, which Windows Python under Wine has not")
    text = (ROOT / f"docs/tutorials/{name}.md").read_text(encoding="utf-8")
    lines = [line for _, language, block in BLOCK.findall(text) if language == "sh" for line in block.splitlines()]
    beside = []
    for line in lines:
        call, _, remark = (part.strip() for part in line.partition(" #"))
        command = call.split()[1]
        call = re.sub(r"--duration \d+", "--duration 2", call)
        if not call.startswith("motioncue "):
            assert call.startswith("tcpdump "), call
        elif "terminal" in remark:  # beside those that follow
            beside.append(desk(f"{call} --duration 8 --json"))
        else:
            seen_by_all(beside)
            program = desk(" ".join((call, *(() if "--duration" in call else BRIEFLY.get(command, ())))))
            out, err = program.finish(300)
            wrong = command == "check" and call.endswith(".pcap")  # the example has a mistake, which the tutorial tells
            assert program.process.returncode == wrong, (call, out, err)
            assert ("the sign is turned" in out) == wrong, (call, out)
            assert not re.search("error|Traceback", err)


def seen_by_all(beside):
    """Wait for programs that run side by side, and see that the first was sent what the last made the second send."""
    if beside:
        listen, run, simulate = (program.end() for program in beside)
        assert listen["packets_received"] > 0
        assert set(listen["last"]) == {"post_1", "post_2", "post_3"}
        assert run["frames_received"] > 0
        assert simulate["frames_sent"] > 0
    beside.clear()


def test_cython_of_the_tutorial_is_in_the_example():
    example = (ROOT / "examples/cimport/ticks.pyx").read_text(encoding="utf-8")
    blocks = [text for _, language, text in BLOCK.findall(EMBED) if language == "cython"]
    lines = [line for text in blocks for line in text.splitlines() if line.strip()]
    assert lines
    assert [line for line in lines if line not in example.splitlines()] == []


def test_commands_in_the_readme_are_the_commands_there_are():
    assert {call[1] for call in CALLS} | {"demo"} == set(COMMANDS)


def options(name, called=None):
    """Return the options of a command of motioncue, and of the commands in it."""
    called = called or cli.get_command(None, name)
    own = {option for parameter in called.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return own.union({"--help"}, *(options(name, each) for each in getattr(called, "commands", {}).values()))


def texts(path):
    """Return what a file says to a user: a document, or each string of a module, docstrings of commands among them."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [text]
    nodes = ast.walk(ast.parse(text))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@pytest.mark.parametrize("path", SAYING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_options_and_extras_that_are_named_exist(path):
    """In documents, messages and help: of each command its own options, and what `pip install` is to bring."""
    wrong = []
    for line in (line for text in texts(path) for line in re.split(r"[`\n]", text)):
        for called, rest in re.findall(r"(?:^|bin/|: |, |\|\s)motioncue (\w+)\b([^#;&|]*)", line):
            if called in COMMANDS:
                wrong += set(re.findall(r"(?<![\w-])--[a-z][\w-]*", rest)) - options(called)
        for extras in re.findall(r"""["'` ](?:motioncue|\.)\[([\w,]+)\]["'`]""", line):
            wrong += set(extras.split(",")) - set(PROJECT["optional-dependencies"])
    assert wrong == []


@pytest.mark.parametrize("text", [README, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")], ids=["readme", "log"])
def test_as_many_notebooks_are_named_as_there_are(text):
    said = re.search(r"(\w+) \[?notebooks", text)[1].lower()
    words = ["six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    assert words.index(said) + 6 == len(list((ROOT / "notebooks").glob("*.ipynb")))


def test_commands_to_simulators_in_the_readme_can_be_composed():
    sent = [call for call in CALLS if call[1] == "send"]
    assert sent
    for _, _, system, message, *rest in sent:
        packet, _ = command(system, message)
        values = assigned(packet, [word for word in rest if "=" in word])
        assert len(compose(system, message, values)) == packet.size


def test_profiles_and_systems_in_the_readme_are_those_there_are():
    profiles = set(re.findall(r"--profile ([\w-]+)(?![\w.-])", README + COMMANDS_PAGE))
    described = set(re.findall(r"`([\w-]+-dk)`", (ROOT / "docs/simulators.md").read_text(encoding="utf-8")))
    assert (profiles | described) - {"rig"} == set(builtin_profiles())
    named = {call[2] for call in CALLS if call[1] in ("simulate", "listen", "decode")}
    assert {name for name in named if not name.startswith("--")} == set(SYSTEMS)


PAGES = sorted((ROOT / "docs/simulators").glob("*.md"))
STEP = re.compile(r"^(\d)\. \*\*(.*?)\.\*\* (.*(?:\n   .*|\n(?=\n   ))*)", re.M)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_simulators_page_has_its_three_steps(path):
    """What to switch on, with Steam, Proton, or what there is instead; the profiles; and how to check each of them."""
    page = path.read_text(encoding="utf-8")
    steps = {name: text for _, name, text in STEP.findall(page)}
    assert [(number, name) for number, name, _ in STEP.findall(page)] == [
        ("1", "Switch on"),
        ("2", "Profile"),
        ("3", "Check"),
    ]
    assert re.search(r"Steam|Proton", steps["Switch on"])
    profiles = re.findall(r"`([\w-]+-dk)`", steps["Profile"])
    assert profiles
    assert set(profiles) <= set(builtin_profiles())
    checked = {profile for profile in profiles if f"{profile}`" in steps["Check"] or f"{profile} " in steps["Check"]}
    assert path.stem == "program" or (checked == set(profiles) and "`motioncue check " in steps["Check"])
    assert "**Tried on**" in page
    assert "**Nobody has proved**" in page
    assert f"(simulators/{path.name})" in (ROOT / "docs/simulators.md").read_text(encoding="utf-8")


def test_every_source_has_one_page():
    """City Car Driving has several profiles, of which the page's steps name the first."""
    named = [name for path in PAGES for name in re.findall(r"`([\w-]+-dk)`", _profile_step(path))]
    simulators = {name for name in builtin_profiles() if name.endswith("-dk")}
    assert sorted(named) == sorted(simulators)


def _profile_step(path):
    return next(text for _, name, text in STEP.findall(path.read_text(encoding="utf-8")) if name == "Profile")


def test_tests_that_the_readme_names_exist():
    named = re.findall(r"`pytest -k (\w+)`", README)
    assert named
    assert all(list(ROOT.glob(f"tests/**/test_*{name}*.py")) for name in named)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_of_a_document_lead_somewhere(path):
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_files_that_the_recipe_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:motioncue|tests)/[\w/.]+?)/?`", text)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_document_names_no_local_path_and_no_registry(path):
    assert LOCAL.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", ["see /home/me/x", "in /tmp/x", "C:\\Users\\me", "pip --index-url x", "from PyPI"])
def test_checker_finds_local_paths_and_registries(text):
    assert LOCAL.search(text)
