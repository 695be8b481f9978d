// What the desk and the gallery share: how items look, an outbox that loses nothing, and how they speak with the server.

const LIMIT = 15000; // ms until a request is given up
const SHUT = 30; // seconds until a project that is not shared any more is asked for again
const BATCH = 100; // operations in one request
const OCTETS = 200000; // of them: the route takes 256 kB
const LAST_OCTETS = 50000; // what a browser sends for a page that closes is 64 kB at most

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

// what the browser keeps: read, written (whether it was) or, with null, thrown away
const stored = (key, value) => {
  try {
    if (value === undefined) return localStorage.getItem(key);
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
    return true;
  } catch {
    return value === undefined ? null : false;
  }
};

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

// a name that may be broken after its signs, so that no word is cut
const broken = (name) => [make("bdi", { dir: "auto" }, ...name.split(/(?<=[_/.:-])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part])))];

// an item's name as it is shown: where its folder is a class, the path would give the answer away
const untold = (id, classes) => {
  const parts = id.split("/");
  const tells = classes.some((one) => parts.slice(0, -1).includes(one.name));
  return tells ? parts.at(-1) : id;
};

// how many characters the longest part of a name has that need not be broken
const longestWord = (classes) =>
  Math.max(1, ...classes.flatMap((one) => one.name.split(/(?<=[_/.:-])|\s+/)).map((word) => word.length));

const longest = (names) => Math.max(0, ...names.map((name) => name.length));
const LENGTHY = 30; // characters of a name that takes several lines wherever it stands

// how wide a button is at least, in characters: its longest word, and what leaves a long name four lines
const leastWide = (classes) => Math.max(longestWord(classes), Math.min(16, Math.ceil(longest(classes.map((one) => one.name)) / 4)));

// Whether a name stands above what belongs to it, with a line of its own: beside it, it would be cut into pieces.
const stacked = (names, most = 14) => names.some((name) => name.length > most);

// how many buttons stand side by side on a phone
const narrow = (classes) => {
  const longest = Math.max(1, ...classes.map((one) => one.name.length));
  return longest <= 3 ? 5 : longest <= 9 ? 3 : 2;
};

const counted = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// --------------------------------------------------------------------------------------------- outbox

class Outbox {
  // Operations not yet acknowledged, in order; each also lies in localStorage. What the server can never take is
  // set aside there, until the person has looked at it.
  constructor(project, account) {
    // with a log-in: what one account did is never sent as another's
    const place = `${account ? `-${account}` : ""}/${project}/`;
    this.prefix = `desk${place}`;
    this.shelf = `desk-aside${place}`;
    this.tab = newId();
    this.sequence = 0;
    this.waiting = new Map(); // operation id -> {key, operation, stored}
    this.aside = new Map(); // key -> {why, operation}
    this.adopt();
  }

  adopt() {
    // what a closed or reloaded tab left behind; the server takes each operation once
    for (const key of this.keys(this.prefix)) {
      const text = stored(key);
      const operation = parsed(text);
      if (!operation || typeof operation.op !== "string") {
        stored(key, null);
        if (text) this.shelve("it cannot be read any more", text);
      } else if (!this.waiting.has(operation.op)) this.waiting.set(operation.op, { key, operation, stored: true });
    }
    for (const key of this.keys(this.shelf)) this.aside.set(key, parsed(stored(key)) || { why: "", operation: stored(key) });
  }

