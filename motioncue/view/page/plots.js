// Plots of all channels over one time axis, drawn from a memory of fixed size.

const SECONDS = 130;      // kept
const RATE = 64;          // most frames a second
const GAP = 0.3;          // seconds without a frame at which a line is interrupted
const LEFT = 66, RIGHT = 48, TOP = 22, BOTTOM = 20;

// The newest rows, each of `width` numbers; the oldest are overwritten.
export class History {
  constructor(width) {
    this.width = width;
    this.capacity = SECONDS * RATE;
    this.rows = new Float64Array(width * this.capacity);
    this.count = 0;         // rows added so far
  }
  add(row) {
    if (this.count && row[0] < this.time(this.count - 1)) this.count = 0;   // another run
    this.rows.set(row, (this.count % this.capacity) * this.width);
    this.count += 1;
  }
  get first() { return Math.max(0, this.count - this.capacity); }
  at(index, column) { return this.rows[(index % this.capacity) * this.width + column]; }
  time(index) { return this.at(index, 0); }
  from(time) {              // first row not before a time
    let low = this.first, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time(middle) < time) low = middle + 1; else high = middle;
    }
    return low;
  }
  get newest() { return this.count ? this.time(this.count - 1) : 0; }
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

let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  colors = Object.fromEntries(["ink", "quiet", "line", "soft", "car", "felt", "cue", "limit", "good", "warn", "bad", "card", "back"]
    .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
readColors();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColors);
export const color = (name) => colors[name];

function scaleFor(most, least) {
  let scale = least;
  while (scale < most) scale *= String(scale).replace(/[0.]/g, "")[0] === "2" ? 2.5 : 2;
  return scale;
}

