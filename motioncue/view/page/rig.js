// The platform and the car in space: x forward, y right, z down [m], as everywhere in motioncue.  WebGL keeps the depth, where there is one.

import { button } from "./elements.js";
import { color } from "./plots.js";

const CELL = 4;             // of the ground below the car [m]
const FLOOR_CELL = 0.5;     // of the floor below the platform [m]
const ARROW = 0.12;         // length of 1 m/s² [m]
const VIEWS = { reset: [2.05, 0.3], front: [0, 0.08], side: [Math.PI / 2, 0.08], top: [Math.PI, 1.5] };      // azimuth, elevation of the eye
const NUMBERS = 7;          // of a vertex: place, color, opacity
const LIGHT = [0.35, -0.5, -0.8];

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const sized = (a, size = 1) => {
  const length = Math.hypot(...a) || 1;
  return a.map((value) => (value * size) / length);
};

// Matrix of roll, pitch and yaw (z-y-x) that turns the body's axes into the world's.
function turned(roll, pitch, yaw) {
  const [sr, cr, sp, cp, sy, cy] = [Math.sin(roll), Math.cos(roll), Math.sin(pitch), Math.cos(pitch), Math.sin(yaw), Math.cos(yaw)];
  return [
    [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
    [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
    [-sp, cp * sr, cp * cr],
  ];
}
const times = (m, v) => m.map((row) => dot(row, v));

// The page's colors as numbers; the system's own, too.
const paints = new Map(), brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function paint(name) {
  const said = color(name);
  if (!paints.has(said)) {
    brush.fillStyle = said;
    brush.fillRect(0, 0, 1, 1);
    paints.set(said, [...brush.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((value) => value / 255));
  }
  return paints.get(said);
}

// What is drawn in one picture: surfaces, lit by where they face, and lines.
class Scene {
  constructor() {
    Object.assign(this, { surfaces: [], glass: [], lines: [] });
  }
  triangle(a, b, c, fill, opacity) {
    const facing = sized(cross(minus(b, a), minus(c, a))), lit = 0.72 + 0.28 * Math.abs(dot(facing, sized(LIGHT)));
    const shade = fill.map((value) => value * lit), into = opacity < 1 ? this.glass : this.surfaces;
    for (const point of [a, b, c]) into.push(...point, ...shade, opacity);
  }
  face(points, fill, opacity = 1) {
    for (let at = 2; at < points.length; at++) this.triangle(points[0], points[at - 1], points[at], paint(fill), opacity);
  }
  line(a, b, stroke, opacity = 1) {
    for (const point of [a, b]) this.lines.push(...point, ...paint(stroke), opacity);
  }
  loop(points, stroke, opacity) {
    points.forEach((point, at) => this.line(point, points[(at + 1) % points.length], stroke, opacity));
  }
  // A rod between two points, thinner at its end if `narrow` says so.
  rod(a, b, radius, fill, narrow = 1, sides = 10) {
    const along = minus(b, a);
    if (!(Math.hypot(...along) > 1e-4)) return;
    const right = sized(cross(along, Math.abs(along[2]) > 0.9 * Math.hypot(...along) ? [1, 0, 0] : [0, 0, 1])), up = sized(cross(right, along));
    const ring = (center, size) => Array.from({ length: sides }, (_, at) => {
      const angle = (2 * Math.PI * at) / sides;
      return add(center, add(right.map((value) => value * size * Math.cos(angle)), up.map((value) => value * size * Math.sin(angle))));
    });
    const [low, high] = [ring(a, radius), ring(b, radius * narrow)];
    for (let at = 0; at < sides; at++) this.face([low[at], low[(at + 1) % sides], high[(at + 1) % sides], high[at]], fill);
    this.face(low, fill);
    this.face(high, fill);
  }
  ball(center, radius, fill) {
    const point = (i, j) => {
      const [a, b] = [(Math.PI * i) / 6, (Math.PI * j) / 5];
      return add(center, [radius * Math.sin(a) * Math.cos(b), radius * Math.sin(a) * Math.sin(b), radius * Math.cos(a)]);
    };
    for (let i = 0; i < 6; i++) for (let j = 0; j < 10; j++) this.face([point(i, j), point(i + 1, j), point(i + 1, j + 1), point(i, j + 1)], fill);
  }
  arrow(from, to, fill, radius) {
    const along = minus(to, from), length = Math.hypot(...along);
    if (!(length > 0.03)) return;
    const head = Math.min(0.6 * length, 5 * radius), neck = add(from, along.map((value) => value * (1 - head / length)));
    this.rod(from, neck, radius, fill);
    this.rod(neck, to, 2.4 * radius, fill, 0.02);
  }
  // A box of a body: its least and greatest corner in the body's axes, placed by `put`; `top` narrows its upper side.
  box(put, low, high, fill, stroke, top = 1) {
    const middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
    const ring = (z, narrow) => [[0, 0], [1, 0], [1, 1], [0, 1]].map(([i, j]) => put([
      middle[0] + ((i ? high[0] : low[0]) - middle[0]) * narrow, middle[1] + ((j ? high[1] : low[1]) - middle[1]) * narrow, z]));
    const [up, down] = [ring(low[2], top), ring(high[2], 1)];      // z is down
    this.face(up, fill);
    this.face(down, fill);
    for (let at = 0; at < 4; at++) this.face([up[at], up[(at + 1) % 4], down[(at + 1) % 4], down[at]], fill);
    if (!stroke) return;
    this.loop(up, stroke);
    this.loop(down, stroke);
    for (let at = 0; at < 4; at++) this.line(up[at], down[at], stroke);
  }
}

const VERTEX = `attribute vec3 place; attribute vec4 paint; uniform mat4 seen; varying vec4 color;
void main() { gl_Position = seen * vec4(place, 1.0); color = paint; }`;
const FRAGMENT = `precision mediump float; varying vec4 color; void main() { gl_FragColor = vec4(color.rgb * color.a, color.a); }`;

// The rows of the matrix by which a camera's eye sees a place, for the graphics processor and without one.
function seenBy(width, height, { azimuth, elevation }, target, distance) {
  const near = 0.05 * distance, far = 12 * distance;
  const [sa, ca, se, ce] = [Math.sin(azimuth), Math.cos(azimuth), Math.sin(elevation), Math.cos(elevation)];
  const eye = add(target, [distance * ca * ce, distance * sa * ce, -distance * se]);
  const axes = [[sa, -ca, 0], [-ca * se, -sa * se, -ce], [-ca * ce, -sa * ce, se]];      // right, up, ahead
  const focal = 2.3 * Math.min(1, (1.25 * height) / width), wide = [focal, (focal * width) / height];
  return [
    [...axes[0].map((value) => value * wide[0]), -dot(axes[0], eye) * wide[0]],
    [...axes[1].map((value) => value * wide[1]), -dot(axes[1], eye) * wide[1]],
    [...axes[2].map((value) => (value * (far + near)) / (far - near)), (-dot(axes[2], eye) * (far + near) - 2 * far * near) / (far - near)],
    [...axes[2], -dot(axes[2], eye)],
  ];
}

class Painter {
  static on(canvas) {
    const gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true, powerPreference: "low-power" });
    return gl ? new Painter(gl) : new Brush(canvas.getContext("2d"));
  }
  constructor(gl) {
    this.gl = gl;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.seen = gl.getUniformLocation(program, "seen");
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    for (const [name, many, from] of [["place", 3, 0], ["paint", 4, 12]]) {
      const at = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, many, gl.FLOAT, false, 4 * NUMBERS, from);
    }
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(1, 2);
    gl.clearColor(0, 0, 0, 0);
  }
  clear(canvas) {
    const { gl } = this, ratio = Math.min(2, window.devicePixelRatio || 1);
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  }
  // Draws a scene into a part of the canvas, as the eye of a camera sees it.
  draw({ surfaces, glass, lines }, [left, width, height], camera, target, distance) {
    const { gl } = this, rows = seenBy(width, height, camera, target, distance);
    gl.viewport(left, 0, width, height);
    gl.uniformMatrix4fv(this.seen, false, [0, 1, 2, 3].flatMap((column) => rows.map((row) => row[column])));
    for (const [numbers, kind] of [[surfaces, gl.TRIANGLES], [lines, gl.LINES], [glass, gl.TRIANGLES]]) {
      gl.depthMask(numbers !== glass);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STREAM_DRAW);
      gl.drawArrays(kind, 0, numbers.length / NUMBERS);
    }
    gl.depthMask(true);
  }
}

