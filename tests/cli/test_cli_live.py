"""The live view: a picture that fits every terminal, in characters that it can display."""

import io
import itertools
import math
from dataclasses import replace

import pytest
from rich.console import Console

from motioncue.cli.listen import SimulatorView
from motioncue.cli.terminal import (
    ASCII,
    BLOCKS,
    CHANNELS,
    LEFT_EIGHTHS,
    SMOOTH,
    STATES,
    History,
    Line,
    Rate,
    Series,
    Transition,
    View,
    bar,
    chassis_facts,
    clock,
    glyphs_for,
    microseconds,
    percent,
    plot,
    render,
)
from motioncue.cli.watch import TRANSITION
from motioncue.safety.supervisor import State

CAR = {"surge": -7.08, "sway": 4.0, "heave": -0.14, "roll": math.radians(-2.05), "pitch": 0.0, "yaw_rate": 0.444}
CUE = {"surge": -1.05, "sway": 0.72, "heave": 0.0, "roll": math.radians(-3.77), "pitch": -0.0745, "yaw_rate": 0.0}


def view(series=("car", "cue"), **changes):
    """Return a view in mid-drive."""
    values = {"car": CAR, "cue": CUE}
    shown = [
        Series(role, {"car": "car", "cue": "DK"}[role], values[role], {n: (v / 2, v) for n, v in values[role].items()})
        for role in series
    ]
    fields = {
        "title": "motioncue demo · ccd-dk: city-car-driving → direct → dk",
        "state": "running",
        "elapsed_s": 23.4,
        "total_s": 62.0,
        "facts": [[("in", " 60.0 frames/s"), ("out", "333.3 packets/s")], [("late p50", "33.0 µs"), ("skipped", "1")]],
        "series": shown,
        "scales": {"surge": 10.0, "yaw_rate": 50.0},
        "messages": ["12:00:00 city-car-driving: a simulator connected (session 1)"],
        "hint": "Ctrl-C ends with a fade to neutral",
    }
    return View(**{**fields, **changes})


def lines_of(picture, width, height, glyphs):
    """Return the output of a console of that size."""
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None, highlight=False,
        legacy_windows=False,
    )  # fmt: skip
    with console.capture() as capture:
        console.print(render(picture, width, height, glyphs))
    return capture.get().splitlines()


def cells(text):
    """Return (character, foreground, background) of each cell."""
    console = Console(width=500, force_terminal=True, color_system="truecolor")
    found = []
    for segment in console.render(text):
        color, ground = (segment.style.color, segment.style.bgcolor) if segment.style else (None, None)
        if segment.style and segment.style.reverse:
            color, ground = ground, color
        found += [
            (c, color.name if color else None, ground.name if ground else None) for c in segment.text if c != "\n"
        ]
    return found


def filled(text, color):
    """Return how much of each cell of a smooth bar has `color`, left to right, in eighths."""
    amounts = []
    for character, ink, ground in cells(text):
        left = LEFT_EIGHTHS.find(character) + 1  # eighths that the character covers
        if left:
            amounts.append(left if ink == color else 8 - left if ground == color else 0)
        else:
            amounts.append(8 if ground == color else 0)
    return amounts


@pytest.mark.grid
@pytest.mark.parametrize("glyphs", [SMOOTH, BLOCKS, ASCII], ids=lambda g: g.name)
@pytest.mark.parametrize(("width", "height"), [(200, 60), (80, 24), (79, 23), (60, 24), (40, 15), (20, 5), (1, 1)])
@pytest.mark.parametrize("series", [("car", "cue"), ("cue",)])
def test_picture_fits_the_terminal(width, height, glyphs, series):
    lines = lines_of(view(series), width, height, glyphs)
    assert 0 < len(lines) <= height
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [80, 60])
def test_everything_is_there_at_common_sizes(width):
    text = "\n".join(lines_of(view(), width, 24, SMOOTH))
    for channel in CHANNELS:
        assert channel.label in text
    assert text.count(" car ") == text.count(" DK ") == len(CHANNELS)
    for number in ("-7.08", "-1.05", "+4.00", "+0.72", "-0.14", "-2.05", "-3.77", "-4.27", "+25.44", "+0.00"):
        assert number in text
    for word in ("running", "60.0 frames/s", "333.3 packets/s", "33.0 µs", "skipped 1", "0:23 / 1:02", "±10 m/s²"):
        assert word in text


