// The frames that the page has seen, in a memory of fixed size.

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
