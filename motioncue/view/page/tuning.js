// A control for every setting of the profile: sliders, lists and boxes, sent to the engine as they change; and the few
// knobs of an axis in plain words, each of which moves one or several settings by the same share.

import { Lock, button, byThumb, choices as side, make } from "./elements.js";

const STEPS = 1000, EVERY_MS = 60;
const SLOW_MS = 250;          // from a change until it is said that it is being applied

const FIXED = "fixed while it runs";
const SAFETY = /^(limits|watch|supervisor|platform|output(\[\d+\])?\.limits)\b/;     // what protects, apart from taste
const UNNAMED = "none";       // stands for a key that is left out

// What people say, and the keys that it is about.
const PADDING = new Set(["too", "it", "is", "the", "a", "more", "less", "much", "not", "feels", "i", "want", "to", "very"]);
const MEANS = [
  [/^(strong|weak|stronger|weaker|strength|scale|intens|loud|soft)/, /gain$|gains\.|share$|scaling/],
  [/^(wash|washout|return|recent|centre|center|drift)/, /cutoff_hz$|break_hz$|restraint|return_s|travel/],
  [/^(jerk|jolt|nervous|sharp|harsh|rough|smooth|shak|twitch|kick)/, /damping$|rate_limit|acceleration_limit|cutoff_hz$|smooth|jerk|rate_/],
  [/^(lean|tilt|brak|long|sustain)/, /tilt/],
  [/^(late|lag|delay|slow|latency|behind)/, /forecast|bridge|lag|lead|plan_rate|horizon|fade/],
  [/^(texture|road|bump|kerb|curb|vibrat|engine|rumble)/, /texture|heave/],
  [/^(travel|stop|end|limit|range|bottom)/, /limit|cutoff_hz$|workspace|travel|scaling|gives_way/],
  [/^(sick|nause|dizzy|turn|spin)/, /tilt\.rate|yaw|turned_by/],
  [/^(park|start|engage|fade)/, /supervisor/],
];

// A value in words, for one that cannot be changed.
const shown = (value) => (value === null || value === undefined ? "none" : typeof value === "number" ? tidy(value) : Array.isArray(value) ? value.join(", ") || "none" : String(value));

const tidy = (value) => (value === null || value === undefined ? "" : String(Number(Number(value).toPrecision(4))));

// A unit as it is printed.
const printed = (unit) => unit.replaceAll(/\^(\d)/g, (_, power) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[power]).replaceAll("deg", "°");

// A key as words, without the unit that stands beside it.
function plain(name, unit) {
  const suffix = `_${unit.toLowerCase().replace("/", "_").replace("^", "")}`;
  return (unit && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name).replaceAll("_", " ");
}

// A number as a person writes it, with a point or a comma; NaN if it is none.
const numbered = (text) => (/^[-+−]?(\d+[.,]?\d*|[.,]\d+)(e[-+]?\d+)?$/i.test(text.trim()) ? Number(text.trim().replace("−", "-").replace(",", ".")) : NaN);

// A step of a number: a hundredth to a tenth of its size, so that no step goes beyond 0.
const step = (value) => 10 ** (Math.floor(Math.log10(Math.abs(value)) + 1e-9) - 1);

// The part of a number's range that its slider covers, on its side of 0, around the value that it began with; the box
// beside takes all.
function span({ key, least, most, above, choices }, begin) {
  if (choices.length) return { low: choices[0], high: choices[choices.length - 1], log: false };
  const around = Math.abs(begin) || 1;
  const positive = least !== null && least >= 0;
  if (positive && above) return { low: Math.max(least, around / 10), high: Math.min(most ?? Infinity, around * 10), log: true };
  const low = positive ? least : begin > 0 || (begin === 0 && /gain$/.test(key)) ? 0 : Math.max(least ?? -Infinity, begin - 2 * around);
  return { low, high: begin < 0 ? 0 : Math.min(most ?? Infinity, begin + 2 * around), log: false };
}

