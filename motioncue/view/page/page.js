// Connects the page with the engine: frames in, requests out.

import { Blind, Judge } from "./compare.js";
import { $, Lock, button, choices, make, pin } from "./elements.js";
import { GROUPS, Plots, shown } from "./plots.js";
import { Rig } from "./rig.js";
import { History, Timeline } from "./timeline.js";
import { Knobs, Tuning } from "./tuning.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const DRAW_MS = 30, CALM_MS = 200, TEXT_MS = 100, RETRY_MS = 1000;
const LOST_MS = 1500;         // without a frame until the page says so
const OLD_MS = 400;           // that what is shown is behind, or a link takes, until the page says so
const PAST_MS = 1000;         // that a link may take at most, for what was driven before to be asked for
const NOTICED = { surge: 0.17, sway: 0.17, heave: 0.28 };     // least error of a force that is noticed [m/s²]
const DOUBT_MS = 500;         // from Park to a tick that parks, until the page says loudly that there was none

let socket = null, hello = null, columns = {}, history = null, plots = null, rig = null, newest = null, newestAt = 0;
let least = Infinity, late = 0, linkMs = 0;      // between this machine's clock and the engine's: the least, and how much more now [ms]
let noted = null;             // the verdict that somebody has taken note of
let fell = null;              // the newest transition to a fault
let frames = 0, peaks = {}, reached = {}, worst = null, events = {}, bars = [], ghosts = null, lastState = "";

function send(request) {
  const open = socket?.readyState === WebSocket.OPEN;
  if (open) socket.send(JSON.stringify(request));
  else say("not sent: there is no connection");
  return open;
}

let quieting = 0;
function say(text) {
  $("notice").textContent = text;
  clearTimeout(quieting);
  if (text) quieting = setTimeout(() => ($("notice").textContent = ""), 8000);
}

const tuning = new Tuning($("parameters"), send, ask, (waits) => {
  $("title").dataset.applying = waits ? "yes" : "";
});

const knobs = new Knobs($("knobs"), tuning, send);
const judge = new Judge({
  go: (time) => timeline.go(time),
  ghost: (rows) => (plots.ghost = ghosts = rows),
  take: (name, point) => {
    if ($("undo").closest("fieldset").disabled) say("locked: Unlock first");      // a phone that is for looking
    else if (name === "before") actions.undo();
    else if (name === "tuned") then({ do: "try", point });
    else actions.swap();
  },
});
const blind = new Blind($("blind"), { swap: (to, why, sure) => then({ do: "swap", to, why, sure }) });
const timeline = new Timeline($("strip"), $("tools"), {
  scored: (...stretch) => {
    send(stretch.length ? { do: "judge", stretch } : { do: "judge" });
    const place = document.querySelector(".last"), { top } = place.getBoundingClientRect();
    if (stretch.length && (top < 0 || top > 0.6 * innerHeight)) place.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth" });   // on a phone it is far below
  },
});

// ---- what comes in ----

