// What was driven, from its beginning to now, in a memory of fixed size: a moment of it can be looked at, played again,
// and a stretch marked.

import { button, byThumb, choices, make } from "./elements.js";
import { color, fitted } from "./plots.js";

const LEAST = 0.5;          // shortest stretch that is marked [s]
const STEPS = 2000;
const SECONDS = 310;      // kept
const RATE = 64;          // most frames a second

// The newest rows, each of `width` numbers, the first of which is their time; the oldest are overwritten.
export class History {
  constructor(width, capacity = SECONDS * RATE) {
    Object.assign(this, { width, capacity });
    this.rows = new Float64Array(width * this.capacity);
    this.count = 0;         // rows added so far
  }

  add(row) {
    if (this.count && row[0] < this.time(this.count - 1)) this.count = 0;   // another run
    this.rows.set(row, (this.count % this.capacity) * this.width);
    this.count += 1;
  }

  // Puts what was before the page came, or while it was away, among what it has seen.
  merge(numbers) {
    const rows = [];
    for (let at = 0; at + this.width <= numbers.length; at += this.width) rows.push(numbers.slice(at, at + this.width));
    let before = -Infinity, place = 0;
    const seen = Array.from({ length: this.count - this.first }, (_, index) => this.row(this.first + index));
    const both = [];
    const near = (row, other) => other && Math.abs(other[0] - row[0]) < 0.02;
    for (const row of rows) {
      while (place < seen.length && seen[place][0] < row[0]) both.push(seen[place++]);
      if (!near(row, seen[place]) && !near(row, both[both.length - 1])) both.push(row);
    }
    both.push(...seen.slice(place));
    this.count = 0;
    for (const row of both) {
      if (row[0] > before) this.add(row);
      before = row[0];
    }
  }

  get first() { return Math.max(0, this.count - this.capacity); }
  at(index, column) { return this.rows[(index % this.capacity) * this.width + column]; }
  row(index) {
    const at = (index % this.capacity) * this.width;
    return this.rows.slice(at, at + this.width);
  }
  time(index) { return this.at(index, 0); }

