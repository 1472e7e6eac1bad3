// Settings A and B compared blind, over several laps: the rider knows them as "this" and "that", and says which was better.

import { button, make } from "./elements.js";

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
    const choose = make("div", { className: "pair" }, ...["this", "that"].map((word) => {
      const choice = button(word, () => this.feel(word));
      choice.setAttribute("aria-pressed", String(this.felt === word));
      return choice;
    }));
    const say = make("div", { className: "pair" }, button("this was better", () => this.better("this")), button("that was better", () => this.better("that")));
    this.place.replaceChildren(
      make("h2", { textContent: `Blind, turn ${this.turns}` }),
      make("p", { className: "quiet", textContent: `${applied ? `You feel ${this.felt}` : "changing …"}. Go back and forth, a lap each or as often as you like.` }),
      choose, make("h3", { textContent: "Which was better?" }), say,
      make("div", { className: "row" }, button("no difference", () => this.better(null)), make("span", { className: "spacer" }), button(`End, and show the tally of ${A + B + this.none}`, () => this.end(""))));
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
      make("h2", { textContent: told }),
      make("table", {}, ...[["A", A], ["B", B], ["no difference", this.none]].map(([name, many]) => make("tr", {}, make("th", { textContent: name }), make("td", { textContent: many })))),
      make("p", { className: "quiet", textContent: why ? "" : sure }),
      make("div", { className: "pair" }, ...keep, button("Close", () => this.close())));
    this.hide(true);
  }
}
