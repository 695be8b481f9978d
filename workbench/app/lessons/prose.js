// Prose that carries a figure: words that light parts of it while pointed at or focused, controls within sentences.
//
// The chart is Plotly's and stays as it is. What is not meant is dimmed by a style of its elements, which carry
// their trace (d3 keeps it with them), so nothing is drawn anew.

const DIM = "0.12";
const STEP = 60; // pixels: a window's size is told in such steps, so that a class shares its figures
const WAIT = 250; // ms after the last move of a slider or a window

const element = (kind, names = {}, words = "") => {
  const made = Object.assign(document.createElement(kind), names);
  if (words) made.textContent = words;
  return made;
};

// a panel's number by the name of its axis: x, x2, x3, ...
const panelOf = (trace) => Number((trace.xaxis || "x").slice(1) || 1);

class Prose {
  constructor() {
    this.text = "";
    this.sent = {}; // control -> place that was told and has not come back yet
    this.lit = null; // [element, its opacity before]
    this.pinned = null; // the words that were pressed
    this.onResize = () => {
      clearTimeout(this.resized);
      this.resized = setTimeout(() => this.tellWindow(), WAIT);
    };
  }

  mount(root, data, tell) {
    this.tell = tell;
    this.data = data;
    this.root = root.querySelector(".prose");
    this.said = root.querySelector(".said");
    const text = JSON.stringify([data.rows, data.list]);
    if (text !== this.text || !this.root.firstChild) this.build();
    this.text = text;
    this.values();
    if (data.window) window.addEventListener("resize", this.onResize);
    // for what is pinned above the text: the page's own colour is no variable outside of components
    const app = document.querySelector("[data-testid=stApp]");
    if (app) document.documentElement.style.setProperty("--workbench-ground", getComputedStyle(app).backgroundColor);
    this.tellWindow();
  }

  unmount() {
    window.removeEventListener("resize", this.onResize);
    this.dark();
  }

  tellWindow() {
    if (!this.data.window) return;
    const size = [window.innerWidth, window.innerHeight].map((n) => Math.floor(n / STEP) * STEP);
    const known = this.told || this.data.window;
    if (size[0] === known[0] && size[1] === known[1]) return;
    this.told = size;
    this.tell({ window: size });
  }

  // ------------------------------------------------------------------------------------- the text

  build() {
    this.fields = {};
    const rows = this.data.rows.map((runs) => {
      const row = element(this.data.list ? "li" : "p");
      row.append(...runs.map((run) => this.run(run)));
      return row;
    });
    if (this.data.list) {
      const list = element("ul");
      list.append(...rows);
      this.root.replaceChildren(list);
    } else this.root.replaceChildren(...rows);
  }

