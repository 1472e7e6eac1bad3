"""The reference of profiles: every key is said, with what it allows, and a resolved profile is the profile."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from motioncue.cli import cli
from motioncue.engine.assembly import load_profile
from motioncue.profile.profile import Profile, builtin_profiles, parse_profile, resolved_text
from motioncue.profile.reference import markdown, sections

PAGE = Path(__file__).parents[2] / "docs" / "profile.md"


def test_brackets_of_every_heading_are_closed_once():
    titles = [section.title for section in sections(Profile)]
    assert '[cueing], algorithm = "direct"' in titles
    assert '[cueing.surge], [cueing.sway] with algorithm = "adaptive"' in titles
    assert len(set(titles)) == len(titles)
    assert [title for title in titles if title.count("[") != title.count("]")] == []


def test_the_page_is_what_the_command_prints():
    printed = CliRunner().invoke(cli, ["profiles", "keys", "--markdown"])
    assert printed.exit_code == 0, printed.output
    assert printed.output == markdown(sections(Profile))
    assert PAGE.read_text(encoding="utf-8") == printed.output, "motioncue profiles keys --markdown > docs/profile.md"


def test_every_key_has_a_sentence():
    found = sections(Profile)
    silent = [f"{section.title} {key.name}" for section in found for key in section.keys if not key.sentence]
    assert silent == []
    assert all(section.sentence and key.allowed for section in found for key in section.keys)


def test_a_key_says_what_its_type_says():
    places = ("cueing.surge", "cueing.sway", "cueing.heave")
    (surge,) = [section for section in sections(Profile) if section.places == places]  # other algorithms have others
    cutoff = next(key for key in surge.keys if key.name == "cutoff_hz")
    assert (cutoff.allowed, cutoff.default) == ("a number above 0, up to 100", "required")
    printed = CliRunner().invoke(cli, ["profiles", "keys", "cueing.surge"]).output
    assert "Allowed: a number above 0, up to 100" in printed
    assert "hold_s" not in printed


def test_a_table_that_does_not_exist_is_refused():
    result = CliRunner().invoke(cli, ["profiles", "keys", "sorce"])
    assert result.exit_code == 2
    assert "did you mean 'source'?" in result.stderr


@pytest.mark.parametrize("name", [*builtin_profiles(), "platform"])
def test_a_resolved_profile_is_the_profile(name):
    more = ["platform.preset=hexapod-cranks", "limits.yaw=none"] if name == "platform" else []
    profile = load_profile("ccd-dk-classical" if name == "platform" else name, *more)
    assert parse_profile(resolved_text(profile), name=profile.name) == profile
