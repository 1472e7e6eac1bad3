// Elements of the page, and what a slip of the hand must not do with them: locks, sliders that a scroll cannot move, Park
// where it can be seen.

const LOCK_MS = 60000;              // without a touch until what was unlocked is locked again
const THUMB = 16, GRAB = 26;        // width of a slider's thumb, and how far from its middle it is still taken [px]
const SIDEWAYS = 8;                 // a finger's way until it moves a slider [px]

export const $ = (id) => document.getElementById(id);

export const make = (name, more = {}, ...inside) => {
  const made = Object.assign(document.createElement(name), more);
  made.append(...inside);
  return made;
};

export const button = (textContent, act, more = {}) => {
  const made = make("button", { type: "button", textContent, ...more });
  made.addEventListener("click", act);
  return made;
};

// Opens fields on purpose; closes them after a while without a touch in their zone, and when the page is not seen.
export class Lock {
  constructor(button, fields, zone, closed) {
    Object.assign(this, { button, fields, closed, timer: 0, words: button.textContent });
    button.addEventListener("click", () => this.set(!this.open));
    for (const name of ["pointerdown", "keydown", "input"]) zone.addEventListener(name, () => this.open && this.wait(), true);
    document.addEventListener("visibilitychange", () => document.hidden && this.set(false));
    this.set(false);
  }

  set(open) {
    this.open = open;
    for (const field of this.fields) field.disabled = !open;
    this.button.textContent = open ? "Lock" : this.words;
    this.button.setAttribute("aria-pressed", String(open));
    clearTimeout(this.timer);
    if (open) this.wait();
    else this.closed();
  }

  wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.set(false), LOCK_MS);
  }
}

// Puts a slider into a rail, in which only its thumb is taken, and a finger moves it only sideways: what begins beside
// it, or goes up or down, scrolls the page.  The browser's own slider jumps to the finger before anything is known of it.
export function byThumb(slider, begins = () => {}) {
  const rail = make("span", { className: "slide" }, slider);
  const tell = (name) => slider.dispatchEvent(new Event(name, { bubbles: true }));
  let grab = null;
  rail.addEventListener("pointerdown", (event) => {
    const low = Number(slider.min), range = Number(slider.max) - low, box = slider.getBoundingClientRect();
    const width = box.width - THUMB, at = (slider.valueAsNumber - low) / range;
    if (!event.isPrimary || event.button || slider.matches(":disabled")) return;
    if (Math.abs(event.clientX - box.left - THUMB / 2 - at * width) > GRAB) return;
    grab = { x: event.clientX, y: event.clientY, from: slider.valueAsNumber, scale: range / width, moves: event.pointerType === "mouse" };
    rail.setPointerCapture(event.pointerId);
    if (grab.moves) event.preventDefault();      // selects no text; a finger may still scroll
    slider.focus({ preventScroll: true });
    begins();
  });
  rail.addEventListener("pointermove", (event) => {
    if (!grab || slider.matches(":disabled")) return;
    const across = event.clientX - grab.x, along = event.clientY - grab.y;
    grab.moves ||= Math.abs(across) > SIDEWAYS && Math.abs(across) > 2 * Math.abs(along);
    if (!grab.moves) return;
    slider.value = grab.from + across * grab.scale;
    tell("input");
  });
  const ends = (back) => () => {
    if (grab?.moves && back) {
      slider.value = grab.from;
      tell("input");
    }
    if (grab?.moves) tell("change");
    grab = null;
  };
  rail.addEventListener("pointerup", ends(false));
  rail.addEventListener("pointercancel", ends(true));
  return rail;
}

// Choices side by side, one of them pressed.  No list that opens: while one is open, P chooses what begins with p and never
// reaches the page, and on a phone it covers Park.  Returns the element and what presses one of them.
export function choices(values, chosen) {
  const press = (value) => buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.value === value)));
  const buttons = values.map((value) => button(value, () => {
    press(value);
    chosen(value);
  }, { value }));
  const group = make("div", { className: "choice" }, ...buttons);
  group.setAttribute("role", "group");
  return [group, press];
}

// Keeps what is pinned (page.css) on the part of the page that a zoomed screen shows.
export function pin(header) {
  const seen = window.visualViewport;
  const place = () => {
    header.classList.toggle("zoomed", seen.scale > 1.01);
    for (const [name, value] of [["left", seen.offsetLeft], ["top", seen.offsetTop], ["width", seen.width]]) header.style.setProperty(`--seen-${name}`, `${value}px`);
    header.style.setProperty("--unzoom", String(1 / seen.scale));
  };
  for (const name of ["resize", "scroll"]) seen.addEventListener(name, place);
  new ResizeObserver(() => document.documentElement.style.setProperty("--head", `${header.offsetHeight}px`)).observe(header);
}