// Without a graphics processor: from far to near, which is right but where large surfaces cross.
class Brush {
  constructor(c) { this.c = c; }
  clear(canvas) {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    this.c.clearRect(0, 0, width, height);
  }
  draw({ surfaces, glass, lines }, [left, width, height], camera, target, distance) {
    const { c } = this, rows = seenBy(width, height, camera, target, distance), items = [];
    for (const [numbers, corners] of [[surfaces, 3], [glass, 3], [lines, 2]])
      for (let at = 0; at < numbers.length; at += corners * NUMBERS) {
        const points = [];
        let depth = 0;
        for (let corner = at; corner < at + corners * NUMBERS; corner += NUMBERS) {
          const [x, y, , w] = rows.map((row) => row[0] * numbers[corner] + row[1] * numbers[corner + 1] + row[2] * numbers[corner + 2] + row[3]);
          depth += w / corners;
          points.push([left + (0.5 + x / w / 2) * width, (0.5 - y / w / 2) * height, w]);
        }
        if (points.every((point) => point[2] > 0.1)) items.push([depth - (corners === 2 ? 0.01 : 0), points, `rgb(${numbers.slice(at + 3, at + 6).map((value) => Math.round(255 * value))})`, numbers[at + 6]]);
      }
    c.save();
    c.beginPath();
    c.rect(left, 0, width, height);
    c.clip();
    for (const [, points, fill, opacity] of items.sort((a, b) => b[0] - a[0])) {
      c.globalAlpha = opacity;
      c.fillStyle = c.strokeStyle = fill;
      c.beginPath();
      for (const [x, y] of points) c.lineTo(x, y);
      if (points.length > 2) c.fill();
      c.stroke();
    }
    c.restore();
  }
}

