// What the desk and the gallery share: how items look, an outbox that loses nothing, and how they speak with the server.

const LIMIT = 15000; // ms until a request is given up
const BATCH = 100; // operations in one request

const make = (tag, properties = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

const newId = () =>
  [...crypto.getRandomValues(new Uint8Array(9))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

const stored = (key, value) => {
  try {
    return value === undefined ? localStorage.getItem(key) : localStorage.setItem(key, value);
  } catch {
    return null;
  }
};

// a key as people read it, and a press as the server names it
const keyNames = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };
const keyName = (key) => keyNames[key] || (key && key.length === 1 ? key.toUpperCase() : (key || "").replace(/\+([a-z])$/, (_, one) => `+${one.toUpperCase()}`));
const pressed = (event) => {
  const letter = /^[a-z]$/i.test(event.key);
  if (event.altKey) return /^Key[A-Z]$/.test(event.code) ? `Alt+${event.code[3].toLowerCase()}` : null;
  return event.shiftKey && letter ? `Shift+${event.key.toLowerCase()}` : event.key.length === 1 ? event.key.toLowerCase() : event.key;
};

// a name that may be broken after its signs, so that no word is cut
const broken = (name) => name.split(/(?<=[_/.:-])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part]));

// an item's name as it is shown: where its folder is a class, the path would give the answer away
const untold = (id, classes) => {
  const parts = id.split("/");
  const tells = classes.some((one) => parts.slice(0, -1).includes(one.name));
  return tells ? parts.at(-1) : id;
};

// how many buttons stand side by side on a phone
const narrow = (classes) => {
  const longest = Math.max(1, ...classes.map((one) => one.name.length));
  return longest <= 3 ? 5 : longest <= 9 ? 3 : 2;
};

// how many stand side by side elsewhere: so many that no word of a name need be cut
const wide = (classes) => {
  const words = classes.flatMap((one) => one.name.split(/(?<=[_/.:-])|\s+/));
  const longest = Math.max(1, ...words.map((word) => word.length));
  return Math.max(1, Math.min(classes.length, longest <= 7 ? 5 : longest <= 10 ? 4 : 3));
};

const counted = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// --------------------------------------------------------------------------------------------- outbox

class Outbox {
  // Operations not yet acknowledged, in order; each also lies in localStorage.
  constructor(project, account) {
    // with a log-in: what one account did is never sent as another's
    this.prefix = account ? `desk-${account}/${project}/` : `desk/${project}/`;
    this.tab = newId();
    this.sequence = 0;
    this.refused = false; // whether the browser keeps nothing
    this.waiting = new Map(); // operation id -> {key, operation}
    this.adopt();
  }

  adopt() {
    // what a closed or reloaded tab left behind; the server takes each operation once
    try {
      const keys = Object.keys(localStorage).filter((key) => key.startsWith(this.prefix)).sort();
      for (const key of keys) {
        const operation = JSON.parse(localStorage.getItem(key));
        if (operation && operation.op && !this.waiting.has(operation.op)) this.waiting.set(operation.op, { key, operation });
      }
    } catch {
      this.refused = true;
    }
  }

  add(operation) {
    const time = String(Date.now()).padStart(14, "0");
    const key = `${this.prefix}${time}/${this.tab}/${String(this.sequence++).padStart(8, "0")}`;
    this.waiting.set(operation.op, { key, operation });
    try {
      localStorage.setItem(key, JSON.stringify(operation));
    } catch {
      this.refused = true;
    }
  }

  drop(op) {
    const found = this.waiting.get(op);
    if (!found) return;
    this.waiting.delete(op);
    try {
      localStorage.removeItem(found.key);
    } catch {
      this.refused = true;
    }
  }

  get size() {
    return this.waiting.size;
  }

  batch() {
    return [...this.waiting.values()].slice(0, BATCH).map((entry) => entry.operation);
  }
}

// --------------------------------------------------------------------------------------------- faces

const faces = {
  image: (face, size) => {
    const picture = make("img", { src: face.src, alt: face.alt || "", class: "picture", decoding: "async" });
    if (face.small) picture.classList.add("pixels"); // a few pixels wide: enlarged without blur
    if (size) picture.style.maxHeight = size;
    return picture;
  },
  text: (face) => make("div", { class: "text", textContent: face.text, tabIndex: 0 }),
  row: (face) => {
    const body = make("tbody");
    for (const [name, value, place] of face.rows) {
      const bar = make("td", { class: "place" });
      if (place !== null && place !== undefined) {
        const filled = make("span");
        filled.style.width = `${Math.round(100 * place)}%`;
        bar.append(filled);
        bar.title = `larger than ${Math.round(100 * place)} % of the pool`;
      }
      body.append(make("tr", {}, make("th", { scope: "row", textContent: name }), value === "" ? make("td", {}, make("span", { class: "nothing", textContent: "empty" })) : make("td", { textContent: value }), bar));
    }
    if (face.more) body.append(make("tr", { class: "more" }, make("th", { scope: "row", colSpan: 3, textContent: `and ${counted(face.more, "more column")}` })));
    const head = make("tr", {}, ...["Column", "Value", "Among the pool"].map((name) => make("th", { scope: "col", textContent: name })));
    return make("div", { class: "row", tabIndex: 0 }, make("table", {}, make("thead", {}, head), body));
  },
};

