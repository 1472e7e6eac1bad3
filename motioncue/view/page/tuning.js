// Sliders for every number of the profile, sent to the engine as they move.

const STEPS = 1000, EVERY_MS = 60;

const tidy = (value) => (value === null || value === undefined ? "" : String(Number(Number(value).toPrecision(4))));

// A key as words, without the unit that stands beside it.
function plain(name, unit) {
  const suffix = `_${unit.toLowerCase().replace("/", "_").replace("^", "")}`;
  return (unit && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name).replaceAll("_", " ");
}

// The part of a number's range that its slider covers, around the value that it began with; the box beside takes all.
function span({ least, most, above, choices }, begin) {
  if (choices.length) return { low: choices[0], high: choices[choices.length - 1], log: false };
  const around = Math.abs(begin) || 1;
  const positive = least !== null && least >= 0;
  if (positive && above) return { low: Math.max(least, around / 10), high: Math.min(most ?? Infinity, around * 10), log: true };
  const low = positive ? least : Math.max(least ?? -Infinity, begin - 2 * around);
  return { low, high: Math.min(most ?? Infinity, begin + 2 * around), log: false };
}

const toSlider = ({ low, high, log }, value) => STEPS * (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
const fromSlider = ({ low, high, log }, at) => (log ? low * (high / low) ** (at / STEPS) : low + ((high - low) * at) / STEPS);

export class Tuning {
  constructor(place, send) {
    Object.assign(this, { place, send, rows: new Map(), gesture: Math.floor(performance.now()), held: null, pending: new Map(), timer: 0 });
  }

  build(parameters) {
    const groups = new Map();
    for (const parameter of parameters) {
      const path = parameter.key.split(".");
      const group = path.slice(0, -1).join(" · ");
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(parameter);
    }
    this.place.replaceChildren();
    this.rows.clear();
    for (const [name, members] of groups) {
      const details = document.createElement("details");
      details.open = /^cueing · (surge|tilt)$/.test(name) || name === "cueing";
      const summary = document.createElement("summary");
      summary.textContent = name.replaceAll("_", " ");
      const count = document.createElement("span");
      count.className = "count";
      summary.append(count);
      details.append(summary);
      for (const parameter of members) details.append(this.row(parameter, count));
      this.place.append(details);
    }
  }

  row(parameter, count) {
    const { key, unit, optional, choices, sentence, least, most, above, default: usual } = parameter;
    const name = key.split(".").pop();
    const box = document.createElement("div");
    box.className = "parameter";
    box.dataset.key = key;
    box.innerHTML = `<label><b></b><span></span></label><input type="range" min="0" max="${STEPS}" step="1"><input type="number" step="any"><button title="Back to the value at the beginning" type="button">↺</button><p class="why" role="alert"></p><p class="help"></p>`;
    const [label, slider, number, reset, why, help] = box.children;
    label.querySelector("b").textContent = plain(name, unit);
    label.querySelector("span").textContent = unit.replace("^2", "²").replace("^3", "³").replace("^4", "⁴");
    number.id = `p-${key}`;
    label.htmlFor = number.id;
    slider.setAttribute("aria-label", `${key} slider`);
    reset.setAttribute("aria-label", `Reset ${key}`);
    const range = choices.length ? choices.join(", ") : `${least === null ? "any" : `${above ? "above" : "from"} ${tidy(least)}`}${most === null ? "" : ` to ${tidy(most)}`}`;
    box.title = key;
    help.textContent = `${sentence} Allowed: ${range}.${usual === null ? "" : ` Default ${tidy(usual)}.`}`;
    if (optional) number.placeholder = "none";
    if (least !== null && !above) number.min = least;
    if (most !== null) number.max = most;
    const row = { parameter, box, slider, number, why, reset, count, begin: undefined, span: null, value: null };
    slider.addEventListener("pointerdown", () => (this.gesture += 1));
    slider.addEventListener("keydown", () => (this.gesture += 1));
    slider.addEventListener("input", () => {
      this.held = key;
      let value = fromSlider(row.span, Number(slider.value));
      value = choices.length ? choices.reduce((near, each) => (Math.abs(each - value) < Math.abs(near - value) ? each : near)) : parameter.whole ? Math.round(value) : Number(value.toPrecision(4));
      number.value = tidy(value);
      this.change(key, value);
    });
    slider.addEventListener("change", () => (this.held = null));
    number.addEventListener("change", () => {
      this.gesture += 1;
      if (number.value === "" && !optional) number.value = tidy(row.value);
      else this.change(key, number.value === "" ? null : Number(number.value));
    });
    reset.addEventListener("click", () => {
      this.gesture += 1;
      this.change(key, row.begin);
    });
    this.rows.set(key, row);
    return box;
  }

  // Sends at most one change of a key in a while, the newest.
  change(key, value) {
    this.pending.set(key, value);
    if (this.timer) return;
    const flush = () => {
      this.timer = 0;
      for (const [each, newest] of this.pending) this.send({ do: "set", key: each, value: newest, gesture: this.gesture });
      if (this.pending.size) this.timer = setTimeout(flush, EVERY_MS);
      this.pending.clear();
    };
    flush();
  }

  show({ values, changed }) {
    const counts = new Map();
    for (const [key, row] of this.rows) {
      const value = values[key] ?? null;
      if (row.begin === undefined) {
        row.begin = key in changed ? changed[key][0] : value;
        row.span = span(row.parameter, row.begin ?? row.parameter.default ?? 1);
      }
      row.value = value;
      row.why.textContent = "";
      row.box.dataset.changed = key in changed ? "yes" : "no";
      counts.set(row.count, (counts.get(row.count) || 0) + (key in changed ? 1 : 0));
      if (this.held === key || this.pending.has(key)) continue;
      if (document.activeElement !== row.number || Number(row.number.value) !== value) row.number.value = tidy(value);
      row.slider.disabled = value === null;
      row.slider.value = value === null ? 0 : Math.max(0, Math.min(STEPS, toSlider(row.span, value)));
      row.slider.setAttribute("aria-valuetext", `${tidy(value)} ${row.parameter.unit}`);
    }
    for (const [count, many] of counts) count.textContent = many ? `${many} changed` : "";
  }

  // Says beside a slider why its value was refused; returns whether there is such a slider.
  refuse(key, why) {
    const row = this.rows.get(key);
    if (!row) return false;
    row.why.textContent = why;
    row.box.closest("details").open = true;
    this.held = null;
    if (row.value !== null) row.slider.value = Math.max(0, Math.min(STEPS, toSlider(row.span, row.value)));
    return true;
  }

  find(text) {
    const words = text.toLowerCase().replaceAll("_", " ").split(/\s+/).filter(Boolean);
    for (const details of this.place.children) {
      let found = 0;
      for (const box of details.querySelectorAll(".parameter")) {
        const fits = words.every((word) => box.dataset.key.replaceAll("_", " ").includes(word));
        box.hidden = !fits;
        found += fits;
      }
      details.hidden = !found;
      if (words.length && found) details.open = true;
    }
  }
}
