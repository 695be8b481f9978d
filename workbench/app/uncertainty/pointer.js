// The map under the hand: the picture of the item pointed at, and keys for those who do not point.
//
// The chart is Plotly's and stays as it is; this listens to its events, walks from item to item by arrow keys and
// tells the script what was chosen. Until the script has answered, further keys are dropped.

const NAVIGATION = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const LOOK = 400; // ms between looks for a chart that was drawn anew
const SHOWN = 132; // pixels of a picture's longer side

const itemOf = (customdata) => {
  const first = Array.isArray(customdata) ? customdata[0] : customdata && customdata[0];
  return Number.isInteger(first) ? first : null;
};

class Pointing {
  constructor() {
    this.cursor = null; // the item that keys stand on
    this.picked = []; // items marked by Shift
    this.busy = false;
    this.card = document.createElement("div");
    this.card.className = "workbench-hover";
    this.card.setAttribute("aria-hidden", "true");
    this.card.style.cssText =
      "position:fixed;z-index:1000;pointer-events:none;padding:4px;border-radius:8px;background:#fff;" +
      "box-shadow:0 2px 12px rgba(0,0,0,.35);display:none";
    this.picture = document.createElement("img");
    this.picture.alt = "";
    this.picture.style.cssText = `display:block;width:${SHOWN}px;height:${SHOWN}px;object-fit:contain`;
    this.card.append(this.picture);
    this.ring = document.createElement("div");
    this.ring.className = "workbench-cursor";
    this.ring.setAttribute("aria-hidden", "true");
    this.ring.style.cssText =
      "position:absolute;width:22px;height:22px;margin:-14px 0 0 -14px;border:3px solid #D1495B;" +
      "border-radius:50%;pointer-events:none;display:none;box-shadow:0 0 0 2px #fff";
    this.onKey = (event) => this.key(event);
  }

  mount(root, tell, data) {
    this.tell = tell;
    if (!this.data || this.data.turn !== data.turn) this.busy = false;
    this.data = data;
    this.picked = [];
    root.querySelector(".hint").textContent = data.hint;
    this.place = root.querySelector(".walk");
    this.said = root.querySelector(".said");
    this.place.onfocus = () => this.show();
    this.place.onblur = () => this.hide();
    document.body.append(this.card);
    // a listener that is there already is not added again
    document.addEventListener("keydown", this.onKey);
    clearInterval(this.timer);
    this.timer = setInterval(() => this.attach(), LOOK);
    this.attach();
  }

  unmount() {
    clearInterval(this.timer);
    document.removeEventListener("keydown", this.onKey);
    this.card.remove();
    this.ring.remove();
  }

  attach() {
    const graph = document.querySelector(`.st-key-${this.data.chart} .js-plotly-plot`);
    if (!graph || graph === this.graph || !graph.on) return;
    this.graph = graph;
    graph.on("plotly_hover", (event) => this.hover(event));
    graph.on("plotly_unhover", () => (this.card.style.display = "none"));
    graph.on("plotly_relayout", () => this.draw());
    for (const chosen of ["plotly_selected", "plotly_click"])
      graph.on(chosen, (event) => {
        const items = new Set((event?.points ?? []).map((point) => itemOf(point.customdata)).filter((item) => item !== null));
        // what is chosen already comes no second time
        if (items.size && !(items.size === this.data.chosen.length && this.data.chosen.every((item) => items.has(item))))
          this.leaves(event.event?.shiftKey ? null : [...items]); // by Shift others stay, or this one goes
      });
  }

  // ------------------------------------------------------------------------------------- pictures

  hover(event) {
    const item = event.points.map((point) => itemOf(point.customdata)).find((found) => found !== null);
    if (item === undefined) return;
    this.hovered = item;
    const at = event.event;
    if (at) this.shown(item, at.clientX, at.clientY);
  }

  shown(item, x, y) {
    if (!this.data.picture) return;
    const address = this.data.picture.replace("{item}", item);
    if (this.picture.dataset.item !== String(item)) {
      this.picture.dataset.item = item;
      this.picture.onload = () => {
        this.picture.style.imageRendering = this.picture.naturalWidth < SHOWN ? "pixelated" : "auto";
      };
      this.picture.src = address;
    }
    const left = x + SHOWN + 40 < innerWidth ? x + 24 : x - SHOWN - 32;
    this.card.style.left = `${Math.max(4, left)}px`;
    // above the words that Plotly shows beside the point
    this.card.style.top = `${Math.max(4, y - SHOWN - 40)}px`;
    this.card.style.display = "block";
  }

  // ----------------------------------------------------------------------------------------- keys