// a pool of two features: the item on its plane, among the others
const plane = (context, at, size) => {
  const canvas = make("canvas", { class: "plane", width: 2 * size, height: 2 * size, role: "img", "aria-label": "The item on the pool's plane, ringed" });
  const paper = canvas.getContext("2d");
  paper.scale(2, 2);
  const place = ([x, y]) => [12 + x * (size - 24), size - 12 - y * (size - 24)];
  const dot = (point, radius, colour, alpha) => {
    const [x, y] = place(point);
    paper.globalAlpha = alpha;
    paper.fillStyle = colour;
    paper.beginPath();
    paper.arc(x, y, radius, 0, 2 * Math.PI);
    paper.fill();
  };
  for (const point of context.points) dot(point, 2, "#8a8f98", 0.45);
  for (const [x, y, code] of context.labelled) dot([x, y], 4, context.colours[code % context.colours.length], 1);
  const [x, y] = place(at);
  paper.globalAlpha = 1;
  paper.strokeStyle = "#d1495b";
  paper.lineWidth = 2.5;
  paper.beginPath();
  paper.arc(x, y, 9, 0, 2 * Math.PI);
  paper.stroke();
  dot(at, 3, "#d1495b", 1);
  return canvas;
};

const faceOf = (face, size) => (faces[face.kind] || faces.text)(face, size);

// --------------------------------------------------------------------------------------------- speaking

class Speaker {
  // Keeps operations until the server has them; who extends it says what is asked for and takes in the reply.
  constructor(data) {
    this.data = data;
    this.outbox = new Outbox(data.project, data.account);
    this.numbers = null; // the last reply's
    this.sending = false;
    this.failures = 0;
    this.problem = "";
    this.expired = false;
    this.overlay = null;
    this.parent = null;
    this.status = make("span", { class: "status", role: "status" });
    this.message = make("div", { class: "message", role: "alert", hidden: true });
  }

  // the page's script ran again: who sits here, and a token
  renew(data, trigger) {
    this.trigger = trigger;
    const renewed = data.token !== this.data.token;
    this.data = data;
    if (renewed && this.expired) {
      this.expired = false;
      this.failures = 0;
      this.pump();
    }
  }

  mount(parent) {
    this.parent = parent;
    const place = parent.querySelector(".desk-place") || parent;
    if (this.node.parentNode !== place) place.append(this.node);
    this.draw();
  }

  unmount(parent) {
    if (this.parent === parent) this.parent = null;
    this.node.remove();
  }

  get here() {
    return this.parent !== null && this.node.isConnected;
  }

  // whether keys are somebody else's: those of a field, a menu, a table
  elsewhere(event) {
    const target = event.composedPath()[0];
    if (document.querySelector("[data-testid=stDialog]")) return true; // wherever the focus is
    return target instanceof Element && target.closest("input, textarea, select, [contenteditable=true], [role=slider], [role=listbox], [role=menu], [role=dialog], [role=grid], [role=tab], [role=combobox], [role=radiogroup]");
  }

  // an overlay takes all keys while it is open
  overlayKey(event) {
    const target = event.composedPath()[0];
    if (event.key === "Escape") {
      if (!this.overlay.escape?.()) this.close();
      this.take(event);
    } else if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return;
    else if (this.overlay.keys && !event.ctrlKey && !event.metaKey && !event.altKey && this.overlay.keys(event.key)) this.take(event);
  }

  say(words, kind = "note") {
    this.message.textContent = words;
    this.message.hidden = !words;
    this.message.className = `message ${kind}`;
    clearTimeout(this.messageTimer);
    if (words && kind === "note") this.messageTimer = setTimeout(() => this.say(""), 4000);
  }

  drawStatus() {
    const waiting = this.outbox.size;
    let words = "all saved";
    if (this.expired) words = "this page must be opened anew; " + (waiting ? `${waiting} kept in this browser` : "nothing is waiting");
    else if (this.problem) words = `${this.problem}; ${waiting} kept in this browser, trying again`;
    else if (waiting) words = `saving ${waiting} ...`;
    if (this.outbox.refused) words += " (this browser keeps nothing: do not close the page while saving)";
    this.status.textContent = words;
    this.status.className = `status ${this.expired || this.problem ? "bad" : waiting ? "busy" : "good"}`;
  }

  send(operation) {
    const whole = { op: newId(), time: new Date().toISOString(), ...operation };
    this.outbox.add(whole);
    this.drawStatus();
    this.pump();
    return whole;
  }