  // The first row not before a time.
  from(time) {
    let low = this.first, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time(middle) < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The row of a time: between two frames, on the line through them; null if there is none.
  when(time) {
    const next = this.from(time);
    if (!this.count) return null;
    if (next >= this.count) return this.row(this.count - 1);
    const after = this.row(next);
    if (next === this.first || after[0] - time < 1e-9) return after;
    const row = this.row(next - 1), part = (time - row[0]) / (after[0] - row[0]);
    for (let column = 0; column < row.length; column++) row[column] += part * (after[column] - row[column]);
    for (const column of [1, 2, 3]) row[column] = after[column];       // states and flags are not in between
    return row;
  }

  get oldest() { return this.count ? this.time(this.first) : 0; }
  get newest() { return this.count ? this.time(this.count - 1) : 0; }
}

export class Timeline {
  // `strip` shows all; `tools` has its buttons; `scored(begin, end)` is asked for the worth of a stretch.
  constructor(strip, tools, { scored }) {
    Object.assign(this, { live: true, at: 0, playing: false, speed: 1, loops: false, mark: null, zoomed: false, records: false, before: 0, scored });
    this.canvas = make("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.slider = make("input", { id: "moment", type: "range", min: 0, max: STEPS, step: 1, value: STEPS });
    this.slider.setAttribute("aria-label", "The moment that is shown");
    strip.append(this.canvas, byThumb(this.slider));
    this.slider.addEventListener("input", () => this.go(this.oldest + (this.newest - this.oldest) * (this.slider.valueAsNumber / STEPS)));
    this.slider.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -0.1, ArrowRight: 0.1, PageUp: 1, PageDown: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      this.go(this.at + by);
    });
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && !event.button) this.go(this.oldest + ((this.newest - this.oldest) * (event.offsetX - 8)) / (this.canvas.clientWidth - 16));
    });
    const tool = (id, text, title, act) => {
      const each = button(text, act, { id, className: "small", title });
      tools.append(each);
      return each;
    };
    this.buttons = {
      live: tool("live", "Live", "Shows what is now", () => this.follow()),
      play: tool("play", "Play", "Plays from the moment that is shown, or stops there", () => this.play()),
    };
    const [speeds, press] = choices(["¼×", "½×", "1×", "2×"], (text) => (this.speed = { "¼×": 0.25, "½×": 0.5, "1×": 1, "2×": 2 }[text]));
    speeds.setAttribute("aria-label", "Speed");
    press("1×");
    tools.append(speeds);
    Object.assign(this.buttons, {
      begin: tool("mark-begin", "Mark from here", "A stretch begins at the moment that is shown; or drag across the plots", () => this.set(this.at, Math.max(this.mark?.[1] ?? this.newest, this.at + LEAST))),
      end: tool("mark-end", "to here", "The stretch ends at the moment that is shown", () => this.set(Math.min(this.mark?.[0] ?? this.oldest, this.at - LEAST), this.at)),
      loop: tool("loop", "Loop", "Plays the stretch over and over", () => this.loop()),
      zoom: tool("zoom", "Zoom", "Shows the stretch only", () => (this.zoomed = !this.zoomed)),
      score: tool("score", "Score it", "What the settings are worth on this stretch, and where it is worst", () => this.scored(...this.mark)),
      clear: tool("clear", "Clear", "No stretch is marked", () => {
        Object.assign(this, { mark: null, loops: false, zoomed: false });
        this.scored();
      }),
    });
    this.buttons.score.classList.add("strong");
    this.said = make("span", { className: "quiet" });
    tools.append(this.said);
    this.show();
  }

  // Another run, or a recording, which has no now.
  begin(records) {
    Object.assign(this, { records, live: !records, playing: records, at: 0, mark: null, loops: false, zoomed: false });
  }

  follow() {
    Object.assign(this, { live: !this.records, playing: this.records, zoomed: false, loops: false });
  }

  go(time) {
    Object.assign(this, { live: false, playing: false, at: Math.max(this.oldest, Math.min(this.newest, time)) });
  }

  play() {
    if (this.live) this.go(this.newest);
    else if (this.playing) this.playing = false;
    else {
      const [from, to] = this.range();
      if (this.at >= to - 0.05 || this.at < from) this.at = from;
      this.playing = true;
    }
  }

  loop() {
    this.loops = !this.loops;
    if (this.loops && this.mark) Object.assign(this, { live: false, playing: true, at: this.mark[0] });
  }

  set(begin, end) {
    const [from, to] = [Math.max(this.oldest, Math.min(begin, end)), Math.min(this.newest, Math.max(begin, end))];
    if (to - from < LEAST) return;
    this.mark = [from, to];
    if (this.live) this.go(from);
  }

  range() {
    return this.loops && this.mark ? this.mark : [this.oldest, this.newest];
  }

  // Goes on by the time that has passed; returns the moment that is shown.
  tick(history, now) {
    [this.oldest, this.newest] = [history.oldest, history.newest];
    const passed = Math.min(0.25, (now - this.before) / 1000);
    this.before = now;
    if (this.mark && (this.mark[0] < this.oldest - 1 || this.mark[1] > this.newest + 1)) Object.assign(this, { mark: null, loops: false, zoomed: false });
    const [from, to] = this.range();
    if (this.live) this.at = this.newest;
    else if (this.playing) {
      this.at += passed * this.speed;
      if (this.at >= to) {
        if (this.loops) this.at = from;
        else Object.assign(this, { at: to, playing: false, live: false });        // a recording, too, has its end
      }
    }
    this.at = Math.max(this.oldest, Math.min(this.newest, this.at));
    return this.at;
  }

  // From when to when the plots show.
  span(seconds) {
    if (this.zoomed && this.mark) return this.mark;
    if (this.live) return [this.newest - seconds, this.newest];
    const from = Math.max(Math.min(this.at - 0.6 * seconds, this.newest - seconds), this.oldest - 0.5);
    return [from, from + seconds];
  }

  get ended() { return this.records && !this.playing && this.newest > 0 && this.at >= this.newest - 0.05; }

  show() {
    const { live, play, end, loop, zoom, score, clear } = this.buttons;
    const put = (button, text) => button.textContent === text || (button.textContent = text);
    live.hidden = this.records;
    live.setAttribute("aria-pressed", String(this.live));
    put(play, this.live ? "Freeze" : this.playing ? "Pause" : "Play");
    for (const button of [loop, zoom, score, clear]) button.hidden = !this.mark;
    end.disabled = this.live;
    loop.setAttribute("aria-pressed", String(this.loops));
    zoom.setAttribute("aria-pressed", String(this.zoomed));
    const mark = this.mark ? ` · marked ${this.mark[0].toFixed(1)} to ${this.mark[1].toFixed(1)} s` : "";
    const ago = this.newest - this.at;
    put(this.said, this.records ? `${this.at.toFixed(1)} of ${this.newest.toFixed(1)} s${this.ended ? " · the end" : ""}${mark}` : `${this.live ? "live" : `${ago.toFixed(1)} s ago`}${mark}`);
  }

  draw(flags) {
    const [c, width, height] = fitted(this.canvas), long = Math.max(1e-9, this.newest - this.oldest);
    const x = (time) => 8 + ((time - this.oldest) / long) * (width - 16);
    c.fillStyle = color("soft");
    c.fillRect(8, height / 2 - 4, width - 16, 8);
    if (this.mark) {
      c.fillStyle = color("cue");
      c.fillRect(x(this.mark[0]), 2, Math.max(2, x(this.mark[1]) - x(this.mark[0])), height - 4);
    }
    for (const { time, bad } of flags) {
      if (time < this.oldest) continue;
      c.fillStyle = color(bad ? "bad" : "warn");
      c.fillRect(x(time) - 1, bad ? 0 : height / 2, 2, bad ? height : height / 2);
    }
    if (document.activeElement !== this.slider || this.playing || this.live) this.slider.value = (STEPS * (this.at - this.oldest)) / long;
    this.slider.setAttribute("aria-valuetext", `${this.at.toFixed(1)} s`);
  }
}