  points() {
    // [item, x, y, words] on the screen, of what lies within the axes
    const layout = this.graph._fullLayout;
    const { xaxis, yaxis } = layout;
    const found = [];
    for (const trace of this.graph._fullData) {
      if (trace.visible !== true || !trace.customdata || trace.xaxis !== "x" || trace.yaxis !== "y") continue;
      if (!String(trace.type).startsWith("scatter")) continue;
      for (let i = 0; i < trace.x.length; i++) {
        const item = itemOf(trace.customdata[i]);
        const x = xaxis.d2p(trace.x[i]);
        const y = yaxis.d2p(trace.y[i]);
        if (item === null || !(x >= 0 && x <= xaxis._length && y >= 0 && y <= yaxis._length)) continue;
        found.push([item, xaxis._offset + x, yaxis._offset + y, trace.customdata[i]]);
      }
    }
    return found;
  }

  start(points) {
    const wanted = this.data.chosen[0] ?? this.data.start;
    return points.find((point) => point[0] === wanted) ?? points[0] ?? null;
  }

  step(direction) {
    const points = this.points();
    const here = points.find((point) => point[0] === this.cursor) ?? null;
    if (!here) {
      const first = this.start(points);
      this.cursor = first && first[0];
      return this.show();
    }
    const [dx, dy] = direction;
    let best = null;
    let least = Infinity;
    for (const point of points) {
      const ahead = (point[1] - here[1]) * dx + (point[2] - here[2]) * dy;
      const aside = Math.abs((point[1] - here[1]) * dy) + Math.abs((point[2] - here[2]) * dx);
      if (ahead <= 0.5 || aside > 2 * ahead) continue;
      const far = ahead + 2 * aside;
      if (far < least) [best, least] = [point, far];
    }
    if (best) this.cursor = best[0];
    this.show();
  }

  show() {
    if (!this.graph || !this.graph._fullLayout) return;
    if (this.cursor === null) {
      const first = this.start(this.points());
      this.cursor = first && first[0];
    }
    const here = this.draw();
    if (!here) return;
    this.place.dataset.item = here[0]; // a key of the gallery is of no other
    const words = [here[3][1], here[3][4], this.data.measure && `${this.data.measure} ${here[3][2]}`];
    const some = this.picked.length ? `${this.picked.length} marked. ` : "";
    this.said.textContent =
      some + words.filter(Boolean).join(" · ").replace(/<br>/g, " · ").replace(/<[^>]*>/g, "");
    const box = this.graph.getBoundingClientRect();
    this.shown(here[0], box.left + here[1], box.top + here[2]);
  }

  draw() {
    const here = this.points().find((point) => point[0] === this.cursor);
    if (!here || this.place.getRootNode().activeElement !== this.place) {
      this.ring.style.display = "none";
      return null;
    }
    if (this.ring.parentElement !== this.graph) this.graph.append(this.ring);
    this.ring.style.left = `${here[1]}px`;
    this.ring.style.top = `${here[2]}px`;
    this.ring.style.display = "block";
    return here;
  }

  hide() {
    this.ring.style.display = "none";
    this.card.style.display = "none";
  }

  key(event) {
    const walking = event.composedPath()[0] === this.place;
    const tile = event.key === "Escape" && event.composedPath()[0].classList?.contains("tile"); // of the gallery beside
    if ((theirs(event, this.place) && !tile) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (walking && NAVIGATION[event.key]) {
      event.preventDefault();
      if (event.shiftKey && this.cursor !== null && !this.picked.includes(this.cursor)) this.picked.push(this.cursor);
      this.step(NAVIGATION[event.key]);
      if (event.shiftKey && this.cursor !== null && !this.picked.includes(this.cursor)) this.picked.push(this.cursor);
      return this.show();
    }
    if (walking && event.key === "Enter" && this.cursor !== null) {
      event.preventDefault();
      return this.send({ kind: "pick", items: this.picked.length ? this.picked : [this.cursor] });
    }
    if (event.key === "Escape" && (this.data.chosen.length || this.picked.length)) {
      this.picked = [];
      return this.send({ kind: "clear" });
    }
  }

  // what is chosen comes to the gallery beside once the script has run: until then its keys are of what stood there
  leaves(items) {
    window.dispatchEvent(new CustomEvent("workbench-chosen", { detail: items }));
  }

  send(what) {
    if (this.busy) return;
    this.busy = true;
    this.leaves(what.items);
    this.tell("act", { ...what, turn: this.data.turn });
  }
}

const charts = new Map(); // chart -> Pointing: outlives reruns of the script

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let pointing = charts.get(data.chart);
  if (!pointing) {
    pointing = new Pointing();
    charts.set(data.chart, pointing);
  }
  pointing.mount(parentElement, setTriggerValue, data);
  return () => pointing.unmount();
}
