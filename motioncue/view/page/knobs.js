// The few knobs of an axis in plain words, each of which moves one or several settings by the same share.

import { button, choices, make } from "./elements.js";
import { printed } from "./tuning.js";

const STEP = 1.1;
const AXES = ["surge", "sway", "heave", "roll", "pitch", "yaw"];

// Of an axis: what a knob is called, what it is for, and the settings that it moves, some of them the other way.
const KNOBS = [
  ["stronger", "All of this axis, in the same shape.", ["A.gain", "tilt.A_gain", "texture.A_gain", "gains.A"], []],
  ["quicker return", "Less travel is used, and long motions are felt for a shorter time.", ["A.cutoff_hz"], ["A.travel_m", "A.angle_deg"]],
  ["all axes stronger", "What the plan aims at, of all that is felt in the car.", ["gain"], []],
  ["less travel", "The platform stays nearer the middle.", ["restraint", "weights.travel"], []],
  ["lean", "How far the platform leans for what lasts, such as long braking.", ["tilt.A_gain"], []],
  ["quicker lean", "What lasts comes sooner; too quick, and turning is noticed.", ["tilt.A_cutoff_hz", "tilt.rate_limit_deg_s"], []],
  ["smoother", "Less overshoot and softer starts.", ["A.damping", "weights.smoothness", "weights.effort"], ["tilt.acceleration_limit_deg_s2"]],
  ["softer peaks", "What is large is cut lower; what is small stays as it is.", [], ["A.limit_m_s2", "A.limit_deg_s", "tilt.A_limit_m_s2"]],
  ["texture", "Road and engine, felt as vibration.", ["texture.A_gain"], []],
  ["more weight", "This axis matters more than the others.", ["A.weight", "weights.A", "weights.A_rate"], []],
];

const GAINS = (axis) => new RegExp(`^cueing\\.(${axis}\\.gain|(tilt|texture)\\.${axis}_gain|gains\\.${axis})$`);
const small = (text, act) => button(text, act, { className: "small" });
const tidy = (value) => String(Number(Number(value).toPrecision(3))).replace("-", "−");

export class Knobs {
  constructor(place, tuning, send) {
    Object.assign(this, { place, tuning, send, axis: "surge", muted: [], bounds: {}, gesture: 0 });
    const [tabs, press] = choices(AXES, (axis) => {
      this.axis = axis;
      this.build();
    });
    tabs.setAttribute("aria-label", "Axis");
    press(this.axis);
    this.list = make("div", { className: "knobs" });
    this.silence = make("div", { className: "row" });
    this.solo = small("Solo", () => this.mute(this.alone ? [] : AXES.filter((axis) => axis !== this.axis)));
    this.quiet = small("Mute", () => this.mute(this.muted.includes(this.axis) ? this.muted.filter((axis) => axis !== this.axis) : [...this.muted, this.axis]));
    this.wave = small("Test wave", () => this.send({ do: "wave", axis: this.axis }));
    this.wave.title = "Moves this axis alone, while no simulator sends: asks first, and parks by itself";
    this.planned = make("span", { className: "quiet", textContent: "This algorithm has no gain of this axis, so it cannot be muted." });
    this.silence.append(this.solo, this.quiet, this.planned, make("span", { className: "spacer" }), this.wave);
    this.fits = make("p", { className: "quiet" });
    this.fit = small("", () => this.turn(this.found, this.more, this.fit.textContent));
    this.own = make("p", { className: "quiet" });
    this.scale = small("", () => this.turn(...this.scaled));
    this.fit.hidden = this.scale.hidden = true;
    place.replaceChildren(tabs, this.list, this.silence, this.own, this.scale, this.fits, this.fit);
  }

  get alone() { return this.muted.length === AXES.filter((axis) => this.gains(axis).length).length - 1 && !this.muted.includes(this.axis); }

  // The settings that have a value to be moved, by their keys without the axis.
  keys(names, axis = this.axis) {
    const leans = (name) => !/^tilt\.(rate|acc)/.test(name) || !["heave", "yaw"].includes(axis);      // these do not lean
    return names.filter(leans).map((name) => `cueing.${name.replace("A", axis)}`).filter((key) => typeof this.tuning.values[key] === "number" && this.tuning.values[key] !== 0 && !this.tuning.rows.get(key)?.parameter.fixed);
  }

  gains(axis) {
    return [...this.tuning.rows.keys()].filter((key) => GAINS(axis).test(key) && typeof this.tuning.values[key] === "number");
  }

  build() {
    this.list.replaceChildren();
    this.shown = [];
    for (const [name, help, up, down] of KNOBS) {
      const keys = [...this.keys(up).map((key) => [key, 1]), ...this.keys(down).map((key) => [key, -1])];
      if (!keys.length) continue;
      const box = make("div", { className: "knob" }), title = make("b", { textContent: name, title: help }), moved = make("span", { className: "quiet" });
      const less = small("−", () => this.turn(keys, 1 / STEP, `${this.axis} ${name}: less`)), more = small("+", () => this.turn(keys, STEP, `${this.axis} ${name}: more`)), by = make("span", { className: "by" });
      less.setAttribute("aria-label", `${name}: less`);
      more.setAttribute("aria-label", `${name}: more`);
      box.append(title, less, by, more, moved);
      this.list.append(box);
      this.shown.push({ keys, by, moved });
    }
    if (!this.shown.length) this.list.append(make("p", { className: "quiet", textContent: "This algorithm has no knobs of this axis: its settings are below." }));
    this.show(this.muted);
  }