def test_an_ascii_picture_is_ascii():
    for width in (200, 80, 60):
        text = "\n".join(lines_of(view(), width, 24, ASCII))
        assert text.isascii()
        assert "+-10 m/s2" in text
        assert "#" in text


def test_blank_lines_go_before_channels_do():
    full, low = (lines_of(view(), 80, height, SMOOTH) for height in (32, 16))
    assert sum(not line.strip() for line in full) >= len(CHANNELS) - 1
    assert all(any(channel.label in line for line in low) for channel in CHANNELS)


def test_a_missing_value_is_a_dash():
    empty = Series("car", "car", {}, {})
    rows = [line for line in lines_of(replace(view(), series=[empty]), 80, 24, SMOOTH) if " car " in line]
    assert len(rows) == len(CHANNELS)
    assert all(" - " in row for row in rows)


TROUBLED = {
    "caught": {"teleport": 2, "impossible_acceleration": 1, "frame_time_jump": 2, "paused": 1, "not_finite": 3},
    "limited": {"surge": 0.12, "roll_rate": 0.0004},
    "transitions": [
        Transition(6.6, "input_lost", "parking"),
        Transition(6.8, "input_back", "engaging"),
        Transition(7.2, "cue_reached", "running"),
        Transition(22.0, "teleport", "parking"),
        Transition(23.0, "neutral_reached", "offline"),
        Transition(123.0, "input", "engaging"),
    ],
    "hint": "p or Esc parks  ·  with Enter: e engage  h hold  q park and quit",
}


@pytest.mark.parametrize("glyphs", [SMOOTH, BLOCKS, ASCII], ids=lambda g: g.name)
@pytest.mark.parametrize(("width", "height"), [(200, 60), (80, 24), (79, 23), (60, 24), (40, 15), (20, 5), (1, 1)])
def test_a_picture_of_trouble_fits_the_terminal(width, height, glyphs):
    lines = lines_of(view(**TROUBLED), width, height, glyphs)
    assert 0 < len(lines) <= height
    assert max(map(len, lines)) <= width
    assert glyphs is not ASCII or "".join(lines).isascii()


def test_events_are_named_counted_and_shown_at_80_by_24():
    lines = lines_of(view(**TROUBLED), 80, 24, SMOOTH)
    text = "\n".join(lines)
    for name in ("teleport 2", "impossible acceleration 1", "frame time jump 2", "paused 1", "not finite 3"):
        assert name in text
    assert "surge 12 %" in text
    assert "roll rate <0.1 %" in text
    assert " 22.0 s  teleport → parking" in text
    assert lines[-2].strip() == "123.0 s  input → engaging"  # the newest stands last
    assert lines[-1].strip() == TROUBLED["hint"]
    for channel in CHANNELS:
        assert channel.label in text


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_every_key_is_shown_on_any_width(width):
    last = " ".join(line.strip() for line in lines_of(view(**TROUBLED), width, 24, SMOOTH)[-4:])
    assert "  ".join(last.split()).endswith("  ".join(TROUBLED["hint"].split()))


@pytest.mark.parametrize(
    ("height", "seen"),
    [
        (60, ["caught", "limited", "6.6 s", "123.0 s", "simulator connected", "q park"]),
        (24, ["caught", "limited", "22.0 s", "123.0 s", "q park"]),
        (18, ["123.0 s", "q park"]),
        (16, ["q park"]),
        (15, ["yaw rate", "q park"]),
    ],
)
def test_the_least_important_lines_go_first_in_a_low_terminal(height, seen):
    text = "\n".join(lines_of(view(**TROUBLED), 80, height, SMOOTH))
    for word in seen:
        assert word in text


@pytest.mark.parametrize("glyphs", [SMOOTH, BLOCKS, ASCII], ids=lambda g: g.name)
@pytest.mark.parametrize("width", [20, 40, 80])
def test_how_to_park_is_the_last_to_go_and_bounds_that_are_off_before_it(width, glyphs):
    off = ['limits.yaw = "none": yaw is not bounded', "watch.frozen_s = 60: the watch lets nearly anything pass"]
    for height in range(1, 25):
        calm, freed = (lines_of(view(**TROUBLED, off=each), width, height, glyphs) for each in ([], off))
        for lines in (calm, freed):
            assert any("p or Esc parks" in line for line in lines[-1 if height < 20 else -6 :])
        assert len(freed) == 1 or freed[0].startswith(" BOUNDS OFF (and 1 m")
        assert "BOUNDS" not in "".join(calm)
        assert height < 3 or any("running" in line for line in calm[:2])


