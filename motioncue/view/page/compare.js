// Settings beside each other: what they are worth on the last minute or a marked stretch, and better ones that a search
// finds; and A and B compared blind, over several laps: the rider knows them as "this" and "that", and says which was better.

import { $, button, make as element } from "./elements.js";
import { History } from "./timeline.js";

const MINUTE = [
  ["fits", "score, asked less", "Score of what is asked, turned down as a whole until the platform can follow: 0 as at rest, 100 as the best motion known in advance", 1, ""],
  ["stopped", "score, as it moves", "Score of what the platform does, whose actuators keep their bounds", 1, ""],
  ["rates", "score, turning first", "The first score with the thresholds of turning halved", 1, ""],
  ["ratio", "felt wrong (at rest: 100 %)", "Error of what the platform does, as a share of that of a platform at rest", 100, " %"],
  ["fast_tilt", "fast tilt", "Share of the time in which it rolls or pitches more than 3 °/s faster than the car, or against it", 100, " %"],
];
const SENSES = ["surge", "sway", "heave", "roll rate", "pitch rate", "yaw rate"];

const make = (tag, textContent, more = {}, ...inside) => element(tag, { textContent, ...more }, ...inside);
const small = (text, title, act) => button(text, act, { className: "small", title });
const line = (...cells) => make("tr", "", {}, ...cells);
const share = (value) => (Number.isFinite(value) ? `${Math.round(100 * value)} %` : "–");
const why = (text) => make("p", text, { className: "why" });

export class Judge {
  // `act` has what the page can do: go(time), ghost(history), take(name, point); `names` are a frame's columns.
  constructor(act) {
    Object.assign(this, { act, shown: null, names: [] });
  }

  // Another run: nothing of the one before is known.
  begin(names) {
    Object.assign(this, { names, shown: null });
    for (const id of ["minute", "found"]) $(id).replaceChildren();
  }

  tell(message) {
    const { busy, begin_s, end_s, first_s, found } = message, searches = found && !found.points;
    const span = end_s === undefined ? "" : `${begin_s.toFixed(first_s === undefined ? 0 : 1)} to ${end_s.toFixed(first_s === undefined ? 0 : 1)} s`;
    $("minute-span").textContent = busy && !searches ? `${span} · computing …` : span;
    $("tune").textContent = searches ? "Stop" : "Tune it";
    $("tune").setAttribute("aria-pressed", String(Boolean(searches)));
    this.found(found);
    const of = first_s === undefined ? "minute" : span, other = of !== this.of;
    this.of = of;
    if (first_s !== undefined && busy) return other ? $("minute").replaceChildren() : undefined;      // of another stretch, nothing is left
    const stretch = first_s !== undefined && !message.why;
    $("minute-head").textContent = first_s === undefined ? "The last minute" : "This stretch";
    $("minute").replaceChildren(...(stretch ? this.stretch(message) : this.minute(message)));
    $("minute-hint").hidden = $("minute").children.length > 0 || busy;
    if (!stretch && !busy) this.ghost(null);
  }

  minute({ why: reason, busy, columns }) {
    const names = Object.keys(columns);
    const number = (value, factor, unit) => (typeof value !== "number" ? (busy ? "…" : "–") : `${(factor * value).toFixed(factor * Math.abs(value) < 10 ? 1 : 0)}${unit}`.replace("-", "−"));
    const rows = MINUTE.map(([key, label, title, factor, unit]) => Object.assign(line(make("th", label), ...names.map((name) => make("td", number(columns[name][key], factor, unit)))), { title }));
    const head = line(make("td", ""), ...names.map((name) => make("th", name)));
    const whys = [reason, ...names.map((name) => columns[name].why && `${name}: ${columns[name].why}`)].filter(Boolean);
    return [...(names.length ? [make("table", "", {}, head, ...rows)] : []), ...whys.map(why)];
  }

