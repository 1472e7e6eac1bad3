"""FMUs as files: the model description, the command that makes them, and what the standard's own tools say."""

import math
import platform
import shutil
import subprocess
import sys
import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from fmu_importer import INPUTS, OK, Unit, bound, builds, unzipped

import motioncue
from motioncue.cli import cli
from motioncue.core.channels import BODY, CUE
from motioncue.engine.fmu import export_fmu, model_description
from motioncue.errors import ConfigError
from motioncue.profile.profile import builtin_profiles, parse_profile, profile_text, resolved_text

versions = pytest.mark.parametrize("version", ["2", "3"])

# --- the model description ------------------------------------------------------------------------------------------


def described(profile, version):
    """Return the variables of a model description, the units, and the rest of it."""
    root = ElementTree.fromstring(model_description(profile, version))
    found = {}
    for each in root.find("ModelVariables"):
        found[each.get("name")] = {
            **each.attrib,
            **(each[0].attrib if len(each) else {}),
            "kind": (list(each) or [each])[0].tag,
        }
    units = {unit.get("name"): unit[0].attrib for unit in root.find("UnitDefinitions")}
    return found, units, root


@versions
def test_every_channel_is_a_variable_with_its_unit(version):
    profile = motioncue.load_profile("ccd-hexapod")
    found, units, root = described(profile, version)
    number = "Float64" if version == "3" else "Real"
    for prefix, causality, channels in (("motion", "input", BODY), ("cue", "output", CUE[:-1])):
        for channel in channels:
            each = found.pop(f"{prefix}.{channel.name}")
            assert (each["kind"], each["causality"], each["unit"]) == (number, causality, channel.unit)
            assert "NaN" not in each["description"]
            assert channel.positive.split(";")[0] in each["description"]
    bounds = motioncue.platform(profile).bounds
    for place in range(6):
        each = found.pop(f"actuator_{place + 1}")
        assert (each["unit"], float(each["min"]), float(each["max"])) == ("m", bounds[place].low, bounds[place].high)
        assert f"leg_{place + 1}" in each["description"]
    assert found.pop("parked")["kind"] == "Boolean"
    assert version == "2" or found.pop("time")["causality"] == "independent"
    assert not found
    assert units["m/s^2"] == {"m": "1", "s": "-2"}
    assert math.isclose(float(units["rpm"]["factor"]) * 30.0, math.pi, rel_tol=1e-15)
    assert float(root.find("DefaultExperiment").get("stepSize")) == 0.00300003  # 333.33 Hz, in whole nanoseconds
    assert root.find("CoSimulation").get("needsExecutionTool") == "true"


@builds
@versions
def test_value_references_lead_to_the_variables_they_name(tmp_path, version):
    """Each input is set to a number of its own: exchanged ones would give another cue."""
    found, *_ = described(motioncue.load_profile("ccd-hexapod"), version)
    unit = Unit(unzipped(tmp_path, version=version))
    values = {name: 1.0 + 0.01 * place for place, name in enumerate(INPUTS)}
    assert (
        unit.set_numbers({int(found[f"motion.{name}"]["valueReference"]): value for name, value in values.items()})
        == OK
    )
    unit.initialize().step(0.0, 0.1)
    stepper = bound()
    for name, value in values.items():
        stepper.motion[name] = value
    for _ in range(33):
        stepper.step()
    for each in CUE[:-1]:
        assert unit.get(int(found[f"cue.{each.name}"]["valueReference"]))[0] == stepper.actuation[each.name][0]
    for place in range(6):
        got = unit.get(int(found[f"actuator_{place + 1}"]["valueReference"]))[0]
        assert got == stepper.actuation["actuators"][0, place]


@versions
def test_actuators_that_turn_are_in_radians(version):
    text = profile_text("ccd-hexapod")
    assert 'preset = "hexapod-dim"' in text
    found, *_ = described(
        parse_profile(text.replace("hexapod-dim", "hexapod-cranks").replace("leg_", "crank_")), version
    )
    assert found["actuator_1"]["unit"] == "rad"


# --- the command ----------------------------------------------------------------------------------------------------


@builds
@versions
def test_one_command_makes_a_unit_with_the_profile_in_it(tmp_path, version):
    target = tmp_path / "rig.fmu"
    done = CliRunner().invoke(cli, ["export", "ccd-hexapod", "--to", str(target), "--fmi", version])
    assert (done.exit_code, done.output) == (0, f"{target}\n")
    with zipfile.ZipFile(target) as archive:
        folder = f"{platform.machine()}-linux" if version == "3" else "linux64"
        assert set(archive.namelist()) == {
            *("modelDescription.xml", "resources/profile.toml", f"binaries/{folder}/motioncue.so"),
        }
        inside = parse_profile(archive.read("resources/profile.toml").decode())
    assert resolved_text(inside) == resolved_text(motioncue.load_profile("ccd-hexapod"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["ccd-hexapod", "--to", "rig.fmu", "--fmi", "1"], "--fmi: found '1', allowed are 2, 3"),
        (["ccd-hexapod", "--to", "rig.fmu", "--what", "frames"], "--what is not for .fmu"),
        (["ccd-hexapod", "--to", "rig.fmu", "--port", "1"], "--port is not for .fmu"),
        (["drive.mcap", "--to", "drive.csv", "--fmi", "2"], "--fmi is not for .csv"),
        (["ccd-hexapod", "beamng-dk", "--to", "rig.fmu"], "FILE: found 2, allowed is one profile for an FMU"),
        (["no-such", "--to", "rig.fmu"], "profile: 'no-such' is neither a built-in profile nor a file"),
        (["ccd-hexapod", "--to", "rig.fm"], "--to: found '.fm', allowed are .csv, .parquet, .mf4, .fmu"),
    ],
)
def test_the_command_says_what_it_does_not_take(words, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["export", *words])
    assert done.exit_code == 2
    assert text in done.output
    assert not list(tmp_path.iterdir())


