"""Several settings moved together, and axes that are silent: by the editor, and by the page's knobs in a Chromium."""

import pytest
from view_rig import driven, profile, soon

from motioncue.engine.engine import Engine
from motioncue.errors import ConfigError
from motioncue.view.access import Address
from motioncue.view.editor import AXES, Doubtful, Editor
from motioncue.view.server import Server

GAIN, LEAN = "cueing.surge.gain", "cueing.tilt.surge_gain"


def desk_of(*more):
    engine = Engine(profile(*more))
    return engine, Editor(engine, "")


def test_numbers_turned_together_are_undone_together():
    engine, desk = desk_of()
    begin = engine.requested
    desk.turn({GAIN: 0.9, "cueing.surge.cutoff_hz": 0.25}, (1,))
    desk.turn({GAIN: 0.85, "cueing.surge.cutoff_hz": 0.3}, (1,))
    assert (engine.requested.cueing.surge.gain, engine.requested.cueing.surge.cutoff_hz) == (0.85, 0.3)
    assert desk.state()["undo"] == 1
    desk.undo()
    assert engine.requested == begin


def test_turning_is_asked_about_and_refused_as_a_slider_is():
    engine, desk = desk_of()
    begin = engine.requested
    with pytest.raises(Doubtful, match="more than twice"):
        desk.turn({GAIN: 5.0}, (1,))
    with pytest.raises(ConfigError, match="allowed is a number from -10 to 10"):
        desk.turn({"cueing.sway.gain": 0.5, GAIN: 99.0}, (1,), sure=True)
    with pytest.raises(ConfigError, match="allowed are numbers"):
        desk.turn({"cueing.turned_by": 1.0}, (1,), sure=True)
    assert engine.requested == begin


@pytest.mark.parametrize("algorithm", ["classical", "predictive"])
@pytest.mark.parametrize("axes", [["surge"], ["roll", "yaw"], [axis for axis in AXES if axis != "heave"]], ids=str)
def test_muted_axes_come_back_as_they_were(axes, algorithm):
    engine, desk = desk_of(f"cueing.algorithm={algorithm}")
    begin = engine.requested
    desk.mute(axes)
    assert desk.state()["muted"] == [axis for axis in AXES if axis in axes]
    cueing = engine.requested.cueing
    for axis in AXES:
        gain = getattr(cueing.gains, axis) if algorithm == "predictive" else getattr(cueing, axis).gain
        assert (gain == 0.0) == (axis in axes)
    desk.mute([])
    assert engine.requested == begin
    assert desk.state()["muted"] == []


def test_an_axis_is_turned_while_another_is_muted():
    engine, desk = desk_of()
    begin = engine.requested
    desk.mute(["surge"])
    desk.turn({"cueing.sway.gain": 0.5}, (1,))
    with pytest.raises(ConfigError, match="surge muted"):
        desk.save("x.toml")
    desk.mute([])
    assert engine.requested.cueing.surge == begin.cueing.surge
    assert engine.requested.cueing.sway.gain == 0.5
    desk.undo()
    assert desk.state()["muted"] == ["surge"]
    desk.undo()
    desk.undo(sure=True)
    assert engine.requested == begin
    with pytest.raises(ConfigError, match="mute: found 'up'"):
        desk.mute(["up"])


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_knobs_move_settings_and_mute_in_the_browser(tmp_path):
    chromium = pytest.importorskip("view_chromium")
    if chromium.BROWSER is None:
        pytest.skip("needs a Chromium")
    with chromium.launched() as browser, Engine(profile()) as engine:
        begin = engine.requested.cueing
        with Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server, chromium.Tab(browser, server) as tab:
            tab.page.get_by_role("button", name="stronger: more").click()
            soon(lambda: engine.requested.cueing.surge.gain == pytest.approx(1.1 * begin.surge.gain, rel=1e-3))
            tab.shows("#knobs", "×1.10")
            tab.page.get_by_role("group", name="Axis").get_by_role("button", name="sway").click()
            tab.page.get_by_role("button", name="quicker return: less").click()
            soon(lambda: engine.requested.cueing.sway.cutoff_hz == pytest.approx(begin.sway.cutoff_hz / 1.1, rel=1e-3))
            tab.page.get_by_role("button", name="Solo").click()
            tab.shows("#muted", "Muted: surge, heave, roll, pitch, yaw")
            tab.page.get_by_role("button", name="Solo").click()
            soon(lambda: engine.requested.cueing.surge.gain == pytest.approx(1.1 * begin.surge.gain, rel=1e-3))
            driven(engine, 1.0)
            tab.page.fill("#filter", "too jerky")
            chromium.playwright.expect(tab.page.locator('[data-key="cueing.surge.damping"]')).to_be_visible()
            tab.page.fill("#filter", "xyzzy")
            tab.shows("#none-found", "Nothing found")
            tab.page.fill("#filter", "")
            chromium.playwright.expect(tab.page.locator('[data-key="cueing.yaw.damping"]')).to_be_hidden()
            assert tab.errors == []