def test_every_change_of_state_can_be_shown():
    assert set(STATES) >= {state.name.lower() for state in State if state.name != "STATES"}
    for state in STATES:
        text = "\n".join(lines_of(view(transitions=[Transition(1.0, "input", state)]), 80, 24, SMOOTH))
        assert f"input → {state}" in text


def test_without_trouble_there_are_no_empty_headings():
    text = "\n".join(lines_of(view(), 80, 24, SMOOTH))
    assert "caught" not in text
    assert "limited" not in text


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100 %"), (0.12, "12 %"), (0.0099, "1 %"), (0.004, "0.4 %"), (1e-9, "<0.1 %")]
)
def test_a_share_above_zero_never_reads_as_zero(share, text):
    assert percent(share) == text


def test_the_log_of_a_transition_is_not_shown_twice():
    assert TRANSITION.search("12:00:00 warning: running to parking: teleport (120.6, allowed 1.553)")
    assert not TRANSITION.search("12:00:00 city-car-driving: a simulator connected (session 1)")


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_named(state):
    assert f"● {state}" in "\n".join(lines_of(view(state=state), 80, 24, SMOOTH))


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii", "cp437", "latin-1"])
def test_glyphs_can_be_written_in_the_encoding(encoding):
    output = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    console = Console(file=output, width=80, height=24, force_terminal=True, legacy_windows=False, highlight=False)
    glyphs = glyphs_for(console.encoding, colors=True)
    assert (glyphs is SMOOTH) == (encoding == "utf-8")
    console.print(render(view(), 80, 24, glyphs))
    output.flush()


def test_an_unknown_encoding_gets_ascii():
    assert glyphs_for("no-such-encoding", colors=True) is ASCII
    assert glyphs_for(None, colors=True) is ASCII


def test_every_color_can_be_read_on_black_and_on_white():
    def luminance(color):  # WCAG 2.2
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    used = {ink for character, ink, ground in cells(render(view(("car", "cue")), 120, 40, SMOOTH)) if ink}
    assert len(used) >= 3
    for color in used | set(STATES.values()):
        assert 1.05 / (luminance(color) + 0.05) >= 4.5, color
        assert (luminance(color) + 0.05) / 0.05 >= 4.5, color


def test_no_colors_means_no_inside_out_characters():
    assert glyphs_for("utf-8", colors=False) is BLOCKS


@pytest.mark.parametrize("value", [-5.0, -3.3, -0.1, 0.0, 0.1, 0.7, 2.5, 4.99, 5.0])
@pytest.mark.parametrize("width", [9, 31, 33])
def test_a_smooth_bar_is_as_long_as_its_value_from_the_center(value, width):
    amounts = filled(bar(value, 5.0, width, "#ffffff", SMOOTH), "#ffffff")
    side = width // 2
    assert len(amounts) == width
    left, center, right = amounts[:side], amounts[side], amounts[side + 1 :]
    assert center == 0
    assert sum(right if value > 0 else left) == pytest.approx(8 * side * abs(value) / 5.0, abs=0.51)
    assert sum(left if value > 0 else right) == 0
    from_center = right if value > 0 else left[::-1]
    assert from_center == sorted(from_center, reverse=True)  # no gap


@pytest.mark.parametrize(("glyphs", "full"), [(BLOCKS, "█"), (ASCII, "#")], ids=["blocks", "ascii"])
def test_a_plain_bar_grows_to_its_side(glyphs, full):
    right, left = (bar(value, 10.0, 21, "white", glyphs).plain for value in (5.0, -5.0))
    assert right == " " * 10 + glyphs.center + full * 5 + " " * 5
    assert left == right[::-1]


def test_half_a_cell_points_to_the_center():
    assert bar(0.5, 10.0, 21, "white", BLOCKS).plain.strip() == "│▌"
    assert bar(-0.5, 10.0, 21, "white", BLOCKS).plain.strip() == "▐│"


