// Plots of what was driven, one row a quantity, over one time axis.  uPlot draws the lines.

import { make } from "./elements.js";

const GAP = 0.3;            // seconds without a frame at which a line is interrupted
const LEFT = 46;            // for the numbers of an axis [px]
const FLAGS = 200;
const MANY = 12;            // marks in a picture from which on they stand back behind the lines
const NEAR = 0.6;           // share of a bound from which on it is shown
const CALM_MS = 4000;       // that a scale was too wide until it becomes narrower
const MM = 1000;

let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  colors = Object.fromEntries(["ink", "quiet", "line", "soft", "car", "felt", "cue", "limit", "good", "warn", "bad", "card", "back"]
    .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
readColors();
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", readColors);
export const color = (name) => colors[name];

// Lines that a person tells apart without their colors.
const STROKES = { car: { width: 1.2, dash: [] }, felt: { width: 1.6, dash: [7, 3] }, asked: { width: 2.2, dash: [] } };
const DASHES = [[], [8, 3], [3, 3], [10, 3, 2, 3], [1, 3], [14, 4]];
const WHEEL = ["cue", "car", "felt", "good", "bad", "ink"];

function scaleFor(most, least) {
  let scale = least;
  while (scale < most) scale *= String(scale).replace(/[0.]/g, "")[0] === "2" ? 2.5 : 2;
  return scale;
}

export function shown(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value), text = value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

// What can be plotted: rows by a name, each with lines that read a column, or are computed from it.
function rowsOf(channels, columns, scene) {
  const has = (name) => name in columns;
  const read = (name, factor = 1) => ({ column: columns[name], factor });
  const turns = scene.carriers.some(({ azimuth }) => azimuth !== undefined), unit = turns ? "°" : "mm", factor = turns ? 180 / Math.PI : MM;
  const actuators = scene.names.map((name, place) => ({ name: name.replaceAll("_", " "), ...read(`at.${name}`, factor), from: scene.neutral[place], color: WHEEL[place % WHEEL.length], dash: DASHES[place % DASHES.length], width: 1.4 }));
  const rows = channels.map(({ name, label, unit, factor, scale }) => ({
    name, label, unit, least: scale, group: "channels",
    lines: [["car", "car"], ["felt", "felt"], ["asked", "cue"]].filter(([, from]) => has(`${from}.${name}`))
      .map(([role, from]) => ({ role, name: role, ...read(`${from}.${name}`, factor), color: from, ...STROKES[role] })),
  }));
  for (const { name, label, unit, factor, scale } of channels) if (has(`felt.${name}`))
    rows.push({ name: `error ${name}`, label: `${label} error`, unit, least: scale, group: "error",
      lines: [{ name: "asked − felt in the car", ...read(`cue.${name}`, factor), less: columns[`felt.${name}`], color: "bad", dash: [], width: 1.6 }] });
  for (const [group, names, factor, unit, least] of [
    ["displacement", ["surge_displacement", "sway_displacement", "heave_displacement"], MM, "mm", 50],
    ["attitude", ["roll", "pitch", "yaw"], 180 / Math.PI, "°", 5]])
    rows.push({ name: group, label: group.replace("cement", "ce\u00adment"), unit, least, group: "platform", lines: names.filter((name) => has(`pose.${name}`))
      .map((name, place) => ({ name: name.replace("_displacement", ""), ...read(`pose.${name}`, factor), color: WHEEL[place], dash: DASHES[place], width: 1.6 })) });
  if (actuators.length) {
    const least = turns ? 20 : 50;
    rows.push({ name: "position", label: "from neutral", unit, least, group: "actuators", lines: actuators });
    rows.push({ name: "speed", label: "speed", unit: `${unit}/s`, least: 2 * least, group: "actuators", lines: actuators.map((line) => ({ ...line, order: 1 })) });
    rows.push({ name: "acceleration", label: "acceler\u00adation", unit: `${unit}/s²`, least: 10 * least, group: "actuators", lines: actuators.map((line) => ({ ...line, order: 2 })) });
  }
  return rows.filter(({ lines }) => lines.length);
}

// What the lines of a row are called, in the order of the numbers beside it; of "leg 1, leg 2 ..." only the numbers.
function named(lines) {
  const names = make("small"), short = lines.length > 3;
  for (const { name, color } of lines) {
    const each = make("i", { textContent: short ? name.split(" ").at(-1) : name, title: name });
    each.dataset.color = color;
    names.append(each, " ");
  }
  return names;
}

export const GROUPS = { channels: "car and platform", error: "error", platform: "pose", actuators: "actuators" };

// `place` holds the rows; `moved(time)` is told where somebody points, `marked(begin, end)` what was drawn across.
export class Plots {
  constructor(place, { channels, scene }, columns, { pointed, marked }) {
    Object.assign(this, { place, columns, pointed, marked, flags: [], bounds: {}, plots: [], hidden: new Set(), time: NaN, mark: null, ghost: null });
    this.all = rowsOf(channels, columns, scene);
    this.groups = new Set(["channels"]);
    this.sized = new ResizeObserver(() => this.fit());
    this.sized.observe(place);
    this.build();
  }

  leave() {
    this.sized.disconnect();
    for (const { plot } of this.plots) plot.destroy();
  }

  get kinds() { return Object.keys(GROUPS).filter((group) => this.all.some((row) => row.group === group)); }

  // Shows these groups of rows.
  show(groups) {
    this.groups = new Set(groups);
    this.build();
  }

  // Shows or hides the lines of a role, such as the car's.
  toggle(role) {
    if (!this.hidden.delete(role)) this.hidden.add(role);
    this.build();
  }

  flag(time, text, bad) {
    if (this.flags.some((each) => each.text === text && Math.abs(each.time - time) < 1e-6)) return;
    this.flags.push({ time, text, bad });
    this.flags.sort((one, other) => one.time - other.time);
    if (this.flags.length > FLAGS) this.flags.shift();
  }

  build() {
    for (const { plot } of this.plots) plot.destroy();
    this.place.replaceChildren();
    const rows = this.all.filter(({ group }) => this.groups.has(group));
    this.plots = rows.map((row, place) => {
      const lines = row.lines.filter(({ role }) => !this.hidden.has(role));
      const head = make("div", { className: "what" }, make("b", { textContent: row.label }), make("span", { textContent: row.unit }));
      const area = make("div"), values = make("div", { className: "values" }), box = make("div", { className: "plot" }, head, area, values);
      if (!row.lines[0].role && lines.length > 1) head.append(named(lines));
      for (const line of lines) {
        const value = make("span", { title: line.name, textContent: "–" });
        value.dataset.color = line.color;
        values.append(value);
      }
      this.place.append(box);
      return { row, lines, box, area, values, first: !place, last: place === rows.length - 1, scale: row.least, wide: 0, plot: null, data: null };
    });
    for (const each of this.plots) each.plot = this.plotOf(each);
    this.fit();
  }

  plotOf(each) {
    const { row, lines, area, first, last } = each;
    const font = "11px system-ui, sans-serif", ink = () => color("ink");
    const range = (_, key) => (key === "x" ? this.span : [-each.scale, each.scale]);
    return new uPlot({
      width: 300, height: 100, padding: [first ? 18 : 5, 4, last ? 0 : 5, 0], legend: { show: false }, pxAlign: 0,
      cursor: { sync: { key: "time" }, y: false, drag: { x: true, y: false, setScale: false }, points: { show: false } },
      scales: { x: { time: false, range: () => this.span ?? [0, 1] }, y: { range: () => range(null, "y") } },
      axes: [
        { show: true, size: last ? 22 : 0, font, stroke: ink, grid: { stroke: () => color("line"), width: 1 }, ticks: { show: false }, gap: 2,
          values: (_, times) => times.map((time) => (last && this.span && time >= 0 && time < this.span[1] - 0.045 * (this.span[1] - this.span[0]) ? `${Number(time.toFixed(2))} s` : "")) },
        { size: LEFT, font, stroke: ink, grid: { stroke: () => color("line"), width: 1 }, ticks: { show: false }, gap: 4,
          splits: () => [-each.scale, -each.scale / 2, 0, each.scale / 2, each.scale], values: (_, all) => all.map((value, at) => (at % 4 === 0 ? "" : `${Number(value.toPrecision(3))}`.replace("-", "−"))) },
      ],
      series: [{}, ...lines.map(({ name, color: stroke, width, dash }) => ({ label: name, stroke: () => color(stroke), width, dash, points: { show: false } })),
        ...lines.map(({ name, color: stroke }) => ({ label: `${name}, other settings`, stroke: () => color(stroke), width: 1.2, dash: [2, 3], points: { show: false } }))],
      hooks: {
        drawClear: [(u) => this.under(u, each)], draw: [(u) => this.over(u, each)],
        setCursor: [(u) => u.cursor.left >= 0 && this.pointed(u.posToVal(u.cursor.left, "x"))],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          this.marked(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
      },
    }, [[], ...lines.map(() => []), ...lines.map(() => [])], area);
  }

  fit() {
    const room = parseFloat(getComputedStyle(this.place).minHeight);
    const tall = Math.max(76, Math.floor((room - 40) / Math.max(1, this.plots.length)));
    for (const { plot, area, first, last } of this.plots) {
      const width = area.clientWidth, height = tall + (first ? 14 : 0) + (last ? 22 : 0);
      if (width > 0 && (plot.width !== width || plot.height !== height)) plot.setSize({ width, height });
    }
  }

  // The mark, zero, and bounds that are near, below the lines.
  under(u, { row, scale, peak }) {
    const { left, top, width, height } = u.bbox, c = u.ctx;
    c.save();
    c.fillStyle = color("soft");
    c.fillRect(left, top, width, height);
    if (this.mark) {
      const [from, to] = this.mark.map((time) => Math.max(left, Math.min(left + width, u.valToPos(time, "x", true))));
      c.fillStyle = color("cue");
      c.globalAlpha = 0.16;
      c.fillRect(from, top, to - from, height);
      c.globalAlpha = 1;
    }
    const level = (value, stroke, dash) => {
      const y = u.valToPos(value, "y", true);
      c.strokeStyle = stroke;
      c.setLineDash(dash);
      line(c, left, y, left + width, y);
    };
    level(0, color("quiet"), []);
    const bound = row.bound;
    if (bound && peak > NEAR * bound && bound <= scale) {
      for (const side of [bound, -bound]) level(side, color("limit"), [8, 5]);
      c.fillStyle = color("ink");
      c.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      c.textAlign = "left";
      c.fillText(`limit ${Number(bound.toPrecision(3))}`, left + 4, u.valToPos(bound, "y", true) + 12 * devicePixelRatio);
    }
    c.restore();
  }

  // Events and the moment that is shown, above the lines.
  over(u, { first }) {
    const { left, top, width, height } = u.bbox, c = u.ctx, pixel = devicePixelRatio;
    c.save();
    c.lineWidth = pixel;
    c.font = `${11 * pixel}px system-ui, sans-serif`;
    c.textAlign = "left";
    let free = -Infinity, more = 0, label = null;
    const write = () => {
      if (!label) return;
      const text = more ? `${label.text} +${more}` : label.text;
      c.fillStyle = color("ink");
      c.fillText(text, label.x, top - 8 * pixel);
    };
    const seen = this.flags.filter(({ time }) => this.span && time >= this.span[0] && time <= this.span[1]), last = { true: -Infinity, false: -Infinity };
    c.globalAlpha = seen.length > MANY && !first ? 0.4 : 1;
    for (const { time, text, bad } of seen) {
      const x = u.valToPos(time, "x", true), near = x - last[Boolean(bad)] < 4 * pixel;
      if (near) {                        // what lies on another is only counted
        more += 1;
        continue;
      }
      last[Boolean(bad)] = x;
      c.strokeStyle = c.fillStyle = color(bad ? "bad" : "warn");
      c.setLineDash(bad ? [] : [4 * pixel, 4 * pixel]);
      line(c, x, top - (first ? 5 * pixel : 0), x, top + height);
      if (!first) continue;
      c.beginPath();
      for (const [right, down] of bad ? [[0, -6], [5, 0], [-5, 0]] : [[-4, -5], [4, -5], [0, 0]]) c.lineTo(x + right * pixel, top + down * pixel);
      c.fill();
      const wide = c.measureText(text).width + 34 * pixel, from = Math.min(x, left + width - wide);      // none is cut at the right
      if (from > free) {
        write();
        [label, more, free] = [{ x: from, text }, 0, from + wide];
      } else more += 1;
    }
    write();
    c.globalAlpha = 1;
    c.setLineDash([]);
    if (Number.isFinite(this.time) && this.span && this.time >= this.span[0] && this.time < this.span[1]) {
      c.strokeStyle = color("ink");
      c.lineWidth = 1.5 * pixel;
      const x = u.valToPos(this.time, "x", true);
      line(c, x, top, x, top + height);
    }
    c.restore();
  }

  // Draws from `start` to `end`; `time` is the moment that rig and car show, NaN if that is the newest.
  draw(history, start, end, time, now) {
    this.span = [start, end];
    this.time = time;
    const first = Math.max(history.first, history.from(start) - 1), last = Math.min(history.count, history.from(end) + 1);
    const times = [], rows = [];
    for (let index = first; index < last; index++) {
      const at = history.time(index);
      if (times.length && at - times[times.length - 1] > GAP) {
        times.push((at + times[times.length - 1]) / 2);
        rows.push(-1);
      }
      times.push(at);
      rows.push(index);
    }
    const none = times.map(() => null);
    for (const each of this.plots) {
      const { row, lines, plot } = each, data = [times];
      let peak = 0;
      for (const line of lines) {
        const values = valuesOf(history, line, rows, times);
        for (const value of values) if (value !== null && Math.abs(value) > peak) peak = Math.abs(value);
        data.push(values);
      }
      for (const line of lines) data.push(this.ghost ? this.ghostOf(line, times, rows) : none);
      row.bound = this.boundOf(row);
      each.peak = peak;
      const want = scaleFor(row.bound && peak > NEAR * row.bound ? Math.max(peak, 1.05 * row.bound) : 1.02 * peak, row.least);
      if (want >= each.scale) each.wide = now;
      if (want > each.scale || now - each.wide > CALM_MS) each.scale = want;
      plot.batch(() => {
        plot.setData(data, false);
        plot.setScale("x", { min: start, max: end });
        plot.setScale("y", { min: -each.scale, max: each.scale });
      });
    }
  }

  // The same line as other settings would have had it, where that is known.
  ghostOf(line, times, rows) {
    const history = this.ghost;
    const at = times.map((time) => (time < history.oldest || time > history.newest ? -1 : Math.min(history.count - 1, history.from(time))));
    return valuesOf(history, line, at.map((index, place) => (rows[place] < 0 ? -1 : index)), times);
  }

  boundOf({ name, lines }) {
    const bound = this.bounds[name];
    return bound ? bound * lines[0].factor : 0;
  }

  // The numbers beside the rows: of the moment that is shown.
  tell(row) {
    for (const { lines, values } of this.plots) lines.forEach((line, place) => {
      const text = line.order ? "" : shown(row ? (row[line.column] - (line.from ?? 0) - (line.less === undefined ? 0 : row[line.less])) * line.factor : NaN);
      if (values.children[place].textContent !== text) values.children[place].textContent = text;
    });
  }
}

// The values of a line in rows of the history; null where a line is interrupted.
function valuesOf(history, { column, less, from = 0, factor, order = 0 }, rows, times) {
  let values = rows.map((index) => {
    const value = index < 0 ? NaN : history.at(index, column) - from - (less === undefined ? 0 : history.at(index, less));
    return Number.isFinite(value) ? value * factor : null;
  });
  for (let turn = 0; turn < order; turn++) values = slope(values, times);
  return values;
}

// The change per second, over the frames around each: between ticks that are left out nothing is known.
function slope(values, times) {
  const WIDE = 2;
  return values.map((value, at) => {
    const low = Math.max(0, at - WIDE), high = Math.min(values.length - 1, at + WIDE);
    if (value === null || values[low] === null || values[high] === null || high === low) return null;
    const passed = times[high] - times[low];
    return passed > 0 && passed < 1 ? (values[high] - values[low]) / passed : null;
  });
}

function line(c, x0, y0, x1, y1) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}

// Fits a canvas to its place on the screen; returns its context, scaled to CSS pixels, and its size.
export function fitted(canvas) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
}
