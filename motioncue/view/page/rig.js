// The platform and the car in space: x forward, y right, z down [m], as everywhere in motioncue.

import { color, fitted } from "./plots.js";

const CELL = 4;             // of the ground below the car [m]
const ARROW = 0.12;         // length of 1 m/s² [m]

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];

// Matrix of roll, pitch and yaw (z-y-x) that turns the body's axes into the world's.
function turned(roll, pitch, yaw) {
  const [sr, cr, sp, cp, sy, cy] = [Math.sin(roll), Math.cos(roll), Math.sin(pitch), Math.cos(pitch), Math.sin(yaw), Math.cos(yaw)];
  return [
    [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
    [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
    [-sp, cp * sr, cp * cr],
  ];
}
const times = (m, v) => m.map((row) => row[0] * v[0] + row[1] * v[1] + row[2] * v[2]);

// Projects points to half of a canvas, and draws what it was given from far to near.
class Stage {
  constructor(c, left, width, height, camera, target, distance) {
    Object.assign(this, { c, left, width, height, items: [] });
    this.middle = [left + width / 2, height / 2];
    this.focal = Math.min(width, height * 1.25) * 1.15;
    const [sa, ca, se, ce] = [Math.sin(camera.azimuth), Math.cos(camera.azimuth), Math.sin(camera.elevation), Math.cos(camera.elevation)];
    this.eye = add(target, [distance * ca * ce, distance * sa * ce, -distance * se]);
    this.axes = [[sa, -ca, 0], [ca * se, sa * se, ce], [-ca * ce, -sa * ce, se]];   // right, down, ahead
  }
  seen(point) {
    const from = add(point, this.eye.map((value) => -value));
    const [right, down, ahead] = this.axes.map((axis) => axis[0] * from[0] + axis[1] * from[1] + axis[2] * from[2]);
    const near = Math.max(0.1, ahead);
    return [this.middle[0] + (this.focal * right) / near, this.middle[1] + (this.focal * down) / near, ahead];
  }
  line(a, b, stroke, width = 1, alpha = 1, lift = 0) {
    const [p, q] = [this.seen(a), this.seen(b)];
    if (p[2] < 0.2 || q[2] < 0.2) return;
    this.items.push([(p[2] + q[2]) / 2 - lift, () => this.path([p, q], null, stroke, width, alpha)]);
  }
  face(points, fill, stroke, alpha = 1) {
    const seen = points.map((point) => this.seen(point));
    if (seen.some((point) => point[2] < 0.2)) return;
    const depth = seen.reduce((sum, point) => sum + point[2], 0) / seen.length;
    this.items.push([depth, () => this.path(seen, fill, stroke, 1, alpha)]);
  }
  ball(center, radius, fill, stroke) {
    const at = this.seen(center);
    this.items.push([at[2] - radius, () => {
      const { c } = this;
      c.beginPath();
      c.arc(at[0], at[1], (this.focal * radius) / at[2], 0, 7);
      c.fillStyle = fill;
      c.fill();
      c.strokeStyle = stroke;
      c.stroke();
    }]);
  }
  // A box of a body: its least and greatest corner in the body's axes, placed by `put`; `top` narrows its upper side.
  box(put, low, high, fill, stroke, top = 1) {
    const corner = (i, j, k) => {
      const middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
      const narrow = k ? 1 : top;           // k = 0 is the upper side, because z is down
      const at = [i ? high[0] : low[0], j ? high[1] : low[1]].map((value, axis) => middle[axis] + (value - middle[axis]) * narrow);
      return put([...at, k ? high[2] : low[2]]);
    };
    const sides = [
      [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]],
      [[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]], [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1]],
      [[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 1]], [[0, 1, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]],
    ];
    const center = put([0, 1, 2].map((axis) => (low[axis] + high[axis]) / 2));
    for (const side of sides) {
      const points = side.map((at) => corner(...at));
      if (this.faces(points, center)) this.face(points, fill, stroke);
    }
  }
  // Whether a side of a body with this center is turned towards the eye.
  faces([a, b, , d], center) {
    const minus = (p, q) => p.map((value, axis) => value - q[axis]);
    const dot = (p, q) => p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
    const [p, q] = [minus(b, a), minus(d, a)];
    const normal = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]];
    return dot(normal, minus(a, center)) * dot(normal, minus(this.eye, a)) > 0;
  }
  arrow(from, to, stroke, size = 0.045) {
    const length = Math.hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]);
    if (!(length > 0.03)) return;
    this.line(from, to, stroke, 3, 1, 3);
    this.ball(to, size, stroke, stroke);
  }
  path(points, fill, stroke, width, alpha) {
    const { c } = this;
    c.globalAlpha = alpha;
    c.beginPath();
    points.forEach((point, index) => (index ? c.lineTo(point[0], point[1]) : c.moveTo(point[0], point[1])));
    if (fill) {
      c.closePath();
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.lineCap = "round";
      c.stroke();
    }
    c.globalAlpha = c.lineWidth = 1;
  }
  draw() {
    const { c, left, width, height } = this;
    c.save();
    c.beginPath();
    c.rect(left, 0, width, height);
    c.clip();
    this.items.sort((a, b) => b[0] - a[0]).forEach((item) => item[1]());
    c.restore();
  }
}