@pytest.mark.parametrize("glyphs", [SMOOTH, BLOCKS, ASCII], ids=lambda g: g.name)
def test_a_bar_stops_at_its_end_and_ignores_what_is_not_finite(glyphs):
    assert bar(1e9, 5.0, 21, "white", glyphs) == bar(5.0, 5.0, 21, "white", glyphs)
    for value in (math.nan, math.inf, -math.inf):
        assert bar(value, 5.0, 21, "white", glyphs).plain == bar(0.0, 5.0, 21, "white", glyphs).plain


def drawn(values, width, height, glyphs, scale=4.0):
    """Return the characters of a chart of one line."""
    return [row.plain for row in plot([Line(values, "#ffffff", "x")], scale, width, height, glyphs)]


def test_a_chart_has_zero_in_the_middle_and_the_newest_at_the_right():
    assert drawn([], 3, 1, SMOOTH) == ["───"]
    assert drawn([], 3, 2, SMOOTH) == ["   ", "▔▔▔"]
    assert drawn([], 3, 3, ASCII) == ["   ", "---", "   "]
    assert drawn([4.0, 0.0, -4.0], 4, 3, ASCII) == [" x  ", "--x-", "   x"]
    assert drawn([9.0, 0.0, 4.0], 2, 3, ASCII) == [" x", "x-", "  "]  # only the newest two


def test_a_chart_in_dots_is_two_values_wide_and_four_levels_high_in_each_cell():
    assert drawn([4.0, 4.0], 1, 1, SMOOTH) == ["⠉"]  # dots 1 and 4: the upper row
    assert drawn([-4.0, -4.0], 1, 1, SMOOTH) == ["⣀"]  # dots 7 and 8: the lower row
    assert drawn([4.0], 1, 1, SMOOTH) == ["⠈"]
    assert drawn([4.0, -4.0], 1, 1, SMOOTH) == ["⢱"]  # neighbors are connected: dot 1, then 5, 6 and 8


def test_a_chart_ends_at_its_edge_and_leaves_out_what_is_not_finite():
    assert drawn([1e9], 1, 1, SMOOTH) == drawn([4.0], 1, 1, SMOOTH)
    for value in (math.nan, math.inf, -math.inf):
        assert drawn([value], 1, 1, SMOOTH) == drawn([], 1, 1, SMOOTH)
    assert drawn([4.0, math.nan, -4.0], 3, 3, ASCII) == ["x  ", "---", "  x"]  # nothing is connected across a gap


def test_a_later_line_of_a_chart_covers_an_earlier_one():
    (row,) = plot([Line([4.0, 4.0], "#111111", "o"), Line([4.0, 4.0], "#222222", "x")], 4.0, 1, 1, SMOOTH)
    assert cells(row)[0][:2] == ("⠉", "#222222")


def test_what_is_felt_has_a_row_of_its_own_where_there_is_room():
    felt = Series("felt", "felt", {"surge": 1.0, "sway": 2.0, "heave": 3.0}, {})
    three = replace(view(), series=[view().series[0], felt, view().series[1]])
    assert "\n".join(lines_of(three, 80, 24, SMOOTH)).count(" felt ") == 3
    assert " felt " not in "\n".join(lines_of(three, 80, 18, SMOOTH))


def test_rows_stay_where_they_are_whatever_happens():
    for height in (16, 20, 24, 30, 45, 60):
        calm, troubled = (lines_of(each, 100, height, SMOOTH) for each in (view(), view(**TROUBLED)))
        for channel in CHANNELS:
            rows = [[channel.label in line[:11] for line in lines] for lines in (calm, troubled)]
            assert rows[0].index(True) == rows[1].index(True), (height, channel.label)


def test_a_large_terminal_is_used_for_charts_with_a_time_axis():
    lines = lines_of(view(), 100, 60, SMOOTH)
    starts = [index for index, line in enumerate(lines) if any(c.label in line[:11] for c in CHANNELS)]
    assert min(b - a for a, b in itertools.pairwise(starts)) >= 6
    assert len(lines) > 40
    (axis,) = (line for line in lines if "s ago" in line)
    assert axis.rstrip().endswith("now")
    assert lines.index(axis) > starts[-1]