const useOf = (used) => (!(Math.abs(used) <= 0.95) ? "bad" : Math.abs(used) > 0.75 ? "warn" : "good");

export class Rig {
  constructor(canvas, tools) {
    this.canvas = canvas;
    this.painter = Painter.on(canvas);
    this.works = true;
    this.look("reset");
    this.turning();
    for (const [text, title, act] of [
      ...Object.keys(VIEWS).map((name) => [name, `${name} view`, () => this.look(name)]), ["+", "nearer", () => this.near(1 / 1.2)], ["−", "farther", () => this.near(1.2)]]) {
      const tool = button(text, act, { className: "small", title });
      if (text.length === 1) tool.setAttribute("aria-label", title);
      tools.append(tool);
    }
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.works = false;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.painter = Painter.on(canvas);
      this.works = true;
    });
  }

  // Shows another platform.
  place(scene, columns) {
    Object.assign(this, { scene, columns });
    this.ground = { north: 0, east: 0, time: NaN };
    const reach = Math.max(0.7, ...scene.carriers.flatMap(({ top, base }) => [Math.hypot(top[0], top[1]), Math.hypot(base[0], base[1])]));
    const tall = scene.floor - scene.frame + 1.3;
    this.middle = [0, 0, (scene.floor + scene.frame - 1.2) / 2];
    this.distance = 1.3 * Math.max(1.7 * reach, tall) + 0.4 * reach;
    this.reach = reach;
  }

  look(name) {
    const [azimuth, elevation] = VIEWS[name];
    this.camera = { azimuth, elevation };
    if (name === "reset") this.zoom = 1;
  }
  near(factor) { this.zoom = Math.max(0.3, Math.min(3, this.zoom * factor)); }

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
    this.canvas.addEventListener("dblclick", () => this.look("reset"));
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;            // without it, the wheel scrolls the page
      event.preventDefault();
      this.near(1.001 ** event.deltaY);
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      const turn = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (turn) this.turn(...turn);
      else if (event.key === "+") this.near(1 / 1.2);
      else if (event.key === "-") this.near(1.2);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
  turn(azimuth, elevation) {
    this.camera.azimuth -= azimuth;
    this.camera.elevation = Math.max(0.02, Math.min(1.5, this.camera.elevation + elevation));
  }

  // Draws a frame, or the platform at neutral before the first one; `ghost` is the same moment with other settings.
  draw(row, still, rests, ghost = null) {
    if (!this.works) return;
    this.painter.clear(this.canvas);
    const { width, height } = this.canvas, half = Math.floor(width / 2), upright = height > 1.2 * width;
    const read = (from) => (name, raw) => (from && name in this.columns ? from[this.columns[name]] : 0) || (raw && from ? from[this.columns[name]] : 0);
    const get = read(row), platform = new Scene();
    this.rests = rests;
    this.platform(platform, get, ghost && read(ghost));
    const car = new Scene();
    this.car(car, get, still);
    this.painter.draw(platform, [0, half, height], this.camera, this.middle, this.distance * this.zoom * (upright ? 1.3 : 1));
    this.painter.draw(car, [half, width - half, height], this.camera, [0, 0, -0.6], 6.6 * this.zoom);
  }

  poseOf(get) {
    const m = turned(get("pose.roll"), get("pose.pitch"), get("pose.yaw"));
    const moved = [get("pose.surge_displacement"), get("pose.sway_displacement"), -get("pose.heave_displacement")];
    return (point) => add(times(m, point), moved);
  }

  // Where a sled and a turntable take what stands on them, and how far it is turned.
  tableOf(get) {
    const at = (channel) => (channel in this.scene.tables ? get(`at.${this.scene.tables[channel]}`) : 0);
    const yaw = at("yaw"), m = turned(0, 0, yaw), moved = [at("surge_displacement"), at("sway_displacement"), 0];
    return [(point) => add(times(m, point), moved), yaw];
  }

  // The frame's outline: around its joints, or a board where there are fewer than three.
  outline() {
    const { scene } = this, tops = [...scene.carriers.map(({ top }) => top)];
    if (tops.length === 2) tops.push([0, 0, scene.frame]);      // the joint in front
    if (tops.length > 2) return tops.sort((a, b) => Math.atan2(a[1], a[0]) - Math.atan2(b[1], b[0]));
    return [[-0.55, -0.35], [0.55, -0.35], [0.55, 0.35], [-0.55, 0.35]].map(([x, y]) => [x, y, scene.frame]);
  }

  platform(stage, get, other) {
    const { scene } = this, put = this.poseOf(get), around = this.outline();
    const far = FLOOR_CELL * Math.ceil(1.35 * this.reach / FLOOR_CELL);
    for (let at = -far; at <= far + 1e-9; at += FLOOR_CELL) {
      stage.line([at, -far, scene.floor], [at, far, scene.floor], "line");
      stage.line([-far, at, scene.floor], [far, at, scene.floor], "line");
    }
    const [under, yaw] = this.tableOf(get);
    scene.carriers.forEach((carrier, number) => {
      const { base, azimuth } = carrier, moved = { base: under(base), azimuth: azimuth === undefined ? azimuth : azimuth + yaw };
      this.carrier(stage, { ...carrier, ...moved }, put, get, scene.names[number]);
    });
    if (scene.carriers.length === 2) {
      stage.rod([0, 0, scene.floor], [0, 0, scene.frame + 0.05], 0.05, "quiet");
      stage.ball(put([0, 0, scene.frame]), 0.06, "ink");
    }
    const lower = around.map(([x, y, z]) => put([x, y, z + 0.03])), upper = around.map(([x, y, z]) => put([x, y, z - 0.03]));
    stage.face(upper, "line");
    stage.face(lower, "line");
    upper.forEach((point, at) => stage.face([point, upper[(at + 1) % upper.length], lower[(at + 1) % upper.length], lower[at]], "line"));
    stage.loop(upper, "quiet");
    stage.loop(around, "quiet", 0.5);                          // where it is at neutral
    if (other) {
      const ghost = this.poseOf(other), there = around.map(ghost);
      stage.face(there, "cue", 0.35);
      stage.loop(there, "cue");
      stage.box((point) => ghost(point), [-0.3, -0.25, scene.frame - 1], [-0.2, 0.25, scene.frame - 0.3], "cue");
    }
    this.workspace(stage);
    const head = this.seat(stage, put, scene.frame);
    const force = ["surge", "sway", "heave"].map((name) => get(`cue.${name}`) * ARROW);
    stage.arrow(put(add(head, [0, 0, -0.2])), put(add(head, [force[0], force[1], -0.2 - force[2]])), "cue", 0.025);
    for (const axis of [[0.12, 0, 0], [0, 0.12, 0], [0, 0, 0.12]]) stage.line(put(axis.map((value) => -value)), put(axis), "ink");      // the platform's reference
  }

  // How far the reference goes along each axis from neutral: a line with a bar at each end.
  workspace(stage) {
    const axes = { surge_displacement: [[1, 0, 0], [0, 1, 0]], sway_displacement: [[0, 1, 0], [1, 0, 0]], heave_displacement: [[0, 0, -1], [0, 1, 0]] };
    for (const [name, [along, across]] of Object.entries(axes)) {
      const ends = (this.scene.reach[name] ?? []).map((far) => along.map((value) => value * far));
      if (ends.length) stage.line(...ends, "quiet");
      for (const end of ends) stage.line(...[-0.06, 0.06].map((wide) => add(end, across.map((value) => value * wide))), "quiet");
    }
  }

  carrier(stage, { top, base, azimuth, crank }, put, get, name) {
    const fill = this.rests ? "quiet" : useOf(get(`used.${name}`, true)), end = put(top);
    if (azimuth !== undefined) {
      const angle = get(`at.${name}`), along = crank * Math.cos(angle);
      const tip = add(base, [along * Math.cos(azimuth), along * Math.sin(azimuth), -crank * Math.sin(angle)]);
      stage.rod(base, tip, 0.045, fill);
      stage.rod(tip, end, 0.022, "quiet");
      stage.ball(tip, 0.05, "ink");
    } else {
      const middle = add(base, end).map((value) => value / 2);
      stage.rod(base, middle, 0.055, "quiet");
      stage.rod(middle, end, 0.032, fill);
    }
    stage.ball(base, 0.065, "ink");
    stage.ball(end, 0.055, "ink");
  }

  // The seat stands on the frame; where the reference is as high as a head, the head is there.  Returns the head's place.
  seat(stage, put, z) {
    const head = z > 0.5 && z < 1.6 ? [0, 0, 0] : [-0.12, 0, z - 1.1], x = head[0] + 0.12, hip = z - 0.1;
    const lift = Math.min(0, head[2] + 1.1 - z);                // of seat and occupant above the frame
    const at = (point) => put(add(point, [x, 0, lift]));
    if (lift < 0) stage.rod(put([x, 0, z]), at([0, 0, hip - 0.12]), 0.06, "quiet");
    stage.box(at, [-0.25, -0.25, z - 0.35], [0.25, 0.25, z - 0.22], "soft", "quiet");
    stage.box(at, [-0.36, -0.25, z - 1.0], [-0.25, 0.25, z - 0.28], "soft", "quiet");
    stage.box(at, [-0.24, -0.19, z - 0.92], [-0.02, 0.19, z - 0.36], "car", "ink", 0.8);
    stage.box(at, [-0.1, -0.16, z - 0.48], [0.38, 0.16, z - 0.36], "car", "ink");
    stage.ball(put(head), 0.115, "felt");
    return head;
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
    for (const x of [-1.35, 1.3]) for (const side of [-1, 1]) {
      stage.rod(put([x, side * 0.7, -0.32]), put([x, side * 0.93, -0.32]), 0.32, "quiet", 1, 18);
      stage.rod(put([x, side * 0.9, -0.32]), put([x, side * 0.94, -0.32]), 0.16, "line", 1, 12);
    }
    stage.box(put, [-2.1, -0.86, -0.85], [2.1, 0.86, -0.28], "car", "ink", 0.97);
    stage.box(put, [-1.6, -0.78, -1.4], [0.7, 0.78, -0.85], "soft", "ink", 0.72);
    const roof = [-0.2, 0, -1.55];
    const force = ["surge", "sway", "heave"].map((name) => (get(`felt.${name}`) || get(`car.${name}`)) * 2.5 * ARROW);
    stage.arrow(put(roof), put(add(roof, [force[0], force[1], -force[2]])), "felt", 0.05);
  }

  // The ground's lines pass below the car as fast as it goes.
  road(stage, heading) {
    const [s, co] = [Math.sin(heading), Math.cos(heading)], { north, east } = this.ground, far = 3 * CELL;
    const seen = (n, e) => [co * n + s * e, -s * n + co * e, 0];
    for (let k = -3; k <= 3; k++) {
      const n = k * CELL - (((north % CELL) + CELL) % CELL) + CELL / 2, e = k * CELL - (((east % CELL) + CELL) % CELL) + CELL / 2;
      stage.line(seen(n, -far), seen(n, far), "line");
      stage.line(seen(-far, e), seen(far, e), "line");
    }
  }
}