  // By sense, as a share of what is missed at rest; the worst moment and its reason.
  stretch({ columns, first_s }) {
    const names = Object.keys(columns).filter((name) => columns[name].errors);
    const row = (label, value) => line(make("th", label), ...names.map((name) => make("td", value(columns[name]))));
    const buttons = line(make("td", ""), ...names.map((name) => {
      const box = make("td", "");
      if (name === "now") return box;
      const show = small("Show", `Draws ${name} beside what was driven: dotted lines, and a ghost of the platform`, () => {
        this.ghost(this.shown === name ? null : name, columns, first_s);
        for (const each of buttons.querySelectorAll("[aria-pressed]")) each.setAttribute("aria-pressed", String(each === show && this.shown === name));
      });
      show.setAttribute("aria-label", `Show ${name}`);
      show.setAttribute("aria-pressed", String(this.shown === name));
      const take = small("Take", "Applies these settings now, with the usual fade", () => this.act.take(name, this.best));
      take.setAttribute("aria-label", `Take ${name}`);
      box.append(show, take);
      return box;
    }));
    const table = make("table", "", {}, line(make("th", "felt wrong (at rest: 100 %)"), ...names.map((name) => make("th", name))),
      ...SENSES.map((sense, at) => row(sense, ({ rest, errors }) => (rest[at] > 0.1 ? share(errors[at] / rest[at]) : "–"))),
      row("all", ({ ratio }) => share(ratio)), row("travel used", ({ travel }) => share(travel)), buttons);
    const more = names.some((name) => columns[name].errors.some((error, at) => columns[name].rest[at] > 0.1 && error > columns[name].rest[at]));
    const hint = more ? [make("p", "Above 100 %: more is felt wrong than on a platform that stands still. To lean for what lasts is felt as some turning.", { className: "quiet" })] : [];
    const worst = names.map((name) => {
      const { worst, worst_s, why } = columns[name];
      return Object.assign(small(`${name}: worst at ${(first_s + worst_s).toFixed(1)} s, ${worst.replace("_", " ")}: ${why}`, "Goes to this moment", () => this.act.go(first_s + worst_s)), { className: "small worst" });
    });
    this.ghost(names.includes(this.shown) ? this.shown : null, columns, first_s);
    const failed = Object.entries(columns).filter(([, { errors }]) => !errors);
    return [table, ...hint, ...worst, ...failed.map(([name, column]) => why(`${name}: ${column.why}`))];
  }

  // Other settings' rows of the stretch, drawn beside those that were driven.
  ghost(name, columns, first_s) {
    this.shown = name;
    if (!name) return this.act.ghost(null);
    const { names, rows } = columns[name], bytes = Uint8Array.from(atob(rows), (letter) => letter.charCodeAt(0)), numbers = new Float32Array(bytes.buffer);
    const history = new History(this.names.length, numbers.length / names.length);
    for (let at = 0; at < numbers.length; at += names.length) {
      const row = new Float64Array(this.names.length).fill(NaN);
      names.forEach((each, place) => (row[this.names.indexOf(each)] = numbers[at + place]));
      row[0] = first_s + numbers[at];
      history.add(row);
    }
    return this.act.ghost(history);
  }

  // How far a search is, or the front that it has found: the best score for each share of the travel.
  found(found) {
    this.best = found?.points?.length - 1;
    if (!found) return $("found").replaceChildren();
    if (!found.points) {
      const bar = make("progress", "", { max: found.total || 1, value: found.done });
      if (!found.total) bar.removeAttribute("value");
      bar.setAttribute("aria-label", "Search for better settings");
      return $("found").replaceChildren(bar, make("p", found.total ? `${found.done} of ${found.total} settings tried · best score ${found.best.toFixed(0)}` : "finding the best motion that the platform could make …", { className: "quiet" }));
    }
    const rows = found.points.map(({ share: within, score, use, fast_tilt: tilt }, at) => line(
      make("th", share(within)), make("td", score.toFixed(0)), make("td", share(use)), make("td", share(tilt)),
      make("td", "", {}, Object.assign(small("Try", "Applies these settings now, with the usual fade; Undo brings back what was there", () => this.act.take("tuned", at)), { ariaLabel: `Try the best within ${share(within)} of the travel` }))));
    const head = line(...["within travel", "score", "uses", "fast tilt", ""].map((text) => make("th", text)));
    const before = line(make("th", "when it began"), make("td", found.before.toFixed(0)), make("td", share(found.use)), make("td", ""), make("td", ""));
    return $("found").replaceChildren(make("h3", rows.length ? "Found" : "Nothing better was found"), make("table", "", {}, head, before, ...rows));
  }
}

const FEW = 5;              // answers until the tally says something

// Probability that one of two is preferred so often, or more, by chance alone: both ends of the binomial distribution.
export function chance(most, all) {
  let ways = 1, sum = 0;
  for (let k = 0; k <= all; k++) {
    if (k >= most) sum += ways;
    ways = (ways * (all - k)) / (k + 1);
  }
  return Math.min(1, (2 * sum) / 2 ** all);
}

// What is kept in the browser, for a page that is loaded again in the middle of a comparison; it may refuse to keep it.
const KEPT = "motioncue blind";
const keep = (what) => {
  try {
    if (what) sessionStorage.setItem(KEPT, JSON.stringify(what));
    else sessionStorage.removeItem(KEPT);
  } catch { /* then a reload ends it */ }
};
const kept = () => {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT));
  } catch {
    return null;
  }
};