  run({ kind, words, part }) {
    if (kind === "text") return document.createTextNode(words);
    if (kind === "term") return element("em", {}, words);
    if (kind === "control") return this.control(words);
    // no button, which would not break into lines
    const link = element("span", { className: "part", tabIndex: 0 }, words);
    link.setAttribute("role", "button");
    link.setAttribute("aria-pressed", "false");
    link.title = "Shows it in the figure";
    link.addEventListener("pointerenter", () => this.light(part));
    link.addEventListener("pointerleave", () => this.leave());
    link.addEventListener("focus", () => link.matches(":focus-visible") && this.light(part));
    link.addEventListener("blur", () => this.leave());
    link.addEventListener("click", () => this.pin(link, part, words));
    link.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.pin(link, part, words);
    });
    return link;
  }

  control(name) {
    const slot = this.data.slots[name];
    if (!slot) return document.createTextNode(name);
    const place = element("span", { className: "control" });
    const field = element(slot.slider ? "input" : "select", { name });
    field.setAttribute("aria-label", slot.label);
    if (slot.slider) {
      Object.assign(field, { type: "range", min: 0, max: slot.options.length - 1, step: 1 });
      const value = element("output");
      place.append(field, value);
      // as wide as its widest number, so that the sentence stays still
      const widest = Math.max(...slot.options.map((one) => one.length));
      if (widest < 6) value.style.minWidth = `${0.53 * widest}em`;
      this.fields[name] = { field, value };
      field.addEventListener("input", () => {
        this.written(name, Number(field.value));
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.send(name, Number(field.value)), WAIT);
      });
      field.addEventListener("change", () => {
        clearTimeout(this.waiting);
        this.send(name, Number(field.value));
      });
    } else {
      field.append(...slot.options.map((one, at) => element("option", { value: String(at) }, one)));
      place.append(field);
      this.fields[name] = { field };
      field.addEventListener("change", () => this.send(name, Number(field.value)));
    }
    return place;
  }

  send(name, at) {
    if (this.sent[name] === at || (this.sent[name] === undefined && this.data.slots[name].at === at)) return;
    this.sent[name] = at;
    this.tell({ control: name, at });
  }

  values() {
    for (const [name, slot] of Object.entries(this.data.slots)) {
      if (!this.fields[name]) continue;
      // what comes back while it was moved further is old
      if (this.sent[name] !== undefined && this.sent[name] !== slot.at) continue;
      delete this.sent[name];
      this.fields[name].field.value = String(slot.at);
      this.written(name, slot.at);
    }
  }

  written(name, at) {
    const { field, value } = this.fields[name];
    const title = this.data.slots[name].options[at];
    if (!value) return;
    value.textContent = title;
    field.setAttribute("aria-valuetext", title);
    field.style.setProperty("--done", `${(100 * at) / Math.max(1, Number(field.max))}%`);
  }

  // ------------------------------------------------------------------------------------- the light

  pin(link, part, words) {
    const again = this.pinned === link;
    if (this.pinned) this.pinned.setAttribute("aria-pressed", "false");
    this.pinned = again ? null : link;
    link.setAttribute("aria-pressed", String(!again));
    if (again) this.dark();
    else if (this.light(part)) this.said.textContent = `Shown alone in the figure: ${words}`;
    this.part = again ? null : part;
    if (again) this.said.textContent = "";
  }

  leave() {
    if (this.pinned && this.part) this.light(this.part);
    else this.dark();
  }

  light(name) {
    this.dark();
    const part = this.data.parts[name];
    if (!part || !this.data.chart) return false;
    const graph = document.querySelector(`.st-key-${this.data.chart}-${part.picture} .js-plotly-plot`);
    if (!graph) return false;
    this.lit = [];
    const meant = (trace) =>
      (!part.panels.length || part.panels.includes(panelOf(trace))) &&
      (!part.traces.length || part.traces.some((one) => (trace.name || "").startsWith(one)));
    for (const mark of graph.querySelectorAll(".mlayer > g")) {
      const trace = mark.__data__?.[0]?.trace;
      if (!trace) continue;
      if (!meant(trace)) this.dim(mark);
      else if (part.points.length) {
        const points = [...mark.querySelectorAll(".point")];
        const those = part.points.map((at) => points.at(at));
        for (const point of points) if (!those.includes(point)) this.dim(point);
      }
    }
    if (part.traces.length) for (const canvas of graph.querySelectorAll(".gl-container")) this.dim(canvas);
    if (part.panels.length) this.frame(graph, part.panels);
    return this.lit.length > 0;
  }

  dim(one) {
    this.lit.push([one, one.style.opacity]);
    one.style.opacity = DIM;
  }

  frame(graph, panels) {
    const layout = graph._fullLayout;
    for (const plot of Object.values(layout?._plots || {})) {
      const { xaxis, yaxis } = plot;
      if (!panels.includes(Number(xaxis._id.slice(1) || 1))) continue;
      const frame = element("div", { className: "workbench-lit" });
      frame.style.cssText =
        `position:absolute;pointer-events:none;border:2px solid #D8884C;border-radius:6px;left:${xaxis._offset - 3}px;` +
        `top:${yaxis._offset - 3}px;width:${xaxis._length + 6}px;height:${yaxis._length + 6}px`;
      (graph.querySelector(".svg-container") || graph).append(frame);
      this.lit.push([frame, null]);
    }
  }

  dark() {
    for (const [one, before] of this.lit || []) {
      if (before === null) one.remove();
      else one.style.opacity = before;
    }
    this.lit = null;
  }
}

const texts = new WeakMap(); // place -> Prose: outlives reruns of the script

export default function ({ data, parentElement, setTriggerValue }) {
  let prose = texts.get(parentElement);
  if (!prose) {
    prose = new Prose();
    texts.set(parentElement, prose);
  }
  prose.mount(parentElement, data, (what) => setTriggerValue("act", what));
  return () => prose.unmount();
}
