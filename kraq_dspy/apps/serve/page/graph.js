// Draws a graph of at most a thousand nodes on a canvas: a layout by forces, to drag, zoom and click.

import { hue } from "./dom.js";

const REPULSION = 900;
const SPRING = 0.04;
const LENGTH = 55;
const GRAVITY = 0.012;
const COOLING = 0.985;
const COLD = 0.004;

export class Graph {
  constructor(canvas, { tell, open }) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.tell = tell;
    this.open = open;
    this.nodes = [];
    this.edges = [];
    this.view = { x: 0, y: 0, scale: 1 };
    this.heat = 0;
    this.hover = null;
    this.pointers = new Map();
    this.wanted = false;
    this.still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.controller = new AbortController();
  }

  start() {
    const { signal } = this.controller;
    const on = (target, name, work, options = {}) => target.addEventListener(name, work.bind(this), { signal, ...options });
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
    on(this.canvas, "pointerdown", this.down);
    on(this.canvas, "pointermove", this.move);
    on(this.canvas, "pointerup", this.up);
    on(this.canvas, "pointercancel", this.up);
    on(this.canvas, "pointerleave", () => { if (!this.pointers.size) this.point(null); });
    on(this.canvas, "wheel", this.wheel, { passive: false });
    on(this.canvas, "keydown", this.key);
    on(window, "kraq-theme", () => { this.colours = null; this.draw(); });
    on(matchMedia("(prefers-color-scheme: dark)"), "change", () => { this.colours = null; this.draw(); });
    this.resize();
  }

  stop() {
    this.controller.abort();
    if (this.observer) this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    this.nodes = [];
    this.heat = 0;
  }

  // Nodes that were there already stay where they are.
  show({ nodes, edges }) {
    const before = new Map(this.nodes.map((each) => [each.id, each]));
    const spread = 18 * Math.sqrt(nodes.length);
    this.nodes = nodes.map((each, place) => {
      const angle = place * 2.399963; // the golden angle: even, and the same every time
      const away = spread * Math.sqrt((place + 0.5) / nodes.length);
      const old = before.get(each.id);
      return { ...each, place, x: old ? old.x : away * Math.cos(angle), y: old ? old.y : away * Math.sin(angle), r: 3.5 + Math.min(9, 1.6 * Math.sqrt(each.degree)), hue: hue(each.type), near: new Set() };
    });
    const byId = new Map(this.nodes.map((each) => [each.id, each]));
    const seen = new Set();
    this.edges = [];
    for (const edge of edges) {
      const pair = [edge.source, edge.target].sort().join(" ");
      const [source, target] = [byId.get(edge.source), byId.get(edge.target)];
      if (source === target || seen.has(pair)) continue;
      seen.add(pair);
      source.near.add(target);
      target.near.add(source);
      this.edges.push({ source, target, from: source.place, to: target.place });
    }
    for (const each of this.edges) each.strength = SPRING / Math.sqrt(Math.min(each.source.near.size, each.target.near.size));
    this.x = Float64Array.from(this.nodes, (each) => each.x);
    this.y = Float64Array.from(this.nodes, (each) => each.y);
    this.vx = new Float64Array(nodes.length);
    this.vy = new Float64Array(nodes.length);
    this.heat = 1;
    const ticks = this.still ? 400 : this.nodes.length > 400 ? 40 : 90;
    for (let tick = 0; tick < ticks && this.heat > COLD; tick += 1) this.step();
    if (this.still) this.heat = 0;
    this.fit();
    this.run();
  }

  // One step of the layout: nodes push each other away, links pull, and a weak pull to the middle keeps it together.
  // Nodes far off push as one with the others of their square, so that a step takes far less than one of all pairs.
  step() {
    const { nodes, edges, heat, x, y, vx, vy } = this;
    const { count, columns, size, left, top, head, next, mass, cx, cy, filled } = this.squares();
    for (let i = 0; i < nodes.length; i += 1) {
      const column = Math.floor((x[i] - left) / size);
      const row = Math.floor((y[i] - top) / size);
      let fx = 0;
      let fy = 0;
      for (let place = 0; place < count; place += 1) {
        const square = filled[place];
        const away = Math.max(Math.abs((square % columns) - column), Math.abs(Math.floor(square / columns) - row));
        if (away > 1) {
          const dx = x[i] - cx[square];
          const dy = y[i] - cy[square];
          const push = mass[square] / (dx * dx + dy * dy);
          fx += dx * push;
          fy += dy * push;
          continue;
        }
        for (let j = head[square]; j >= 0; j = next[j]) {
          if (j === i) continue;
          let dx = x[i] - x[j];
          const dy = y[i] - y[j];
          let apart = dx * dx + dy * dy;
          if (apart < 1) { dx = i < j ? 1 : -1; apart = 1; }
          fx += dx / apart;
          fy += dy / apart;
        }
      }
      vx[i] += fx * REPULSION * heat;
      vy[i] += fy * REPULSION * heat;
    }
    for (const { from, to, strength } of edges) {
      const dx = x[to] - x[from];
      const dy = y[to] - y[from];
      const length = Math.sqrt(dx * dx + dy * dy) || 1;
      const pull = (strength * heat * (length - LENGTH)) / length;
      vx[from] += dx * pull; vy[from] += dy * pull;
      vx[to] -= dx * pull; vy[to] -= dy * pull;
    }
    const most = 24 * heat + 1;
    for (let i = 0; i < nodes.length; i += 1) {
      if (nodes[i] === this.held) { x[i] = nodes[i].x; y[i] = nodes[i].y; vx[i] = 0; vy[i] = 0; continue; }
      vx[i] -= x[i] * GRAVITY * heat;
      vy[i] -= y[i] * GRAVITY * heat;
      const speed = Math.sqrt(vx[i] * vx[i] + vy[i] * vy[i]);
      const share = speed > most ? most / speed : 1;
      x[i] += vx[i] * share; y[i] += vy[i] * share;
      vx[i] *= 0.55; vy[i] *= 0.55;
      nodes[i].x = x[i]; nodes[i].y = y[i];
    }
    this.heat *= COOLING;
  }

  // The plane in at most 16 by 16 squares: their nodes as linked lists, how many, and where their middle is.
  squares() {
    const { x, y } = this;
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < x.length; i += 1) {
      if (x[i] < left) left = x[i];
      if (x[i] > right) right = x[i];
      if (y[i] < top) top = y[i];
      if (y[i] > bottom) bottom = y[i];
    }
    const size = Math.max(40, (right - left) / 15, (bottom - top) / 15);
    const columns = Math.floor((right - left) / size) + 1;
    const all = columns * (Math.floor((bottom - top) / size) + 1);
    const [head, next] = [new Int32Array(all).fill(-1), new Int32Array(x.length)];
    const [mass, cx, cy] = [new Float64Array(all), new Float64Array(all), new Float64Array(all)];
    const filled = new Int32Array(all);
    let count = 0;
    for (let i = 0; i < x.length; i += 1) {
      const square = Math.floor((y[i] - top) / size) * columns + Math.floor((x[i] - left) / size);
      if (head[square] < 0) { filled[count] = square; count += 1; }
      next[i] = head[square];
      head[square] = i;
      mass[square] += 1; cx[square] += x[i]; cy[square] += y[i];
    }
    for (let place = 0; place < count; place += 1) { cx[filled[place]] /= mass[filled[place]]; cy[filled[place]] /= mass[filled[place]]; }
    return { count, columns, size, left, top, head, next, mass, cx, cy, filled };
  }

  run() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      if (this.heat > COLD) {
        this.step();
        if (!this.moved) this.fit(false);
        this.run();
      }
      this.draw();
    });
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.ratio = ratio;
    if (!this.moved) this.fit(false);
    this.draw();
  }

  fit(draw = true) {
    if (!this.nodes.length) return;
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { x, y } of this.nodes) {
      left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
    }
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const scale = Math.min(2.2, (width - 70) / (right - left + 20), (height - 50) / (bottom - top + 20));
    this.view = { x: (left + right) / 2, y: (top + bottom) / 2, scale: Math.max(0.05, scale) };
    if (draw) { this.moved = false; this.draw(); }
  }

  zoom(by, at = null) {
    const before = at && this.toGraph(at);
    this.view.scale = Math.min(8, Math.max(0.05, this.view.scale * by));
    if (at) {
      const after = this.toGraph(at);
      this.view.x += before.x - after.x;
      this.view.y += before.y - after.y;
    }
    this.moved = true;
    this.draw();
  }

  toGraph({ x, y }) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return { x: (x - width / 2) / this.view.scale + this.view.x, y: (y - height / 2) / this.view.scale + this.view.y };
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  nodeAt(place) {
    const { x, y } = this.toGraph(place);
    let best = null;
    let nearest = Infinity;
    for (const node of this.nodes) {
      const away = Math.hypot(node.x - x, node.y - y) * this.view.scale;
      if (away < nearest && away < node.r * Math.max(1, this.view.scale) + 7) { best = node; nearest = away; }
    }
    return best;
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    const place = this.at(event);
    this.pointers.set(event.pointerId, place);
    this.held = this.pointers.size === 1 ? this.nodeAt(place) : null;
    this.travelled = 0;
  }

  move(event) {
    const place = this.at(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) { this.point(this.nodeAt(place)); return; }
    const [dx, dy] = [place.x - before.x, place.y - before.y];
    this.travelled += Math.abs(dx) + Math.abs(dy);
    if (this.pointers.size === 2) {
      const [other] = [...this.pointers.entries()].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
      const apart = (each) => Math.hypot(each.x - other.x, each.y - other.y) || 1;
      this.zoom(apart(place) / apart(before), other);
    } else if (this.held) {
      this.held.x += dx / this.view.scale;
      this.held.y += dy / this.view.scale;
      this.moved = true;
      this.heat = Math.max(this.heat, this.still ? 0 : 0.12);
      this.run();
    } else {
      this.view.x -= dx / this.view.scale;
      this.view.y -= dy / this.view.scale;
      this.moved = true;
      this.draw();
    }
    this.pointers.set(event.pointerId, place);
  }

  up(event) {
    this.pointers.delete(event.pointerId);
    const node = this.held;
    this.held = null;
    if (event.type === "pointerup" && node && this.travelled < 5) this.open(node.id);
  }

  wheel(event) {
    if (!event.ctrlKey && document.activeElement !== this.canvas) return; // the page scrolls; a click on the graph takes the wheel
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY * 0.0016), this.at(event));
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (steps[event.key]) {
      const [x, y] = steps[event.key];
      this.view.x += (x * 40) / this.view.scale;
      this.view.y += (y * 40) / this.view.scale;
      this.moved = true;
      this.draw();
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  point(node) {
    if (node === this.hover) return;
    this.hover = node;
    this.canvas.style.cursor = node ? "pointer" : "grab";
    this.tell(node ? `${node.name} (${node.type || "entity"}, ${node.degree} links)` : "");
    this.draw();
  }

  draw() {
    if (!this.ratio || this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => { this.wanted = false; this.paint(); });
  }

  paint() {
    const { pen, canvas, view, nodes, edges, hover } = this;
    const colours = this.colours || (this.colours = colourSet());
    const { clientWidth: width, clientHeight: height } = canvas;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const place = (node) => [(node.x - view.x) * view.scale + width / 2, (node.y - view.y) * view.scale + height / 2];
    const lit = (node) => !hover || node === hover || hover.near.has(node);
    pen.lineWidth = 1;
    for (const strong of [false, true]) {
      pen.beginPath();
      for (const { source, target } of edges) {
        if ((hover === source || hover === target) !== strong) continue;
        pen.moveTo(...place(source));
        pen.lineTo(...place(target));
      }
      pen.strokeStyle = strong ? colours.strong : hover ? colours.faint : colours.line;
      pen.stroke();
    }
    const grow = Math.min(1.5, Math.max(0.6, Math.sqrt(view.scale)));
    for (const node of nodes) {
      const [x, y] = place(node);
      if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      pen.globalAlpha = lit(node) ? 1 : 0.18;
      pen.beginPath();
      pen.arc(x, y, node.r * grow, 0, 7);
      pen.fillStyle = node.inside ? colours.hues[node.hue] : colours.back;
      pen.fill();
      pen.lineWidth = 1.6;
      pen.strokeStyle = node.inside ? colours.back : colours.hues[node.hue];
      pen.stroke();
    }
    pen.globalAlpha = 1;
    this.label(place, grow, colours, lit, width, height);
  }

  // Names of what is best connected, as far as they do not cover each other.
  label(place, grow, colours, lit, width, height) {
    const { pen, hover } = this;
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    const taken = [];
    const order = [...this.nodes].sort((a, b) => (b === hover) - (a === hover) || lit(b) - lit(a) || b.inside - a.inside || b.degree - a.degree);
    let written = 0;
    for (const node of order) {
      if (written > 60 || (hover && !lit(node))) break;
      const [x, y] = place(node);
      const name = node.name.length > 28 ? `${node.name.slice(0, 27)}…` : node.name;
      const long = pen.measureText(name).width;
      const left = x + node.r * grow + 4 + long > width ? x - node.r * grow - 4 - long : x + node.r * grow + 4;
      if (left < 0 || y < 8 || y > height - 8 || left + long > width) continue;
      const box = [left - 2, y - 8, left + long + 2, y + 8];
      if (taken.some((each) => box[0] < each[2] && box[2] > each[0] && box[1] < each[3] && box[3] > each[1])) continue;
      taken.push(box);
      written += 1;
      pen.strokeStyle = colours.back;
      pen.strokeText(name, left, y);
      pen.fillStyle = colours.ink;
      pen.fillText(name, left, y);
    }
  }
}

function colourSet() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return { ink: value("--ink"), back: value("--panel"), line: value("--edge"), faint: value("--line"), strong: value("--accent"), hues: Array.from({ length: 8 }, (_, place) => value(`--hue${place}`)) };
}