  keys(prefix) {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(prefix)).sort();
    } catch {
      return [];
    }
  }

  place(prefix) {
    return `${prefix}${String(Date.now()).padStart(14, "0")}/${this.tab}/${String(this.sequence++).padStart(8, "0")}`;
  }

  add(operation) {
    const entry = { key: this.place(this.prefix), operation, stored: false };
    this.waiting.set(operation.op, entry);
    entry.stored = stored(entry.key, JSON.stringify(operation));
  }

  drop(op) {
    const found = this.waiting.get(op);
    if (!found) return;
    this.waiting.delete(op);
    stored(found.key, null);
    // there is room again
    for (const entry of this.waiting.values()) if (!entry.stored) entry.stored = stored(entry.key, JSON.stringify(entry.operation));
  }

  // whether the browser keeps nothing, or not all of it
  get refused() {
    return [...this.waiting.values()].some((entry) => !entry.stored);
  }

  setAside(op, why) {
    const found = this.waiting.get(op);
    if (!found) return;
    this.shelve(why, found.operation);
    this.drop(op);
  }

  shelve(why, operation) {
    const key = this.place(this.shelf);
    this.aside.set(key, { why, operation });
    stored(key, JSON.stringify({ why, operation }));
  }

  throwAway() {
    for (const key of this.aside.keys()) stored(key, null);
    this.aside.clear();
  }

  // of whoever sits here; what somebody else did waits for them
  of(person) {
    return [...this.waiting.values()].filter((entry) => entry.operation.person === person);
  }

  others(person) {
    return [...this.waiting.values()].filter((entry) => entry.operation.person !== person);
  }

  // the first of them, as many as fit into a request
  batch(person, most = BATCH, octets = OCTETS) {
    const found = [];
    let left = octets;
    for (const entry of this.of(person)) {
      entry.octets ??= new TextEncoder().encode(JSON.stringify(entry.operation)).length + 1;
      left -= entry.octets;
      if (found.length >= most || (found.length && left < 0)) break;
      found.push(entry.operation);
    }
    return found;
  }
}