const toSlider = ({ low, high, log }, value) => STEPS * (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
const fromSlider = ({ low, high, log }, at) => (log ? low * (high / low) ** (at / STEPS) : low + ((high - low) * at) / STEPS);

// What a setting may be, in words.
function allowed({ kind, choices, least, most, above, optional, default: usual }) {
  const range = choices.length ? (kind === "choice" ? "" : choices.join(", ")) : kind === "number" ? `${least === null ? "any" : `${above ? "above" : "from"} ${tidy(least)}`}${most === null ? "" : ` to ${tidy(most)}`}` : "";
  if (kind === "table" && choices.length) return "Off: not bounded.";
  return `${range ? `Allowed: ${range}${kind === "number" && optional ? ", or none" : ""}.` : ""}${usual === null ? "" : ` Default ${shown(usual)}.`}`;
}

export class Tuning {
  constructor(place, send, ask = () => {}, waits = () => {}) {
    Object.assign(this, { place, send, ask, waits, values: {}, slow: 0, rows: new Map(), began: new Map(), gesture: Math.floor(performance.now()), held: null, pending: new Map(), timer: 0 });
    Object.assign(this, { asked: 0, answered: 0 });      // of the settings sent, and of those that were made or refused
    this.parts = Object.fromEntries(["taste", "safety", "fixed"].map((name) => [name, make("div", { className: "groups" })]));
    place.replaceChildren(this.parts.taste, this.locked(this.parts.safety), this.parts.fixed);
    this.helping();
  }

  // What protects, and what the platform is, behind a lock of its own.
  locked(part) {
    const fields = make("fieldset", { className: "safety" }), legend = make("legend", { textContent: "Safety" });
    const unlock = make("button", { type: "button", className: "small", textContent: "Unlock" });
    unlock.setAttribute("aria-label", "Unlock limits, watch, supervisor and platform");
    legend.append(unlock);
    fields.append(legend, make("p", { className: "quiet", textContent: "Limits, watch, supervisor and platform protect who sits there: no matter of taste." }), part);
    new Lock(unlock, [fields], fields, () => this.close());      // the button, in the legend, is not disabled with them
    return fields;
  }

  // Shows the sentence of the setting that has the focus; not while a pointer is down, because what moves is not clicked.
  helping() {
    let down = false;
    const help = () => {
      if (down) return;
      for (const box of this.place.querySelectorAll(".parameter.helped")) box.classList.remove("helped");
      document.activeElement?.closest?.(".parameter")?.classList.add("helped");
    };
    document.addEventListener("pointerdown", () => (down = true), true);
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => setTimeout(() => (down = false, help())), true);
    document.addEventListener("focusin", help);
    document.addEventListener("focusout", () => setTimeout(help));
  }

  // Builds the controls anew; what is open stays open, and values at the beginning are remembered.
  build(parameters) {
    const before = [...this.place.querySelectorAll("details")], first = !before.length;
    const open = new Set(before.filter((details) => details.open).map((details) => details.dataset.name));
    const groups = new Map();
    for (const parameter of parameters) {
      const path = parameter.key.split(".");
      const group = parameter.fixed ? FIXED : path.length === 1 ? path[0] : path.slice(0, -1).join(" · ").replaceAll(/\[(\d+)\]/g, (_, index) => ` ${Number(index) + 1}`);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(parameter);
    }
    for (const part of Object.values(this.parts)) part.replaceChildren();
    for (const [key, row] of this.rows) if (row.begin !== undefined) this.began.set(key, row.begin);
    this.held = null;
    this.earlier = new Map(this.rows);
    this.rows.clear();
    this.parts.safety.parentNode.hidden = ![...groups.values()].some(([{ key, fixed }]) => !fixed && SAFETY.test(key));
    for (const [name, members] of groups) {
      const details = make("details", { open: first ? /^cueing · (surge|tilt)$/.test(name) || name === "cueing" : open.has(name) });
      details.dataset.name = name;
      const count = make("span", { className: "count" });
      const summary = make("summary", { textContent: name.replaceAll("_", " ") });
      summary.append(count);
      details.append(summary);
      if (name === FIXED) details.append(make("p", { className: "quiet", textContent: "Change these in the profile's file, and start again." }));
      for (const parameter of members) details.append(this.row(parameter, count));
      this.parts[name === FIXED ? "fixed" : SAFETY.test(members[0].key) ? "safety" : "taste"].append(details);
    }
  }

  row(parameter, count) {
    const { key, unit, sentence, fixed } = parameter;
    const box = make("div", { className: "parameter", title: key });
    box.dataset.key = key;
    box.dataset.kind = fixed ? "fixed" : parameter.kind;
    const label = make("label"), why = make("p", { className: "why" }), help = make("p", { className: "help" });
    why.setAttribute("role", "alert");
    const name = key.split(".").slice(fixed ? 0 : -1).map((part) => {
      const [, word, index] = part.match(/^(.*?)(?:\[(\d+)\])?$/);
      return `${plain(word, unit)}${index === undefined ? "" : ` ${Number(index) + 1}`}`;
    });
    label.append(make("b", { textContent: name.join(" · ") }), make("span", { textContent: printed(unit) }));
    help.textContent = fixed ? `Fixed: ${fixed}.` : `${sentence} ${allowed(parameter)}`;
    // Numbers of the setting asked for last, of the one before it, and of the one whose refusal is said.
    const { asked = 0, before = 0, refused = 0, value = null, last = null, why: said } = this.earlier.get(key) ?? {};
    const row = { parameter, box, why, count, begin: this.began.get(key), value, last, asked, before, refused };
    why.textContent = said?.textContent ?? "";
    const parts = fixed ? this.still(row) : parameter.kind === "number" ? this.number(row) : this.other(row);
    if (!fixed) {
      row.field.id = `p-${key}`;
      label.htmlFor = row.field.id;
      const reset = button("↺", () => {
        this.newGesture(row);
        this.change(key, row.begin);
      }, { className: "reset", title: "Back to the value at the beginning" });
      reset.setAttribute("aria-label", `Reset ${key}`);
      parts.push(reset);
    }
    box.append(label, ...parts, why, help);
    this.rows.set(key, row);
    return box;
  }

  still(row) {
    row.field = make("output", { className: "fixed" });
    row.put = (value) => (row.field.textContent = shown(value));
    return [row.field];
  }

  number(row) {
    const { key, optional, choices, least, most, above, default: usual, whole } = row.parameter;
    const slider = make("input", { type: "range", min: 0, max: STEPS, step: 1 });
    // A box of text: the browser's box of numbers steps by 1, also by the wheel, and takes letters in Firefox.
    const number = make("input", { type: "text", className: "number", placeholder: optional ? "none" : "", autocomplete: "off", inputMode: least >= 0 && least !== null ? "decimal" : "text" });
    number.setAttribute("role", "spinbutton");
    slider.setAttribute("aria-label", `${key} slider`);
    const rail = byThumb(slider, () => this.newGesture(row));
    slider.addEventListener("keydown", ({ repeat }) => repeat || this.newGesture(row));      // a key held down is one gesture
    slider.addEventListener("input", () => {
      this.hold(key);
      let value = fromSlider(row.span, Number(slider.value));
      value = choices.length ? choices.reduce((near, each) => (Math.abs(each - value) < Math.abs(near - value) ? each : near)) : whole ? Math.round(value) : Number(value.toPrecision(4));
      number.value = tidy(value);
      this.change(key, value);
    });
    this.letsGo(slider, key);
    number.addEventListener("input", () => this.hold(key));      // typed halfway, nothing else is put there
    this.letsGo(number, key);
    number.addEventListener("beforeinput", (event) => /[^-+−\d.,e\s]/i.test(event.data ?? "") && event.preventDefault());
    number.addEventListener("change", () => {
      this.newGesture(row);
      const text = number.value.trim(), value = numbered(text);
      if (text === "" && optional) this.change(key, null);
      else if (Number.isFinite(value)) this.change(key, value);
      else {
        number.value = tidy(row.value);
        if (text) row.why.textContent = `found ${text}, allowed is a number such as 0.25`;
      }
    });
    number.addEventListener("keydown", (event) => {
      const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!up) return;
      event.preventDefault();
      const value = numbered(number.value);
      if (!Number.isFinite(value)) return;
      if (!event.repeat) this.newGesture(row);
      const by = whole ? 1 : step(value || row.begin || usual || 1), next = Number((value + up * by).toPrecision(4));
      const nearest = choices.length ? choices[Math.max(0, Math.min(choices.length - 1, choices.indexOf(value) + up))] : Math.max(least ?? -Infinity, Math.min(most ?? Infinity, next));
      number.value = tidy(nearest);
      this.change(key, nearest);
    });
    row.field = number;
    row.put = (value) => {
      row.span ??= span(row.parameter, row.begin ?? this.start(row) ?? usual ?? 1);
      if (value && value * (row.span.low + row.span.high) < 0) row.span = span(row.parameter, value);     // it went to the other side of 0
      if (document.activeElement !== number || numbered(number.value) !== value) number.value = tidy(value);
      number.ariaValueNow = tidy(value);
      const at = value ?? this.start(row) ?? row.span.low;      // without a value, where a move would begin
      slider.value = Math.max(0, Math.min(STEPS, toSlider(row.span, at)));
      slider.setAttribute("aria-valuetext", value === null ? "none" : `${tidy(value)} ${row.parameter.unit}`);
      row.box.dataset.none = value === null ? "yes" : "no";
      none.setAttribute("aria-pressed", String(value === null));
      none.title = value === null ? `Give it a value: ${tidy(this.start(row))} ${row.parameter.unit}`.trim() : "Leave it out";
    };
    const none = button(UNNAMED, () => {
      this.newGesture(row);
      this.change(key, none.getAttribute("aria-pressed") === "true" ? this.start(row) : null);
    }, { className: "none" });
    none.setAttribute("aria-label", `${key}: none`);
    if (optional) row.box.dataset.optional = "yes";
    return optional ? [rail, number, none] : [rail, number];
  }

  // The value with which a number begins that was left out: its last one, or that of the number which it follows.
  start({ last, begin, parameter: { follows, start } }) {
    return last ?? begin ?? this.rows.get(follows)?.value ?? start;
  }

  // Choices, a box to tick, or words in an order.
  other(row) {
    const { key, kind, choices, optional } = row.parameter;
    const set = (value) => {
      this.newGesture(row);
      this.change(key, value);
    };
    if (kind === "choice") {
      const [field, press] = side(optional ? [UNNAMED, ...choices] : choices, (value) => set(optional && value === UNNAMED ? null : value));
      field.setAttribute("aria-label", key);
      for (const choice of field.children) choice.id = `p-${key} ${choice.value}`;      // found again when built anew
      row.field = field;
      row.put = (value) => press(value ?? UNNAMED);
    } else if (kind === "order") {
      row.field = make("input", { type: "text", spellcheck: false });
      row.field.addEventListener("input", () => this.hold(key));
      this.letsGo(row.field, key);
      row.field.addEventListener("change", () => set(row.field.value.split(",").map((word) => word.trim()).filter(Boolean)));
      row.put = (value) => (row.field.value = shown(value));
    } else {
      row.field = make("input", { type: "checkbox" });
      row.field.addEventListener("change", () => set(row.field.checked));
      row.put = (value) => (row.field.checked = value === true);
    }
    return [row.field];
  }

  // While a control is moved or typed in, and until what it asked for has been answered, it shows that; else, what is known.
  busy(key, { asked, refused }) {
    return this.held === key || this.pending.has(key) || asked > Math.max(this.answered, refused);
  }

  settle(key) {
    const row = this.rows.get(key);
    if (row && !this.busy(key, row)) row.put(row.value);
  }

  hold(key) {
    const held = this.held;
    this.held = key;
    if (held !== null && held !== key) this.settle(held);
  }

  letsGo(input, key) {
    // A moment later, when what the same event asks for has been asked for.
    const release = () => setTimeout(() => {
      if (this.held === key) this.held = null;
      this.settle(key);
      const asks = this.rows.get(key)?.asks;
      if (asks) this.asks(asks);
    });
    for (const name of ["change", "blur", "pointercancel"]) input.addEventListener(name, release);
  }

  // Sends at most one change of a key in a while, the newest.
  change(key, value) {
    this.pending.set(key, value);
    if (!this.timer) this.flush();
  }

  // Each row has its own gesture, so that a second finger on another row does not begin one here.
  newGesture(row) {
    row.gesture = this.gesture += 1;
  }

  // Sends what waits, also before a request that has to come after it.
  flush() {
    clearTimeout(this.timer);
    const waiting = [...this.pending];
    this.pending.clear();
    this.timer = waiting.length ? setTimeout(() => ((this.timer = 0), this.flush()), EVERY_MS) : 0;
    for (const [key, value] of waiting) {
      if (!this.post({ do: "set", key, value, gesture: this.rows.get(key)?.gesture ?? this.gesture })) this.settle(key);
    }
  }

  post(request) {
    const number = this.asked + 1, row = this.rows.get(request.key);
    if (!this.send({ ...request, number })) return false;
    this.asked = number;
    if (row) Object.assign(row, { before: row.asked, asked: number, asks: null });
    if (row) this.slow ||= setTimeout(() => this.applying(), SLOW_MS);
    return true;
  }

  // Says beside each setting that it is not in force yet, and shows nothing as if it were.
  applying() {
    this.slow = 0;
    let any = false;
    for (const [, { box, asked, refused }] of this.rows) {
      const waits = asked > Math.max(this.answered, refused);
      any ||= waits;
      if (waits) box.dataset.applying = "yes";
      else delete box.dataset.applying;
    }
    this.waits(any);
  }

  // A change that is asked about first: once its slider is let go, and unless it moved on meanwhile.
  asks(message) {
    const { key, number } = message.request, row = this.rows.get(key);
    if (row && (number !== row.asked || this.pending.has(key))) return;
    if (row) row.asks = this.held === key ? message : null;
    if (!row?.asks) this.ask(message);
  }

  // Makes a change of which a person said that it is meant.
  means(request) {
    const sure = { ...request, sure: true };
    if (request.do === "set") this.post(sure);
    else this.send(sure);
  }

  // Lets go of a control that is held, as it is known.
  close() {
    const held = this.held;
    this.held = null;
    if (held !== null) this.settle(held);
  }

  // Every setting up to this number was made or refused; what was made needs no earlier refusal beside it.
  answer(number) {
    this.answered = number;
    for (const [key, row] of this.rows) {
      if (row.asked && row.asked <= number && row.refused < row.asked) row.why.textContent = "";
      this.settle(key);
    }
    if (!this.slow) this.applying();
  }

  // The connection is a new one: what was asked for in the old one is not answered any more.
  reconnected() {
    this.answered = 0;
    for (const row of this.rows.values()) Object.assign(row, { asked: 0, before: 0, refused: 0 });
    this.applying();
  }

  // Another run: what this page knew of the settings is of no use any more.
  reset() {
    this.place.querySelectorAll("details").forEach((details) => details.remove());
    this.began.clear();
    this.rows.clear();
    this.pending.clear();
    this.held = null;
    this.values = {};
  }

  show({ values: new_, begin = {}, part }) {
    const values = this.values = part ? Object.assign(this.values, new_) : new_, counts = new Map();
    for (const [key, row] of this.rows) {
      const value = values[key] ?? null;
      row.begin ??= key in begin ? begin[key] : value;      // one that was not there then begins as it came
      // Changed by somebody, and not by what this page asked for before it was refused.
      if (String(value) !== String(row.value) && row.before <= this.answered) row.why.textContent = "";
      row.value = value;
      row.last = value ?? row.last;
      const differs = String(value) !== String(row.begin);
      row.box.dataset.changed = differs ? "yes" : "no";
      counts.set(row.count, (counts.get(row.count) || 0) + (differs ? 1 : 0));
      if (!this.busy(key, row)) row.put(value);
    }
    for (const [count, many] of counts) count.textContent = many ? `${many} changed` : "";
  }

  // Says beside a control why its value was refused; returns whether there is such a control.
  refuse({ key, number, why }) {
    const row = this.rows.get(key);
    if (!row) return false;
    row.why.textContent = why;
    row.refused = Math.max(row.refused, number);
    if (!this.slow) this.applying();
    row.box.closest("details").open = true;
    this.settle(key);
    return true;
  }

  // Shows what fits to words, a person's or those of keys and sentences; returns how many settings do.
  find(text) {
    const words = text.toLowerCase().replaceAll("_", " ").split(/\s+/).filter((word) => word && !PADDING.has(word)), all = this.place.querySelectorAll("details");
    if (words.length && !this.opened) this.opened = new Set([...all].filter(({ open }) => open));
    if (!words.length && this.opened) for (const details of all) details.open = this.opened.has(details);
    if (!words.length) this.opened = null;
    let many = 0;
    for (const details of all) {
      let found = 0;
      for (const box of details.querySelectorAll(".parameter")) {
        const key = box.dataset.key.replaceAll("_", " "), said = this.rows.get(box.dataset.key)?.parameter.sentence?.toLowerCase().split(/\W+/) ?? [];
        const fits = words.every((word) => key.includes(word) || (word.length > 3 && said.some((each) => each.startsWith(word))) || MEANS.some(([spoken, key]) => spoken.test(word) && key.test(box.dataset.key)));
        many += fits;
        box.hidden = !fits;
        found += fits;
      }
      details.hidden = !found;
      if (words.length && found) details.open = true;
    }
    return many;
  }
}

const STEP = 1.1;              // of a knob, at a touch
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
const short = (value) => String(Number(Number(value).toPrecision(3))).replace("-", "−");

export class Knobs {
  constructor(place, tuning, send) {
    Object.assign(this, { place, tuning, send, axis: "surge", muted: [], bounds: {}, gesture: 0 });
    const [tabs, press] = side(AXES, (axis) => {
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
        const now = short(values[key]), was = typeof begin === "number" ? short(begin) : now;
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
    const times = Number(by.toPrecision(2)), text = `Scale ${this.axis} ×${times}${cut ? ": it was cut at the limit" : `: asks about ${short(asked * times * factor)} ${unit}`}`;
    this.own.textContent = says ? `Your car reached ${short(car * factor)} ${unit}; this rig was asked ${short(asked * factor)}${most < Infinity ? ` of at most ${short(most * factor)}` : ""}.` : "";
    this.scale.hidden = !says || !keys.length || !(Math.abs(times - 1) >= 0.1);
    if (this.scale.textContent !== text) this.scale.textContent = text;
    this.scaled = [keys, times, `scaled, as the car reached ${short(car * factor)} ${unit} of ${this.axis}`];
  }
}