@builds
@pytest.mark.parametrize(
    ("compiler", "text"),
    [
        ("no-such-compiler -O1", "a C compiler, found none as 'no-such-compiler'"),
        (shutil.which("false"), "did not compile"),
    ],
)
def test_a_compiler_that_is_missing_or_fails_is_told(compiler, text, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(ConfigError, match=text):
        export_fmu(motioncue.load_profile("ccd-dk"), tmp_path / "rig.fmu")
    assert not list(tmp_path.iterdir())


# --- the standard's own checks --------------------------------------------------------------------------------------


@pytest.mark.check
@versions
@pytest.mark.parametrize("name", builtin_profiles())
def test_every_model_description_is_valid_by_the_standards_schema(name, version, tmp_path):
    validation = pytest.importorskip("fmpy.validation")
    (tmp_path / "modelDescription.xml").write_bytes(model_description(motioncue.load_profile(name), version))
    assert validation.validate_fmu(str(tmp_path)) == []


HOST = """
import sys
from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimManipulator import CosimManipulator
from libcosimpy.CosimObserver import CosimObserver
from libcosimpy.CosimSlave import CosimLocalSlave

execution = CosimExecution.from_step_size(3_000_030)  # [ns]
rig = execution.add_local_slave(CosimLocalSlave(fmu_path=sys.argv[1], instance_name="rig"))
observer, manipulator = CosimObserver.create_last_value(), CosimManipulator.create_override()
execution.add_observer(observer), execution.add_manipulator(manipulator)
manipulator.slave_real_values(slave_index=rig, variable_references=[0], values=[-3.0])
assert execution.step(step_count=100)
print("got", *(float(x).hex() for x in observer.last_real_values(slave_index=rig, variable_references=[100, 104, 118])))
"""


@pytest.mark.check
@builds
def test_libcosim_runs_it_to_the_bits_of_bind_and_finds_nothing_wrong(tmp_path):
    """Its FMI Library is that of the standard's compliance checker; what it finds it logs."""
    pytest.importorskip("libcosimpy")
    file = export_fmu(motioncue.load_profile("ccd-hexapod"), tmp_path / "rig.fmu", "2")
    done = subprocess.run([sys.executable, "-c", HOST, str(file)], capture_output=True, text=True, timeout=100)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "FMI2XML] Parsing XML element ModelStructure" in said
    assert "[error]" not in said
    assert "[warning]" not in said
    stepper = bound()
    stepper.motion["surge"] = -3.0
    for _ in range(100):
        stepper.step()
    expected = (
        stepper.actuation["surge"].item(),
        stepper.actuation["pitch"].item(),
        stepper.actuation["actuators"][0, 0],
    )
    assert f"got {' '.join(float(value).hex() for value in expected)}\n" in done.stdout


@pytest.mark.check
@builds
@versions
def test_fmpy_simulates_it_to_the_bits_of_bind(tmp_path, version):
    fmpy = pytest.importorskip("fmpy")
    file = export_fmu(motioncue.load_profile("ccd-hexapod"), tmp_path / "rig.fmu", version)
    stepper, period = bound(), 3_000_030e-9
    motion = np.zeros(200, [("time", "f8"), ("motion.surge", "f8"), ("motion.yaw_rate", "f8")])
    motion["time"] = np.arange(200) * period
    motion["motion.surge"], motion["motion.yaw_rate"] = -3.0 * (np.arange(200) > 20), 0.1
    names = ["cue.surge_displacement", "cue.pitch", "cue.yaw_rate", "actuator_1", "actuator_6"]
    said = []
    result = fmpy.simulate_fmu(
        str(file),
        stop_time=199 * period,
        step_size=period,
        output_interval=period,
        input=motion,
        output=names,
        validate=True,
        logger=lambda *message: said.append(message),
    )
    assert said == []
    assert len(result) == 200
    for i in range(199):
        stepper.motion["surge"], stepper.motion["yaw_rate"] = motion[i]["motion.surge"], 0.1
        stepper.step()
        expected = [stepper.actuation[name].item() for name in ("surge_displacement", "pitch", "yaw_rate")]
        expected += [stepper.actuation["actuators"][0, place] for place in (0, 5)]
        assert [result[i + 1][name] for name in names] == expected