// what waits of somebody, as a button that saves it as a file; null where nothing does
const keptButton = (outbox, person, project) => {
  const kept = outbox.of(person).map((entry) => entry.operation);
  if (!kept.length) return null;
  const save = () => {
    const link = make("a", { download: `answers-${project}.json`, href: URL.createObjectURL(new Blob([JSON.stringify(kept, null, 1)], { type: "application/json" })) });
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return make("button", { class: "command strong", "data-command": "kept", onclick: save }, `Save the ${counted(kept.length, "kept answer")} as a file`);
};

// --------------------------------------------------------------------------------------------- faces

const faces = {
  image: (face, size) => {
    const picture = make("img", { src: face.src, alt: face.alt || "", class: "picture", decoding: "async" });
    if (face.small) picture.classList.add("pixels"); // a few pixels wide: enlarged without blur
    if (size) picture.style.maxHeight = size;
    return picture;
  },
  text: (face) => {
    const text = make("div", { class: "text", dir: "auto", textContent: face.text, tabIndex: 0 });
    if (!face.rows?.length) return text;
    // what is known beside it: small, below the text, so that it is read second
    const beside = face.rows.map(([name, value]) => make("div", {}, make("dt", {}, ...broken(name)), make("dd", { dir: "auto", textContent: value === "" ? "empty" : value })));
    return make("div", { class: "whole" }, text, make("dl", { class: "beside" }, ...beside));
  },
  row: (face) => {
    const body = make("tbody");
    for (const [name, value, place] of face.rows) {
      const bar = make("td", { class: "place" });
      if (place !== null && place !== undefined) {
        const filled = make("span");
        filled.style.width = `${Math.round(100 * place)}%`;
        bar.append(filled);
        bar.title = `larger than ${Math.round(100 * place)}\u00a0% of all items`;
      }
      body.append(make("tr", {}, make("th", { scope: "row", title: name }, ...broken(name)), value === "" ? make("td", {}, make("span", { class: "nothing", textContent: "empty" })) : make("td", { dir: "auto", textContent: value }), bar));
    }
    if (face.more) body.append(make("tr", { class: "more" }, make("th", { scope: "row", colSpan: 3, textContent: `and ${counted(face.more, "more column")}` })));
    const head = make("tr", {}, ...["Column", "Value", "Among all items"].map((name) => make("th", { scope: "col", textContent: name })));
    // of long names each stands above its value, small: beside it neither would have room
    const lengthy = longest(face.rows.map(([name]) => name)) > LENGTHY;
    return make("div", { class: lengthy ? "row lengthy" : "row", tabIndex: 0 }, make("table", {}, make("thead", {}, head), body));
  },
};

// a pool of two features: the item on its plane, among the others
const plane = (context, at, size) => {
  const canvas = make("canvas", { class: "plane", width: 2 * size, height: 2 * size, role: "img", "aria-label": "The item on the plane of all items, ringed" });
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
    this.away = false; // whether the server does not answer
    this.shut = ""; // by whom, where the project is this person's no more
    this.expired = false;
    this.overlay = null;
    this.parent = null;
    this.mounts = 0;
    this.status = make("span", { class: "status", role: "status" });
    this.message = make("div", { class: "message", role: "alert", hidden: true });
    this.shelf = make("button", { class: "command quiet", hidden: true, title: "What the server cannot take", onclick: () => this.showAside() });
    this.single = 0; // operations that are sent one by one, as a request of them all was refused
    this.after = new Map(); // operation id -> what is said once it is acknowledged
    this.looked = false; // whether the server's numbers were read since the page was last drawn
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

  // gives the number by which this place is left again
  mount(parent) {
    this.parent = parent;
    this.mounts += 1;
    const place = parent.querySelector(".desk-place") || parent;
    if (this.node.parentNode !== place) {
      place.append(this.node);
      this.looked = false; // meanwhile the person may have done something on another page
      this.pump(true);
    }
    this.draw();
    return this.mounts;
  }

  // What this tab did last, where it is the last that the person did anywhere; else null: an undo is of that.
  lastHere(done, name) {
    const last = done.at(-1);
    const known = this.outbox.of(this.data.person).length > 0 || (this.looked && this.numbers?.[name] === last?.op);
    return last && last.op && known ? last : null;
  }

  // A place that another has taken already is left without a word: the page may end one after it began the next.
  unmount(mounted) {
    if (mounted !== this.mounts) return;
    this.parent = null;
    this.node.remove();
  }

  get here() {
    return this.parent !== null && this.node.isConnected;
  }

  // an overlay takes all keys while it is open, but those that press one of its buttons
  overlayKey(event) {
    const target = event.composedPath()[0];
    if (event.key === "Tab") return;
    if (event.key === "Escape") {
      this.close();
      this.take(event);
    } else if (presses(event)) return;
    else if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return;
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
    const waiting = this.outbox.of(this.data.person).length;
    const kept = `${this.problem}${waiting ? `; ${waiting} kept in this browser` : ""}`;
    let words = "all saved";
    if (this.expired) words = "this page must be opened anew; " + (waiting ? `${waiting} kept in this browser` : "nothing is waiting");
    else if (this.shut) words = waiting ? `closed to you; ${waiting} kept in this browser` : "closed to you";
    else if (this.problem && this.pause) words = `${kept}, sent again in ${this.pause} s`;
    else if (this.problem) words = `${kept}, trying again`;
    else if (waiting) words = `saving ${waiting} ...`;
    if (this.outbox.refused) words += " (this browser keeps nothing: do not close the page while saving)";
    const others = this.outbox.others(this.data.person);
    if (others.length) words += `; ${others.length} of ${[...new Set(others.map((entry) => entry.operation.person || "nobody"))].join(", ")} kept here for them`;
    this.status.textContent = words;
    this.shelf.hidden = !this.outbox.aside.size;
    this.shelf.textContent = `${this.outbox.aside.size} set aside`;
    this.status.className = `status ${this.expired || this.problem ? "bad" : waiting ? "busy" : "good"}`;
  }

  send(operation) {
    const { person, project } = this.data;
    const whole = { op: newId(), time: new Date().toISOString(), person, project, ...operation };
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

  // what the server can never take: the person reads and copies it, and throws it away
  showAside() {
    const words = ({ operation }) => (typeof operation === "string" ? operation : Object.entries(operation).filter(([name]) => !["op", "project", "ask", "asks", "rejected", "ms"].includes(name)).map(([name, value]) => `${name}: ${value}`).join(", "));
    const text = [...this.outbox.aside.values()].map((one) => `${words(one)}\n  ${one.why}`).join("\n");
    const area = make("textarea", { rows: 8, readOnly: true, value: text, "aria-label": "What was set aside" });
    const copy = make("button", { class: "command strong", textContent: "Copy", onclick: () => { area.select(); (navigator.clipboard?.writeText(text) || Promise.reject()).catch(() => document.execCommand("copy")); } });
    const away = make("button", { class: "command", textContent: "Throw away", onclick: () => { this.outbox.throwAway(); this.close(); this.drawStatus(); } });
    this.open("What the server cannot take", make("p", { class: "small", textContent: "It is kept in this browser; all else was sent. Copy what you want to keep of it." }), area, make("div", { class: "commands" }, copy, away));
  }

  // acknowledgements: what is stored is kept here no more, what never can be is set aside
  acknowledge(reply, asked) {
    return (reply.acks || []).map((told, place) => {
      const ack = { ...told, op: told.op ?? asked.ops[place]?.op };
      const operation = this.outbox.waiting.get(ack.op)?.operation;
      if (ack.status === "refused") this.outbox.setAside(ack.op, ack.why);
      else this.outbox.drop(ack.op);
      if (ack.status !== "saved" && ack.why) this.say(ack.why, "bad");
      else {
        this.after.get(ack.op)?.(ack);
        if (ack.why) this.say(ack.why, "bad"); // of a row of answers, those that were not taken
      }
      this.after.delete(ack.op);
      return { ...ack, operation };
    });
  }

  // what is sent now
  sends() {
    return this.outbox.batch(this.data.person, this.single ? 1 : BATCH);
  }

  // a remark about an item
  noteOn(card, kept, before = []) {
    const place = `desk-draft/${this.data.project}/${this.data.person}/${card.item}`;
    const area = make("textarea", { dir: "auto", rows: 4, maxLength: 2000, "aria-label": "Note", value: stored(place) || "" });
    const there = before.length ? [make("ul", { class: "said notes" }, ...before.map(([who, text]) => make("li", {}, make("b", { textContent: `${who}: ` }), make("bdi", { dir: "auto", textContent: text }))))] : [];
    area.addEventListener("input", () => stored(place, area.value.trim() ? area.value : null));
    const keep = () => {
      const text = area.value.trim();
      if (text) {
        const operation = this.send({ kind: "note", item: card.item, text });
        kept?.(text, operation);
      }
      stored(place, null);
      this.close();
    };
    area.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep();
    });
    const told = make("p", { class: "small", textContent: "Esc leaves a draft, which is here when you come back." });
    this.open(`Note on ${untold(card.id, this.data.classes)}`, ...there, area, make("button", { class: "command strong", onclick: keep }, "Keep", make("kbd", { textContent: "Ctrl+Enter" })), told);
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
        const wait = response.status === 429 ? Number(told.wait) || 1 : 0;
        throw Object.assign(new Error(told.why || `the server answered ${response.status}`), { never: told.never === true, shut: told.shut === true, wait });
      }
      return await response.json();
    } finally {
      clearTimeout(timer);
    }
  }

  async pump(look = false) {
    if (this.sending || this.expired || Date.now() < this.until) return;
    const body = this.request();
    if (!look && !body.ops.length && !body.want && this.numbers) return;
    this.sending = true;
    const person = this.data.person;
    let another = false; // somebody else sits here by now: what comes for the one before is no business of theirs
    try {
      const reply = await this.post("sync", body).catch((error) => {
        throw Object.assign(error, { lost: error.name === "AbortError" || error instanceof TypeError });
      });
      this.failures = this.pause = 0;
      this.problem = this.shut = "";
      this.away = false;
      another = person !== this.data.person;
      if (reply && another) this.acknowledge(reply, body);
      else if (reply) this.take_in(reply, body);
      if (this.single) this.single -= 1;
    } catch (error) {
      another = person !== this.data.person;
      const refused = error.never && body.ops.length;
      if (refused > 1) this.single = refused;
      else if (refused) {
        this.outbox.setAside(body.ops[0].op, error.message);
        this.say(error.message, "bad");
        if (this.single) this.single -= 1;
      }
      this.failures = refused ? 0 : this.failures + 1;
      this.shut = error.shut ? error.message : "";
      this.pause = error.wait || (error.shut ? SHUT : 0); // seconds that the server asks for: also keys pressed meanwhile wait
      this.until = Date.now() + 1000 * this.pause;
      this.away = error.lost === true;
      this.problem = refused ? "" : this.away ? "no answer from the server" : error.message.replace(/\.$/, "");
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
      this.retry = setTimeout(() => this.pump(true), this.pause ? 1000 * this.pause + 20 : Math.min(5000, 250 * 2 ** (this.failures - 1)));
    } else if (another || this.sends().length || this.wants() || this.reclaims) {
      const look = another || this.reclaims;
      this.reclaims = false;
      setTimeout(() => this.pump(look), 0);
    }
  }

  flush() {
    const ops = this.outbox.batch(this.data.person, BATCH, LAST_OCTETS);
    if (this.expired || !(ops.length || this.turned)) return;
    this.post("sync", { ...this.request(), ops, want: 0 }, true).catch(() => {});
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