def test_travel_is_shown_below_the_channels():
    text = "\n".join(lines_of(view(travel=[("leg_1", " +43 %"), ("leg_2", "  -7 %")]), 80, 24, SMOOTH))
    assert "travel   leg 1  +43 %  leg 2   -7 %" in text


def test_a_trace_keeps_the_peak_of_each_moment():
    history = History([("car", "car")])
    for time_s, value in ((0.0, 1.0), (0.05, -4.0), (0.1, 2.0), (0.25, 0.5)):
        (series,) = history.add(time_s, [{"surge": value}])
    assert series.traces["surge"] == (-4.0, 0.5)
    assert series.values == {"surge": 0.5}


def test_scales_grow_in_steps_of_1_2_5_and_never_shrink():
    history = History([("car", "car")])
    found = []
    for value in (4.9, 5.1, 10.1, 3.0, 20.1, 49.0, 51.0, 0.0):
        history.add(0.0, [{"surge": value}])
        found.append(history.scales["surge"])
    assert found == [5.0, 10.0, 20.0, 20.0, 50.0, 50.0, 100.0, 100.0]


def test_a_rate_is_counted_over_the_last_two_seconds():
    rate = Rate()
    assert rate.add(0.0, 0) == 0.0
    found = [rate.add(k / 15, 60 * k // 15) for k in range(1, 150)]
    assert found[-1] == pytest.approx(60.0)
    assert rate.add(20.0, 60 * 149 // 15) == 0.0  # no count for more than two seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00 ns"),
        (0.846, "846 ns"),
        (33.27, "33.3 µs"),
        (127.4, "127 µs"),
        (999.6, "1.00 ms"),
        (2719.7, "2.72 ms"),
        (3.2e6, "3.20 s"),
    ],
)
def test_times_have_three_figures_and_a_unit(value, text):
    assert microseconds(value) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0:00"), (62.0, "1:02"), (3661.0, "1:01:01")])
def test_clock_shows_whole_seconds(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize(("width", "height"), [(200, 60), (80, 24), (40, 15), (24, 10)])
@pytest.mark.parametrize("address", ["http://127.0.0.1:8765/", "http://192.168.1.10:8765/?token=" + "abcd" * 6])
def test_address_of_the_page_stays_whole_on_any_width(width, height, address):
    lines = lines_of(view(address=address), width, height, SMOOTH)
    assert len(lines) <= height
    assert address in "".join(line.ljust(width) if len(line) < width else line for line in lines)
    assert "Ctrl-C" in lines[-1]


@pytest.mark.parametrize("width", [100, 80, 40])
def test_a_refusal_stays_in_sight_whole(width):
    refused = (
        "live.toml is saved but not used, what was in use stays: live: cueing.surge.gian: unknown key, allowed are gain"
    )
    moves = [Transition(float(at), "input_lost", "parking") for at in range(8)]
    lines = lines_of(view(refused=refused, transitions=moves), width, 24, SMOOTH)
    assert refused in " ".join(" ".join(lines).split())
    assert len(lines) <= 24


WHEELS = ("front_left", "front_right", "rear_left", "rear_right")


def test_what_a_source_says_of_wheels_and_cab_is_one_line_of_it_and_none_where_it_says_nothing():
    travel = dict(zip((f"suspension_{wheel}" for wheel in WHEELS), (0.0125, -0.004, 0.0, 0.03), strict=True))
    assert chassis_facts(travel) == [("suspension", "12.5 -4 0 30 mm")]
    assert chassis_facts({"suspension_velocity_rear_left": -0.5, "cabin_up": 0.01}) == [
        ("suspension velocity", "- - -500 - mm/s"),
        ("cab", "up 0.01"),
    ]
    assert chassis_facts({}) == []


@pytest.mark.parametrize("said", [{}, {"slip_front_left": 0.25, "slip_rear_left": 1.5}])
def test_listen_shows_it_while_it_comes(said):
    class Heard:
        def stats(self):
            chassis = {"chassis": said} if said else {}
            return {"frames_received": 3, "rejected": {}, "motion": {"surge": 1.0}, **chassis}

    shown = "\n".join(lines_of(SimulatorView(Heard(), "listen", None, ())(1.0), 100, 24, SMOOTH))
    assert ("slip 0.25 - 1.5 -" in shown) == bool(said)
    assert "rumble" not in shown