export class Blind {
  // `swap(slot, why, sure)` asks for settings; `draw()` returns whether "this" is A in the next turn.
  constructor(place, { swap, draw = () => crypto.getRandomValues(new Uint8Array(1))[0] < 128 }) {
    Object.assign(this, { place, swap, draw, on: false, slot: "A", differs: "" });
  }

  // Begins when the other settings are in force: what is asked about them is asked before.
  begin() {
    this.waits = this.slot === "A" ? "B" : "A";
    this.swap(this.waits, "", false);
  }

  // A page that was loaded again goes on, in the same run and if A and B differ as before.
  run(run) {
    const before = kept();
    this.hide(this.on = false);
    Object.assign(this, { named: run, waits: null, before: before?.named === run ? before : null });
  }

  resume(same) {
    const { before } = this;
    this.before = null;
    if (!before || before.differs !== same) return;
    Object.assign(this, before);
    if (this.on) this.show();
    else this.tally("");
  }

  // What the page is told of the settings.
  told({ slot, differs }) {
    const same = differs.join();
    this.slot = slot;
    if (this.before) this.resume(same);
    if (this.waits === slot) {
      Object.assign(this, { waits: null, on: true, votes: { A: 0, B: 0 }, none: 0, differs: same, turns: 0 });
      this.turn();
    } else if (this.on && same !== this.differs) this.end("A or B was changed meanwhile: begin again");
    else if (this.on) this.show();
  }

  // Another pair: which of them is "this" is drawn anew.
  turn() {
    this.first = this.draw() ? "A" : "B";
    this.turns += 1;
    this.feel("this");
  }

  slotOf(word) { return (word === "this") === (this.first === "A") ? "A" : "B"; }

  feel(word) {
    this.felt = word;
    this.swap(this.slotOf(word), "", true);
    this.show();
  }

  better(word) {
    if (word) this.votes[this.slotOf(word)] += 1;
    else this.none += 1;
    this.turn();
  }

  show() {
    const { A, B } = this.votes, applied = this.slot === this.slotOf(this.felt);
    this.keep();
    const choose = element("div", { className: "pair" }, ...["this", "that"].map((word) => {
      const choice = button(word, () => this.feel(word));
      choice.setAttribute("aria-pressed", String(this.felt === word));
      return choice;
    }));
    const say = element("div", { className: "pair" }, button("this was better", () => this.better("this")), button("that was better", () => this.better("that")));
    this.place.replaceChildren(
      element("h2", { textContent: `Blind, turn ${this.turns}` }),
      element("p", { className: "quiet", textContent: `${applied ? `You feel ${this.felt}` : "changing …"}. Go back and forth, a lap each or as often as you like.` }),
      choose, element("h3", { textContent: "Which was better?" }), say,
      element("div", { className: "row" }, button("no difference", () => this.better(null)), element("span", { className: "spacer" }), button(`End, and show the tally of ${A + B + this.none}`, () => this.end(""))));
    this.hide(true);
  }

  keep() {
    const { named, differs, on, votes, none, turns, first, felt } = this;
    keep({ named, differs, on, votes, none, turns, first, felt });
  }

  close() {
    keep(null);
    this.hide(false);
  }

  hide(yes) {
    document.body.dataset.blind = yes ? "yes" : "";
    this.place.hidden = !yes;
  }

  // Shows what was preferred, and offers to keep it.
  end(why) {
    this.on = false;
    if (why) keep(null);
    else this.keep();
    this.tally(why);
  }

  tally(why) {
    const { A, B } = this.votes, most = A > B ? "A" : "B", all = A + B, times = Math.max(A, B);
    const told = why || (!all ? "Nothing was preferred" : A === B ? `A and B: ${A} each` : `${most} was better in ${times} of ${all}`);
    const sure = all < FEW ? `Fewer than ${FEW} answers say little.` : `By chance alone it would be so clear in ${Math.round(100 * chance(times, all))} % of cases.`;
    const keep = !why && A !== B ? [button(`Take ${most}`, () => {
      this.swap(most, `preferred blind in ${times} of ${all}`, true);
      this.close();
    }, { className: "strong" })] : [];
    this.place.replaceChildren(
      element("h2", { textContent: told }),
      element("table", {}, ...[["A", A], ["B", B], ["no difference", this.none]].map(([name, many]) => element("tr", {}, element("th", { textContent: name }), element("td", { textContent: many })))),
      element("p", { className: "quiet", textContent: why ? "" : sure }),
      element("div", { className: "pair" }, ...keep, button("Close", () => this.close())));
    this.hide(true);
  }
}