  open(title, ...content) {
    this.close();
    const before = this.node.getRootNode().activeElement;
    const panel = make("div", { class: "panel", role: "dialog", "aria-modal": "true", "aria-label": title, tabIndex: -1 },
      make("div", { class: "panel-head" }, make("h2", { textContent: title }), make("button", { class: "command", textContent: "Close", onclick: () => this.close() }, make("kbd", { textContent: "Esc" }))),
      ...content);
    this.overlay = { node: make("div", { class: "overlay", onclick: (event) => { if (event.target === this.overlay?.node) this.close(); } }, panel), before, keys: null };
    this.node.append(this.overlay.node);
    panel.focus({ preventScroll: true });
    return this.overlay;
  }

  close() {
    if (!this.overlay) return;
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
    this.overlay.node.remove();
    this.overlay.before?.focus?.({ preventScroll: true });
    this.overlay = null;
  }

  // a remark about an item
  noteOn(card, kept) {
    const area = make("textarea", { rows: 4, maxLength: 2000, "aria-label": "Note" });
    const keep = () => {
      const text = area.value.trim();
      if (text) {
        const operation = this.send({ kind: "note", item: card.item, text });
        kept?.(text, operation);
      }
      this.close();
    };
    area.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep();
    });
    this.open(`Note on ${untold(card.id, this.data.classes)}`, area, make("button", { class: "command strong", onclick: keep }, "Keep", make("kbd", { textContent: "Ctrl+Enter" })));
    area.focus();
  }

  async post(what, body, keepalive = false) {
    const control = new AbortController();
    const timer = setTimeout(() => control.abort(), LIMIT);
    try {
      const response = await fetch(`${this.data.base}/${encodeURIComponent(this.data.project)}/${what}`, {
        method: "POST", keepalive, signal: control.signal, credentials: "same-origin", cache: "no-store",
        headers: { "content-type": "application/json", "x-desk-token": this.data.token }, body: JSON.stringify(body),
      });
      if (response.status === 401) {
        this.expired = true;
        this.trigger?.("renew", newId());
        return null;
      }
      if (!response.ok) {
        const told = await response.json().catch(() => ({}));
        throw new Error(told.why || `the server answered ${response.status}`);
      }
      return await response.json();
    } finally {
      clearTimeout(timer);
    }
  }

  async pump(look = false) {
    if (this.sending || this.expired) return;
    const body = this.request();
    if (!look && !body.ops.length && !body.want && this.numbers) return;
    this.sending = true;
    try {
      const reply = await this.post("sync", body);
      if (reply) this.take_in(reply, body);
      this.failures = 0;
      this.problem = "";
    } catch (error) {
      this.failures += 1;
      this.problem = error.name === "AbortError" || error instanceof TypeError ? "no answer from the server" : error.message;
    } finally {
      this.sending = false;
      this.drawStatus();
    }
    if (!this.failures && this.numbers?.fitting && this.here && !document.hidden) {
      // a new model is on its way: what waits behind this card is to be its choice
      clearTimeout(this.soon);
      this.soon = setTimeout(() => this.pump(true), 500);
    }
    if (this.failures) {
      clearTimeout(this.retry);
      this.retry = setTimeout(() => this.pump(true), Math.min(5000, 250 * 2 ** (this.failures - 1)));
    } else if (this.outbox.size || this.wants() || this.reclaims) {
      const look = this.reclaims;
      this.reclaims = false;
      setTimeout(() => this.pump(look), 0);
    }
  }

  flush() {
    if (this.expired || !(this.outbox.size || this.turned)) return;
    this.post("sync", { ...this.request(), want: 0 }, true).catch(() => {});
  }

  take(event) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

// an item by itself, as large as the window; a picture also at its own size, or on the whole screen
const enlarge = (desk, card) => {
  const face = card.face;
  const node = faceOf(card.face);
  if (card.face.large) {
    // the picture of the stage is at hand; the whole one takes its place once it is decoded
    const whole = new Image();
    whole.src = card.face.large;
    whole.decode().then(() => { node.src = card.face.large; }).catch(() => {});
  }
  const place = make("div", { class: `zoomed of-${face.kind}` }, node);
  const whole = make("button", { class: "command", textContent: "Full screen", onclick: () => full() }, make("kbd", { textContent: "F" }));
  const size = make("button", { class: "command", textContent: "Own size", onclick: () => real() }, make("kbd", { textContent: "1" }));
  const full = () => (document.fullscreenElement ? document.exitFullscreen() : panel().requestFullscreen?.())?.catch?.(() => {});
  const real = () => place.classList.toggle("real");
  const panel = () => desk.overlay.node.firstChild;
  const picture = face.kind === "image";
  if (picture) node.addEventListener("click", real);
  const overlay = desk.open(untold(card.id, desk.data.classes), ...(picture ? [make("div", { class: "commands" }, whole, size)] : []), place);
  overlay.keys = (key) => {
    if (key === desk.data.commands?.zoom || key === " ") desk.close();
    else if (picture && key.toLowerCase() === "f") full();
    else if (picture && key === "1") real();
    return true;
  };
};