  // Moves settings by a factor, those that count the other way by its inverse.
  turn(keys, factor, why) {
    const values = Object.fromEntries(keys.map(([key, way]) => {
      const { least, most } = this.tuning.rows.get(key)?.parameter ?? {}, value = this.tuning.values[key] * factor ** way;
      return [key, Number(Math.max(least ?? -Infinity, Math.min(most ?? Infinity, value)).toPrecision(4))];
    }));
    this.tuning.flush();
    this.send({ do: "turn", values, gesture: (this.gesture += 1), why: `knob ${why}`.slice(0, 100) });
  }

  mute(axes) {
    this.tuning.flush();
    this.send({ do: "mute", axes });
  }

  show(muted) {
    this.muted = muted;
    const { values, rows } = this.tuning;
    for (const { keys, by, moved } of this.shown ?? []) {
      const factor = keys.map(([key, way]) => {
        const begin = rows.get(key)?.begin;
        return typeof begin === "number" && begin ? (values[key] / begin) ** way : 1;
      })[0];
      by.textContent = `×${factor.toFixed(2)}`;
      const all = keys.every(([key]) => !key.includes(this.axis)) ? "all axes: " : "";
      moved.textContent = all + keys.map(([key]) => {
        const { begin, parameter } = rows.get(key) ?? {}, name = key.replace("cueing.", "").replaceAll(/[._]/g, " ").replace(/ (hz|m s2|deg s2?)$/, "");
        const now = tidy(values[key]), was = typeof begin === "number" ? tidy(begin) : now;
        return `${name} ${was === now ? now : `${was} → ${now}`} ${printed(parameter?.unit ?? "")}`.trim();
      }).join(" · ");
    }
    const able = this.gains(this.axis).length > 0;
    this.solo.hidden = this.quiet.hidden = !able;
    this.planned.hidden = able;
    this.solo.setAttribute("aria-pressed", String(this.alone));
    this.quiet.setAttribute("aria-pressed", String(muted.includes(this.axis)));
  }

  // From what was captured: how the axis could be scaled, so that the most that the car did becomes the most that is
  // asked of the platform; and from the travel that was used, how much stronger or weaker all axes could be.
  suggest(peak, reached) {
    this.capture(reached[this.axis === "yaw" ? "yaw_rate" : this.axis], peak);
    const planned = (key) => key.startsWith("cueing.gains.");      // the plan keeps within the travel by itself
    const keys = AXES.flatMap((axis) => this.gains(axis)).filter((key) => this.tuning.values[key] && !planned(key)).map((key) => [key, 1]);
    const more = Math.round((80 * 0.01 / peak) * 20) / 20;
    const fits = !(peak > 0.02) || this.muted.length || !keys.length || Math.abs(more - 1) < 0.1;
    this.fit.hidden = fits;
    this.fits.textContent = peak > 0.02 && keys.length ? `The drive used ${Math.round(100 * peak)} % of the travel at most.` : "";
    if (fits) return;
    const factor = Math.max(0.5, Math.min(2, more)), text = `All axes ×${factor}: would use about ${Math.round(100 * peak * factor)} %`;
    if (this.fit.textContent !== text) this.fit.textContent = text;
    [this.found, this.more] = [keys, factor];
  }

  // The most that the rig shows is its limit, and no more than its travel allows.
  capture([car, asked] = [0, 0], peak) {
    const turns = AXES.indexOf(this.axis) > 2, factor = turns ? 180 / Math.PI : 1, name = this.axis === "yaw" ? "yaw_rate" : this.axis;
    const unit = this.axis === "yaw" ? "°/s" : turns ? "°" : "m/s²", most = this.bounds[name] ?? Infinity, cut = asked > 0.98 * most;
    const says = car * factor >= 1 && asked * factor >= 0.1 && !this.muted.includes(this.axis), keys = this.keys(["A.gain", "tilt.A_gain"]).filter((key) => this.tuning.values[key] > 0).map((key) => [key, 1]);
    const by = cut ? 0.8 : Math.max(0.5, Math.min(2, (0.9 * most) / asked, 0.95 / peak));
    const times = Number(by.toPrecision(2)), text = `Scale ${this.axis} ×${times}${cut ? ": it was cut at the limit" : `: asks about ${tidy(asked * times * factor)} ${unit}`}`;
    this.own.textContent = says ? `Your car reached ${tidy(car * factor)} ${unit}; this rig was asked ${tidy(asked * factor)}${most < Infinity ? ` of at most ${tidy(most * factor)}` : ""}.` : "";
    this.scale.hidden = !says || !keys.length || !(Math.abs(times - 1) >= 0.1);
    if (this.scale.textContent !== text) this.scale.textContent = text;
    this.scaled = [keys, times, `scaled, as the car reached ${tidy(car * factor)} ${unit} of ${this.axis}`];
  }
}