function connect() {
  const token = new URLSearchParams(location.search).get("token");
  socket = new WebSocket(`ws://${location.host}/live${token ? `?token=${encodeURIComponent(token)}` : ""}`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => (typeof data === "string" ? take(JSON.parse(data)) : frame(new Float64Array(data)));
  socket.onclose = () => {
    showState("lost", "connection lost");
    setTimeout(connect, RETRY_MS);
  };
}

function take(message) {
  const handlers = { hello: begin, controls, settings, minute: (message) => judge.tell(message), hands, stats, link, refused, saved, answered, asks: (message) => tuning.asks(message) };
  handlers[message.kind]?.(message);
}

function begin(message) {
  const again = hello?.run === message.run;
  hello = message;
  frames = 0;
  $("caption").title = message.scene.sent ? "" : "No output sends the positions of its actuators: these are what the pose that is asked for would need.";
  for (const [id, label] of Object.entries(message.plays ? { engage: "Play", hold: "Pause" } : { engage: "Engage", hold: "Hold" })) $(id).textContent = label;
  say("");
  if (asked) park();
  showPark();
  tuning.reconnected();
  if (!newest) showState("offline", "connecting …");      // over a slow link the settings take a while
  if (!again) newRun(message);             // else the connection came back: what was seen stays
  wanted = { anew: !again };
  if (hello.plays) fetchWanted();
}

// Another run has its own time, geometry, settings, peaks and events: nothing of the one before stays.
function newRun(message) {
  [newest, before, noted, least, late, linkMs] = [null, null, null, Infinity, 0, 0];
  [events, reached, worst, fell] = [{}, {}, null, null];
  tuning.reset();
  ghosts = null;
  timeline.begin(message.plays);
  for (const id of ["saved", "events", "verdict", "timing"]) $(id).replaceChildren();
  columns = Object.fromEntries(message.names.map((name, index) => [name, index]));
  history = new History(message.names.length);
  judge.begin(message.names);
  blind.run(message.run);
  plots?.leave();
  plots = new Plots($("plots"), message, columns, { pointed: (time) => (pointed = time), marked: (begin, end) => timeline.set(begin, end) });
  buildRows();
  rig ??= new Rig($("rig"), $("views"));
  rig.place(message.scene, columns);
  buildBars(message.scene.names);
}

// What was before the page came, or while it had no connection.  A recording comes whole.
let fetched = 0, wanted = null;
function fetchWanted() {
  if (wanted) fetchPast(wanted.anew);
  wanted = null;
}

async function fetchPast(anew = true) {
  const mine = (fetched += 1), { run } = hello;
  try {
    const answer = await fetch(`/past${location.search}`);
    if (!answer.ok) return;
    const numbers = new Float64Array(await answer.arrayBuffer());
    if (mine !== fetched || hello.run !== run) return;
    if (hello.plays) history.count = 0;
    history.merge(numbers);
    if (hello.plays) forget();
    if (anew) for (let index = history.first; index < history.count; index++) peak(history.row(index));
  } catch {
    // without a connection there is nothing to show; it is asked for again with the next one
  }
}

// What the settings are; it comes anew when another algorithm has others, and their values follow at once.
let next = null;
function controls(message) {
  next = message;
}

function rebuild({ title, poses, parameters }) {
  $("title").textContent = title;
  showState.title = title;
  const { kind, sent } = hello.scene;
  $("caption").textContent = kind === "none" ? (poses ? "the pose asked for (no [platform])" : "the attitude asked for (no pose)") : `${kind}${sent ? "" : ", as asked"} · grid 0.5 m`;
  const focused = document.activeElement?.id;
  tuning.build(parameters);
  if (focused?.startsWith("p-")) $(focused)?.focus();      // the same control, built anew
  tuning.find($("filter").value);
  built = true;
}
let built = false;

function frame(row) {
  if (!history || row.length !== history.width) return;
  if (!hello.plays) history.add(row);
  newest = row;
  newestAt = performance.now();
  const behind = newestAt - 1000 * row[0];
  least = Math.min(least, behind);
  late = hello.plays ? 0 : behind - least;
  frames += 1;
  send({ do: "seen", frames });
  if (asked && row[columns.parks]) confirmPark();
  if (!hello.plays) peak(row);
}

function forget() {
  [peaks, reached, worst] = [{}, {}, null];
}

function peak(row) {
  if (driven(row)) for (const { name, column } of bars) {
    const used = row[column], [low, high] = peaks[name] ?? [0, 0];
    peaks[name] = [Math.min(low, used), Math.max(high, used)];
  }
  for (const { name } of hello.channels) {
    const [car, asked] = reached[name] ?? [0, 0], size = (from) => Math.abs(row[columns[`${from}.${name}`]]) || 0;
    if (driven(row)) reached[name] = [Math.max(car, size(`felt.${name}` in columns ? "felt" : "car")), Math.max(asked, size("cue"))];
  }
  if (driven(row)) for (const [name, least] of Object.entries(NOTICED)) {
    const error = row[columns[`cue.${name}`]] - row[columns[`felt.${name}`]];
    if (Math.abs(error) / least > (worst?.size ?? 1)) worst = { size: Math.abs(error) / least, time: row[0], words: `${name}, ${shown(Math.abs(error))} m/s² wrong` , why: reason(row, name) };
  }
}

// Why less was asked than is felt in the car, as far as one moment tells.
function reason(row, name) {
  const used = bars.map(({ name: bar, column }) => [Math.abs(row[column]), bar]).sort(([one], [other]) => other - one)[0];
  if (Math.abs(row[columns[`cue.${name}`]]) > 0.98 * (plots.bounds[name] ?? Infinity)) return "at its limit";
  return used ? `${used[1].replaceAll("_", " ")} at ${Math.round(100 * used[0])} % of its travel` : "";
}

function showWorst() {
  const said = worst ? `Worst so far at ${worst.time.toFixed(1)} s: ${worst.words}${worst.why ? `; ${worst.why}` : ""}` : "";
  if ($("worst").textContent !== said) $("worst").textContent = said;
  $("worst").hidden = !said;
}

// Whether the platform follows the car: then its travel counts.
const driven = (row) => ["running", "holding"].includes(hello.states[row[columns.state]]);

// What the platform says that keeps it from being driven, and a fault with its reason, for as long as they last.
function showTrouble(row) {
  const flags = row[columns.says], [, words, loud] = hello.says.find(([flag]) => flags & flag) ?? [0, "", false];
  const fault = hello.states[row[columns.state]] === "fault";
  const why = !fault ? "" : fell ? `Fault at ${fell.t.toFixed(1)} s: ${fell.reason.replaceAll("_", " ")}. ` : "Fault. ";
  const said = `${why}${words}${fault && !hello.plays ? ` Engage goes on, ${words ? "once that is over" : "once its cause is gone"}.` : ""}`;
  if ($("trouble").textContent !== said) $("trouble").textContent = said;
  $("trouble").dataset.loud = fault || loud ? "yes" : "";
  $("trouble").hidden = !said;
}

function link({ delay_s, wave }) {
  linkMs = 1000 * delay_s;
  if (linkMs > 0 && linkMs < PAST_MS) fetchWanted();       // a slower link is kept for what is now
  $("wave").hidden = !wave;
  $("wave").textContent = wave;
}

function settings(message) {
  if (next) rebuild(next);
  next = null;
  tuning.show(message);
  if (built) knobs.build();
  built = false;
  knobs.show(message.muted);
  blind.told(message);
  $("muted").hidden = !message.muted.length;
  $("muted").textContent = `Muted: ${message.muted.join(", ")}`;
  if (hello.plays && history.count) fetchPast();      // it was replayed
  plots.bounds = knobs.bounds = message.bounds;
  showOff(message.off);
  for (const slot of ["A", "B"]) $(slot).className = slot === message.slot ? "on" : "";
  $("undo").disabled = !message.undo;
  const changed = Object.keys(message.changed).length, differs = message.differs.length;
  $("try-blind").disabled = !differs;
  $("differs").textContent = `${changed ? `${changed} changed since the beginning` : "as at the beginning"} · A and B ${differs ? `differ in ${differs}` : "are the same"}`;
}

// Bounds that are off are said for as long as they are.
function showOff(lines) {
  const more = lines.length > 2 ? ` · and ${lines.length - 2} more` : "";
  $("off").hidden = !lines.length;
  $("off").title = lines.join("\n");
  $("off").replaceChildren(...(lines.length ? [make("b", { textContent: "Bounds are off" }), ` ${lines.slice(0, 2).join(" · ")}${more}`] : []));
}

function hands({ steers, who, pages }) {
  $("who").textContent = `${steers ? "you steer" : who ? `${who} steers` : "nobody steers"}${pages > 1 ? ` · ${pages} pages` : ""}`;
  $("take").textContent = steers ? "Let go" : "Take over";
  $("take").dataset.steers = steers ? "yes" : "";
}

function refused(message) {
  if (!tuning.refuse(message)) say(message.why);
}

function answered({ number }) {
  tuning.answer(number);
}

function saved({ file, diff }) {
  const pre = make("pre", {}, ...diff.map((line) => make("span", { textContent: `${line}\n`, className: line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : "" })));
  $("saved").replaceChildren(`saved as ${file}`, ...(diff.length ? [pre] : [": nothing was changed"]));
}

function duration(us) {
  return us < 999.5 ? `${us.toPrecision(us < 100 ? 2 : 3)} µs` : us < 999500 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`;
}

let before = null;
function stats(message) {
  const now = performance.now();
  const rate = before ? ((message.frames_received - before.frames) * 1000) / (now - before.at) : 0;
  before = { frames: message.frames_received, at: now };
  const late = message.lateness_us;
  const rejected = Object.values(message.rejected).reduce((sum, each) => sum + each, 0);
  const limited = Object.entries(message.limited).filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1]).slice(0, 4)
    .map(([name, share]) => `${name.replace(/^output\[(\d+)\]\./, (_, at) => (at === "0" ? "" : `output ${Number(at) + 1} `)).replaceAll("_", " ")} ${share < 0.01 ? "<1" : (100 * share).toFixed(0)} %`);
  const rows = [
    ["frames in", hello.plays ? message.frames_received : `${rate.toFixed(1)} /s`], ["packets out", `${message.rate_hz.toFixed(2)} /s`],
    ["packets leave", message.grade], ["late, median", duration(late.p50)], ["late, 99 %", duration(late.p99)], ["late, most", duration(late.max)],
    ["ticks left out", message.skipped], ["frames refused", rejected], ["met a limit", limited.join(", ") || "none"],
    ...(message.platform.length ? [["platform says", message.platform.join(", ")]] : []),
  ];
  $("timing").replaceChildren(...rows.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]));
  showWheels(message.chassis);
  const words = message.verdict.words.replaceAll("`", ""), [short, ...more] = words.split(/(?=: )/);
  const count = JSON.stringify([words, message.events, message.rejected]);
  const known = noted === count;
  $("verdict").dataset.level = known ? "none" : message.verdict.level;
  $("noted").hidden = !["warn", "bad"].includes(message.verdict.level);
  $("noted").dataset.count = count;
  $("noted").textContent = known ? "Noted: until it happens again" : "Note it";
  $("noted").setAttribute("aria-pressed", String(known));
  $("verdict").replaceChildren(make("b", { textContent: short }), more.join(""));
  fell = message.transitions.findLast(({ to }) => to === "FAULT") ?? fell;
  for (const { t, reason, to } of message.transitions) plots.flag(t, reason === "retuned" ? "retuned" : `${reason.replaceAll("_", " ")} → ${to.toLowerCase()}`, to === "FAULT");
  for (const [name, count] of Object.entries(message.events)) {
    if (count > (events[name] || 0) && history.count) plots.flag(history.newest, name.replaceAll("_", " "), true);
    events[name] = count;
  }
  showEvents();
}

// What the source says of wheels and cab, if it says anything.
const WHEELS = ["front left", "front right", "rear left", "rear right"];
const OF_WHEELS = [["suspension", "travel, mm", 1000], ["suspension_velocity", "mm/s", 1000], ["slip", "slip", 1], ["rumble", "rumble", 1]];
function showWheels(said) {
  const value = (name, factor) => (name in said ? Number((factor * said[name]).toPrecision(3)) : "");
  const at = (name, wheel) => `${name}_${wheel.replace(" ", "_")}`;
  const columns = OF_WHEELS.filter(([name]) => WHEELS.some((wheel) => at(name, wheel) in said));
  const rows = columns.length ? [["", ...columns.map(([, words]) => words)], ...WHEELS.map((wheel) => [wheel, ...columns.map(([name, , factor]) => value(at(name, wheel), factor))])] : [];
  for (const name of Object.keys(said).filter((each) => each.startsWith("cabin_"))) rows.push([name.replace("cabin_", "cab "), value(name, 1)]);
  $("wheels").hidden = !rows.length;
  $("wheels").replaceChildren(...rows.map((row, line) => make("tr", {}, ...row.map((text, place) => make(line && place ? "td" : "th", { textContent: text })))));
}

function showEvents() {
  $("events").replaceChildren(...plots.flags.slice(-40).reverse().map(({ time, text }) => make("li", {}, make("time", { textContent: `${time.toFixed(1)} s` }), text)));
}

// ---- what is shown ----

function showState(state, text = state) {
  const title = `${text} · motioncue · ${showState.title ?? ""}`;
  if (document.title !== title) document.title = title;
  if (lastState === text) return;
  lastState = text;
  $("state").dataset.state = state;
  $("state").textContent = text;
}

function buildBars(names) {
  peaks = {};
  bars = names.map((name) => {
    const bar = make("div", { className: "bar" });
    bar.innerHTML = `<b></b><div class="rail"><div class="fill"></div><div class="peak"></div><div class="peak"></div></div><span class="used"></span>`;
    bar.firstChild.textContent = name.replaceAll("_", " ");
    const [fill, low, high] = bar.children[1].children;
    return { name, column: columns[`used.${name}`], bar, fill, low, high, output: bar.lastChild };
  });
  const none = make("p", { className: "quiet", textContent: "The profile has no [platform], so there is no travel to use up." });
  $("travel").replaceChildren(...(bars.length ? bars.map(({ bar }) => bar) : [none]));
}

function showBars(newest) {
  for (const { name, column, bar, fill, low, high, output } of bars) {
    const used = newest[column], [least, most] = peaks[name] || [0, 0], rests = !driven(newest);
    const reached = Number.isFinite(used), length = reached ? 50 * Math.min(1, Math.abs(used)) : 50;
    fill.style.width = `${length}%`;
    fill.style.left = `${used < 0 ? 50 - length : 50}%`;
    low.style.left = `calc(${50 + 50 * Math.max(-1, least)}% - 1px)`;
    high.style.left = `calc(${50 + 50 * Math.min(1, most)}% - 1px)`;
    bar.dataset.use = rests ? "rests" : !(Math.abs(used) <= 0.95) ? "bad" : Math.abs(used) > 0.75 ? "warn" : "";
    output.textContent = !reached ? "no reach" : `${used < 0 ? "−" : "+"}${Math.abs(100 * used).toFixed(0)} %`;
  }
}

let shownFor = "20", pointed = NaN;
const [spans, press] = choices(["5", "10", "20", "60", "300 s"], (span) => (shownFor = span));
spans.setAttribute("aria-label", "Time shown");
press(shownFor);
$("window").append(spans);

// Which lines and rows are shown.
const LINES = { car: "car", felt: "felt in it", asked: "asked" };
function buildRows() {
  const toggle = (text, pressed, act) => {
    const each = button(text, () => each.setAttribute("aria-pressed", String(act())), { className: "small" });
    each.setAttribute("aria-pressed", String(pressed));
    return each;
  };
  $("legend").replaceChildren(...Object.entries(LINES).map(([role, text]) => {
    const each = toggle(text, true, () => {
      plots.toggle(role);
      return !plots.hidden.has(role);
    });
    each.prepend(make("i", { className: role }));
    return each;
  }));
  $("rows").replaceChildren(...plots.kinds.map((kind) => toggle(GROUPS[kind], plots.groups.has(kind), () => {
    const groups = new Set(plots.groups);
    if (!groups.delete(kind)) groups.add(kind);
    if (groups.size) plots.show(groups);
    return plots.groups.has(kind);
  })));
}
$("plots").addEventListener("pointerleave", () => (pointed = NaN));

let drawnAt = 0, toldAt = 0;
function draw(now) {
  requestAnimationFrame(draw);
  const seconds = parseFloat(shownFor);
  if (!history || now - drawnAt < (calm.matches || seconds > 60 ? CALM_MS : DRAW_MS)) return;
  drawnAt = now;
  const at = timeline.tick(history, now), [start, end] = timeline.span(seconds);
  const row = timeline.live ? newest : history.when(at), read = Number.isFinite(pointed) ? history.when(pointed) : row;
  plots.mark = timeline.mark;
  plots.draw(history, start, end, timeline.live ? NaN : at, now);
  const beside = ghosts && at >= ghosts.oldest && at <= ghosts.newest ? ghosts.when(at) : null;
  rig.draw(row, calm.matches, row && !driven(row), beside);
  timeline.draw(plots.flags);
  if (row && now - toldAt >= TEXT_MS) {
    showBars(row);
    showWorst();
    showTrouble(row);
    plots.tell(read);
    knobs.suggest(Math.max(0, ...Object.values(peaks).flatMap(([low, high]) => [-low, high])), reached);
    timeline.show();
  }
  if (!newest || now - toldAt < TEXT_MS) return;
  toldAt = now;
  const open = socket.readyState === WebSocket.OPEN, silent = now - newestAt;
  const old = hello.plays ? 0 : open && silent < LOST_MS ? Math.max(late, linkMs) : silent + late;
  const stale = !open || (silent > LOST_MS && !hello.plays) || late > LOST_MS;
  document.body.dataset.stale = stale ? "yes" : "";
  const said = old < OLD_MS || (open && silent > LOST_MS && hello.plays) ? "" : stale ? `What is shown is ${(old / 1000).toFixed(old < 9950 ? 1 : 0)} s old` : `The link is slow: what is shown is ${(old / 1000).toFixed(1)} s old`;
  if ($("old").textContent !== said) $("old").textContent = said;
  $("old").hidden = !said;
  if (!open) return;
  if (silent > LOST_MS && !hello.plays) showState("lost", linkMs < OLD_MS && frames ? "no ticks" : "slow link");
  else if (hello.plays) {
    const state = row ? hello.states[row[columns.state]] : "offline";
    showState(state, timeline.ended ? "at the end" : timeline.playing ? state : "paused");
  } else if (late > LOST_MS) showState("lost", "old picture");
  else {
    const state = hello.states[newest[columns.state]] || "?", weight = newest[columns.weight];
    const rests = state === "offline" && newest[columns.parks];
    showPark();
    showState(state, rests ? "parked" : ["engaging", "parking"].includes(state) && weight < 0.995 ? `${state} ${Math.round(100 * weight)} %` : state);
  }
}

// ---- what goes out ----

// What concerns all settings comes after those that were changed before it.
function then(request) {
  tuning.flush();
  send(request);
}

// Park is asked for until a tick parks, also in the next connection; without one soon, the page is loud.
let asked = false, doubt = 0;
function park() {
  clearTimeout(doubt);
  if (hello?.plays) return timeline.go(0);
  asked = true;
  doubt = setTimeout(() => alarm(asked), DOUBT_MS);
  if (!send({ do: "operate", what: "park" })) alarm(asked);
  showPark();
}

function confirmPark() {
  asked = false;
  clearTimeout(doubt);
  alarm(false);
}

function alarm(loud) {
  $("alarm").hidden = !loud;
  showPark();
}

function showPark() {
  const parks = newest?.[columns.parks], moves = parks && hello.states[newest[columns.state]] !== "offline";
  const words = hello?.plays ? "To the start" : !$("alarm").hidden ? "Not parked!" : asked ? "asked …" : moves ? "parking" : parks ? "parked" : "Park";
  if ($("park").firstChild.textContent !== words) $("park").firstChild.textContent = words;
  $("park").dataset.park = $("alarm").hidden ? "" : "loud";
}

// A change that could be a slip of the hand: whoever does not say that it is meant leaves it as it is.
let question = null;
function ask({ request, why }) {
  question = request;
  const waves = request.do === "wave";
  $("ask-what").textContent = waves ? "Move the platform?" : "Is this meant?";
  $("leave").textContent = waves ? "No" : "Leave it as it is";
  $("mean").textContent = waves ? "Move it" : "Change it";
  $("ask-why").replaceChildren(...why.map((line) => make("li", { textContent: line })));
  if (!$("ask").open) $("ask").show();
  $("leave").focus();
}

function leave() {
  question = null;
  $("ask").close();
}

$("leave").addEventListener("click", leave);
$("mean").addEventListener("click", () => {
  tuning.means(question);
  leave();
});
document.addEventListener("pointerdown", ({ target }) => question && !target.closest("#ask") && leave(), true);

const actions = {
  engage: () => (hello?.plays ? timeline.playing || timeline.play() : send({ do: "operate", what: "engage" })),
  hold: () => (hello?.plays ? timeline.go(timeline.at) : send({ do: "operate", what: "hold" })),
  park,
  take: () => send({ do: $("take").dataset.steers ? "give" : "take" }),
  swap: () => then({ do: "swap" }),
  undo: () => then({ do: "undo" }),
  judge: () => send({ do: "judge" }),
  tune: () => {
    const stretch = timeline.mark ?? undefined;
    if ($("tune").getAttribute("aria-pressed") === "true") send({ do: "judge" });
    else then({ do: "tune", stretch });
  },
  "try-blind": () => blind.begin(),
  peaks: forget,
  worst: () => worst && timeline.go(worst.time),
  noted: () => (noted = noted === $("noted").dataset.count ? null : $("noted").dataset.count),
};
for (const [id, action] of Object.entries(actions)) $(id).addEventListener("click", action);
$("filter").addEventListener("input", () => {
  const found = tuning.find($("filter").value);
  $("none-found").hidden = found > 0;
  $("none-found").textContent = found ? "" : "Nothing found: try stronger, lean, late, shakes, washout, or a key";
});
$("save").addEventListener("submit", (event) => {
  event.preventDefault();
  then({ do: "save", name: $("file").value });
});

const coarse = matchMedia("(pointer: coarse)").matches;      // a phone opens for looking
if (coarse) {
  $("unlock").hidden = false;
  const closed = () => {
    leave();
    tuning.close();
  };
  new Lock($("unlock"), document.querySelectorAll(".commands"), document, closed);
}
pin(document.querySelector("header"));

// P, by its place on the keyboard or by its letter, and Esc park wherever the focus is: to park by mistake does no harm.
// Nothing else is commanded by a single key.
addEventListener("keydown", (event) => {
  const { target, key, code } = event, chord = event.ctrlKey || event.altKey || event.metaKey;
  const writes = target.matches("input:not([type=range], [type=checkbox], .number)");
  const letter = code === "KeyP" || key.toLowerCase() === "p";
  if (key === "Escape" || letter && !(writes && event.shiftKey && !chord)) {
    if (!event.repeat) park();
    if (question) leave();
    tuning.close();                        // a number typed halfway is not meant any more
    if (key === "Escape") target.blur();
    if (letter && (!writes || chord)) event.preventDefault();
  } else if (event.ctrlKey && key === "z" && !target.matches("input:not([type=range], [type=checkbox])")) {
    event.preventDefault();
    if (!$("undo").closest("fieldset").disabled) actions.undo();      // also before it is told that there is something
  } else if (chord || target.matches("input")) return;
  else if (key === "/") {
    event.preventDefault();
    $("filter").focus();
  } else if (/^Arrow(Left|Right)$/.test(key) && !target.matches("summary, #rig")) {
    event.preventDefault();
    timeline.go(timeline.at + (key === "ArrowLeft" ? -1 : 1));
  }
}, true);

connect();
requestAnimationFrame(draw);