const useColor = (used) => color(!(Math.abs(used) <= 0.95) ? "bad" : Math.abs(used) > 0.75 ? "warn" : "good");

export class Rig {
  constructor(canvas) {
    this.canvas = canvas;
    this.camera = { azimuth: 2.05, elevation: 0.3 };
    this.turning();
  }

  // Shows another platform.
  place(scene, columns) {
    Object.assign(this, { scene, columns });
    this.ground = { north: 0, east: 0, time: NaN };
    const reach = Math.max(0.7, ...scene.carriers.flatMap(({ top, base }) => [Math.hypot(top[0], top[1]), Math.hypot(base[0], base[1])]));
    const tall = scene.floor - scene.frame + 1.5;
    this.middle = [0, 0, (scene.floor + scene.frame - 1.3) / 2];
    this.distance = 1.35 * Math.max(2 * reach, tall) + 0.6 * reach;
  }

  turning() {
    let from = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      from = event;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      this.turn((event.clientX - from.clientX) * 0.01, (event.clientY - from.clientY) * 0.01);
      from = event;
    });
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, () => (from = null));
    this.canvas.addEventListener("keydown", (event) => {
      const turn = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (!turn) return;
      this.turn(...turn);
      event.preventDefault();
      event.stopPropagation();
    });
  }
  turn(azimuth, elevation) {
    this.camera.azimuth -= azimuth;
    this.camera.elevation = Math.max(0.05, Math.min(1.5, this.camera.elevation + elevation));
  }

  // Draws a frame, or the platform at neutral before the first one.
  draw(row, still, rests) {
    this.rests = rests;
    const [c, width, height] = fitted(this.canvas);
    const get = (name, raw) => (row && name in this.columns ? row[this.columns[name]] : 0) || (raw && row ? row[this.columns[name]] : 0);
    const platform = new Stage(c, 0, width / 2, height, this.camera, this.middle, this.distance);
    this.platform(platform, get);
    platform.draw();
    const car = new Stage(c, width / 2, width / 2, height, this.camera, [0, 0, -0.5], 9.5);
    this.car(car, get, still);
    car.draw();
    c.strokeStyle = color("line");
    c.beginPath();
    c.moveTo(width / 2, 10);
    c.lineTo(width / 2, height - 10);
    c.stroke();
  }

  platform(stage, get) {
    const { scene } = this;
    const m = turned(get("pose.roll"), get("pose.pitch"), get("pose.yaw"));
    const moved = [get("pose.surge_displacement"), get("pose.sway_displacement"), -get("pose.heave_displacement")];
    const put = (point) => add(times(m, point), moved);
    const ground = Math.max(1.5, this.distance / 3);
    for (let at = -3; at <= 3; at++)
      for (const side of [0, 1]) {
        const ends = [-1, 1].map((sign) => (side ? [(at * ground) / 3, sign * ground, scene.floor] : [sign * ground, (at * ground) / 3, scene.floor]));
        stage.line(...ends, color("line"), 1, 1, -5);
      }
    scene.carriers.forEach((carrier, number) => this.carrier(stage, carrier, put, get, scene.names[number]));
    const tops = scene.carriers.map(({ top }) => top);
    const z = scene.frame;
    if (tops.length > 2) {
      const around = [...tops].sort((a, b) => Math.atan2(a[1], a[0]) - Math.atan2(b[1], b[0]));
      stage.face(around.map(put), color("soft"), color("quiet"), 0.92);
    } else stage.box(put, [-0.55, -0.35, z - 0.04], [0.55, 0.35, z + 0.04], color("soft"), color("quiet"));
    this.seat(stage, put, z);
    const head = [-0.12, 0, z - 1.2];
    const force = ["surge", "sway", "heave"].map((name) => get(`cue.${name}`) * ARROW);
    stage.arrow(put(head), put(add(head, [force[0], force[1], -force[2]])), color("cue"));
  }

  carrier(stage, { top, base, azimuth, crank }, put, get, name) {
    const stroke = this.rests ? color("quiet") : useColor(get(`used.${name}`, true));
    const end = put(top);
    if (azimuth !== undefined) {
      const angle = get(`at.${name}`);
      const along = crank * Math.cos(angle);
      const tip = add(base, [along * Math.cos(azimuth), along * Math.sin(azimuth), -crank * Math.sin(angle)]);
      stage.line(base, tip, stroke, 6);
      stage.line(tip, end, color("quiet"), 2.5);
    } else {
      const middle = add(base, end).map((value) => value / 2);
      stage.line(base, middle, color("quiet"), 7);
      stage.line(middle, end, stroke, 4);
    }
    stage.ball(base, 0.035, color("card"), color("quiet"));
    stage.ball(end, 0.03, color("card"), color("quiet"));
  }

  seat(stage, put, z) {
    const [fill, stroke] = [color("line"), color("quiet")];
    stage.box(put, [-0.25, -0.25, z - 0.35], [0.25, 0.25, z - 0.22], fill, stroke);
    stage.box(put, [-0.36, -0.25, z - 1.0], [-0.25, 0.25, z - 0.28], fill, stroke);
    stage.box(put, [-0.24, -0.19, z - 0.95], [-0.02, 0.19, z - 0.36], color("car"), stroke, 0.8);
    stage.box(put, [-0.1, -0.16, z - 0.48], [0.38, 0.16, z - 0.36], color("car"), stroke);
    stage.ball(put([-0.12, 0, z - 1.1]), 0.115, color("cue"), stroke);
  }

  car(stage, get, still) {
    const heading = get("car.yaw"), time = get("time"), ground = this.ground;
    const passed = Math.min(0.1, Math.max(0, time - ground.time || 0));
    ground.time = time;
    if (!still) {
      ground.north += get("speed") * Math.cos(heading) * passed;
      ground.east += get("speed") * Math.sin(heading) * passed;
    }
    this.road(stage, heading);
    const m = turned(get("car.roll"), get("car.pitch"), 0);
    const put = (point) => add(times(m, add(point, [0, 0, 0.5])), [0, 0, -0.5]);
    const dark = color("quiet"), fill = color("car");
    for (const x of [-1.35, 1.3]) for (const y of [-0.92, 0.72]) stage.box(put, [x - 0.32, y, -0.64], [x + 0.32, y + 0.2, 0], dark, color("ink"));
    stage.box(put, [-2.1, -0.86, -0.85], [2.1, 0.86, -0.28], fill, color("ink"), 0.97);
    stage.box(put, [-1.6, -0.78, -1.4], [0.7, 0.78, -0.85], color("soft"), color("ink"), 0.72);
    const roof = [-0.2, 0, -1.55];
    const force = ["surge", "sway", "heave"].map((name) => (get(`felt.${name}`) || get(`car.${name}`)) * 2.5 * ARROW);
    stage.arrow(put(roof), put(add(roof, [force[0], force[1], -force[2]])), color("felt"), 0.09);
  }

  // The ground's lines pass below the car as fast as it goes.
  road(stage, heading) {
    const [s, co] = [Math.sin(heading), Math.cos(heading)];
    const { north, east } = this.ground;
    const far = 3 * CELL;
    const seen = (n, e) => [co * n + s * e, -s * n + co * e, 0];
    for (let k = -3; k <= 3; k++) {
      const n = k * CELL - (((north % CELL) + CELL) % CELL) + CELL / 2, e = k * CELL - (((east % CELL) + CELL) % CELL) + CELL / 2;
      stage.line(seen(n, -far), seen(n, far), color("line"), 1, 1, -9);
      stage.line(seen(-far, e), seen(far, e), color("line"), 1, 1, -9);
    }
  }
}