function shown(value) {
  const text = Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toFixed(2);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

export class Plots {
  constructor(canvas, channels, columns) {
    this.canvas = canvas;
    this.rows = channels.map((channel) => ({
      ...channel,
      scale: channel.scale,
      lines: ["car", "felt", "cue"].filter((role) => `${role}.${channel.name}` in columns)
        .map((role) => ({ role, column: columns[`${role}.${channel.name}`] })),
    }));
    this.bounds = {};
    this.flags = [];          // {time, text, bad}
  }

  flag(time, text, bad) {
    if (this.flags.some((each) => each.text === text && Math.abs(each.time - time) < 1e-6)) return;
    this.flags.push({ time, text, bad });
    if (this.flags.length > 200) this.flags.shift();
  }

  draw(history, seconds, end) {
    const [c, width, height] = fitted(this.canvas);
    const start = end - seconds, plot = width - LEFT - RIGHT;
    const x = (time) => LEFT + ((time - start) / seconds) * plot;
    const first = Math.max(history.first, history.from(start) - 1), last = Math.min(history.count, history.from(end) + 1);
    c.font = "11px system-ui, sans-serif";
    this.axis(c, x, start, end, height, seconds);
    const high = (height - TOP - BOTTOM) / this.rows.length;
    this.rows.forEach((row, number) => {
      const top = TOP + number * high + 4, tall = high - 8, middle = top + tall / 2;
      let most = 0;
      for (const { column } of row.lines)
        for (let index = first; index < last; index++) most = Math.max(most, Math.abs(history.at(index, column)) || 0);
      row.scale = scaleFor(most * row.factor, row.least ??= row.scale);
      const y = (value) => middle - (Math.max(-1.2, Math.min(1.2, value / row.scale)) * tall) / 2;
      c.fillStyle = color("soft");
      c.fillRect(LEFT, top, plot, tall);
      c.strokeStyle = color("quiet");
      c.globalAlpha = 0.6;
      line(c, LEFT, middle, LEFT + plot, middle);
      c.globalAlpha = 1;
      c.fillStyle = color("ink");
      c.textAlign = "left";
      c.fillText(row.label, 0, middle - 3);
      c.fillStyle = color("quiet");
      c.fillText(row.unit, 0, middle + 11);
      c.textAlign = "right";
      c.fillText(`${row.scale}`, LEFT - 6, top + 9);
      c.fillText("0", LEFT - 6, middle + 4);
      c.fillText(`−${row.scale}`, LEFT - 6, top + tall - 1);
      this.limit(c, row, y, plot, top);
      c.save();
      c.beginPath();
      c.rect(LEFT, top, plot, tall);
      c.clip();
      for (const { role, column } of row.lines) this.trace(c, history, first, last, column, row.factor, x, y, color(role));
      c.restore();
      c.textAlign = "right";
      row.lines.forEach(({ role, column }, place) => {
        const value = last > first ? history.at(last - 1, column) * row.factor : NaN;
        c.fillStyle = color(role);
        if (Number.isFinite(value)) c.fillText(shown(value), width - 2, top + 11 + 13 * place);
      });
    });
  }

  limit(c, row, y, plot, top) {
    const bound = this.bounds[row.name];
    if (!bound) return;
    const value = bound * row.factor;
    c.strokeStyle = color("limit");
    c.fillStyle = color("limit");
    if (value <= row.scale) {
      c.setLineDash([5, 4]);
      for (const side of [value, -value]) line(c, LEFT, y(side), LEFT + plot, y(side));
      c.setLineDash([]);
    } else {
      c.textAlign = "left";
      c.globalAlpha = 0.7;
      c.fillText(`limit ±${Number(value.toPrecision(3))}`, LEFT + 5, top + 11);
      c.globalAlpha = 1;
    }
  }

  // One line; where several rows share a pixel, from their least to their greatest value.
  trace(c, history, first, last, column, factor, x, y, stroke) {
    c.strokeStyle = stroke;
    c.lineWidth = 1.4;
    c.beginPath();
    let pixel = NaN, low = 0, high = 0, drawing = false, before = NaN;
    const flush = () => {
      if (Number.isNaN(pixel)) return;
      if (drawing) c.lineTo(pixel, y(low)); else c.moveTo(pixel, y(low));
      if (high !== low) c.lineTo(pixel, y(high));
      drawing = true;
    };
    for (let index = first; index < last; index++) {
      const value = history.at(index, column) * factor, time = history.time(index);
      if (!Number.isFinite(value) || time - before > GAP) {
        flush();
        pixel = NaN;
        drawing = false;
      }
      before = time;
      if (!Number.isFinite(value)) continue;
      const at = Math.round(x(time) * 2) / 2;
      if (at !== pixel) {
        flush();
        pixel = at;
        low = high = value;
      } else {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    flush();
    c.stroke();
    c.lineWidth = 1;
  }

  axis(c, x, start, end, height, seconds) {
    const step = [1, 2, 5, 10, 20].find((each) => x(each) - x(0) >= 48) || 20;
    c.textAlign = "center";
    for (let time = Math.ceil(start / step) * step; time <= end; time += step) {
      if (time < 0) continue;
      c.strokeStyle = color("line");
      line(c, x(time), TOP, x(time), height - BOTTOM);
      c.fillStyle = color("quiet");
      c.fillText(`${time.toFixed(0)} s`, x(time), height - 6);
    }
    let free = -Infinity;
    for (const { time, text, bad } of this.flags) {
      if (time < start || time > end) continue;
      const at = x(time);
      c.strokeStyle = c.fillStyle = color(bad ? "bad" : "warn");
      c.globalAlpha = 0.75;
      line(c, at, 12, at, height - BOTTOM);
      c.globalAlpha = 1;
      c.beginPath();
      c.moveTo(at, 12);
      c.lineTo(at + 7, 15.5);
      c.lineTo(at, 19);
      c.fill();
      const wide = c.measureText(text).width, from = Math.min(at, x(end) + RIGHT - wide);   // none is cut at the right
      c.textAlign = "left";
      if (from > free) {
        c.fillText(text, from, 9);
        free = from + 12 + wide;
      }
    }
  }
}

function line(c, x0, y0, x1, y1) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}
