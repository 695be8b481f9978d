// The gallery of decisions: the same keys as on the desk, on what was decided already.
//
// The page's script gives the decisions in their order; what is changed here is sent as operations like the
// desk's and shown at once. The order stays until the page is drawn for other filters.

const galleries = new Map(); // project -> Gallery

const REDRAW = 1500; // ms
const LATE = 10000; // ms in which the page shows what was chosen on the map, on a slow machine, too
const SEEN = 400; // ms that an item stands before anybody can have seen it

// whether the model says another class than the item has
const differs = (card) => Boolean(card.says) && (card.says !== card.class || card.kind !== "label" || card.said?.length > 0);

class Gallery extends Speaker {
  constructor(data) {
    super(data);
    this.at = 0; // the place the keys act on
    this.chosen = new Set(); // places picked by click or X; the keys act on these where there are any
    this.history = []; // what one press did: [{op, before: [[place, what it was]]}]
    this.steps = new Map(); // id of an undo -> {entry, part, now}: what it takes back, and how it looked
    this.tiles = [];
    this.node = make("div", { class: "desk gallery" });
    this.late = 0; // until when nobody can have seen what stands here
    this.awaits = 0; // until when what was chosen on the map is to come
    this.awaited = null; // the items that were chosen, where they are known
    window.addEventListener("workbench-chosen", (event) => { this.awaits = Date.now() + LATE; this.awaited = event.detail; });
    this.place = make("div", { class: "grid", role: "listbox", "aria-label": data.beside ? "Selected items" : "Decisions", "aria-multiselectable": "true" });
    this.answers = make("div", { class: "answers" });
    this.box = make("input", { class: "search", dir: "auto", type: "text", placeholder: "Type a class; Enter relabels", "aria-label": "Search classes", autocomplete: "off", onkeydown: (event) => this.searchKey(event), oninput: () => this.drawAnswers() });
    this.commands = make("div", { class: "commands" });
    this.kept = make("span");
    this.node.append(this.tools = make("div", { class: "tools" }, make("div", { class: "head" }, this.title = make("span", { class: "title" }), make("span", { class: "space" }), this.status, this.kept, this.shelf), this.answers, this.commands, this.message), this.place);
    window.addEventListener("keydown", (event) => this.key(event), true);
    window.addEventListener("pagehide", () => this.flush());
    for (const [name, held] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) window.addEventListener(name, () => { this.held = held; }, true);
    if (this.sends().length) this.pump();
    this.show(data);
  }

  update(data, trigger) {
    const same = data.person === this.data.person;
    const other = data.stamp !== this.data.stamp || !same;
    this.renew(data, trigger);
    if (!other) return;
    // a press stays one act though its tiles are gone
    this.history = same ? this.history.map((entry) => entry.map(({ op }) => ({ op, before: [] }))) : [];
    // keys are of what somebody chose as soon as it stands here; what came by itself, nobody has seen
    this.late = data.beside && Date.now() >= this.awaits ? Date.now() + SEEN : 0;
    // what was chosen before that may come in between
    if (!this.awaited || data.cards.some((card) => this.awaited.includes(card.item))) this.awaits = 0;
    this.show(data);
  }

  show(data) {
    this.cards = data.cards.map((card) => ({ ...card }));
    this.at = 0;
    this.chosen = new Set(data.beside && this.cards.length > 1 ? this.cards.keys() : []);
    this.steps.clear();
    this.touched = !data.beside; // what stands beside a map came by itself until a tile is pressed or X
    this.tiles = this.cards.map((card, place) => {
      const tile = make("button", { class: "tile decision", role: "option", "data-item": card.item });
      tile.addEventListener("click", (event) => {
        const more = event.ctrlKey || event.metaKey || event.shiftKey;
        // beside a map all are chosen without a press: a click is of one
        if (!more && !this.touched) {
          this.chosen.clear();
          this.cards.forEach((_, one) => this.drawTile(one));
        }
        this.touched = true;
        this.go(place);
        if (more) this.pick();
      });
      tile.addEventListener("dblclick", () => enlarge(this, card));
      return tile;
    });
    this.place.className = `grid of-${this.cards[0]?.face.kind || ""}`;
    this.place.replaceChildren(...this.tiles);
    const first = data.beside && this.cards.length === 1 ? this.place : this.tools; // one item stands above its answers
    if (this.node.firstChild !== first) this.node.prepend(first);
    this.cards.forEach((_, place) => this.drawTile(place));
    this.draw();
  }

  get targets() {
    return this.chosen.size ? [...this.chosen].sort((a, b) => a - b) : this.cards.length ? [this.at] : [];
  }

  // of the question that the item under the keys is about
  get classes() {
    return this.data.asked?.[this.cards[this.at]?.question] || this.data.classes;
  }

  get searching() {
    return this.classes.length > this.data.most_buttons;
  }

  draw() {
    this.drawAnswers();
    this.drawCommands();
    this.drawTitle();
    this.drawStatus();
  }

  drawStatus() {
    super.drawStatus();
    const file = this.shut ? keptButton(this.outbox, this.data.person, this.data.project) : null;
    this.kept.replaceChildren(...(file ? [file] : []));
  }

  drawTitle() {
    const n = this.chosen.size;
    const card = this.cards[this.at];
    this.title.textContent = n ? `${counted(n, "item")} chosen` : card ? `${card.id} · ${this.at + 1} of ${this.cards.length}` : "";
  }

  drawTile(place) {
    const card = this.cards[place];
    const tile = this.tiles[place];
    const words = { label: card.class, skip: "skipped", unsure: "unsure" }[card.kind] || "not labelled";
    const sure = card.sure ? ` ${Math.round(100 * card.sure)}\u00a0%` : "";
    const said = card.says && card.says !== card.class ? make("span", { class: `says ${card.verdict}` }, "model: ", ...broken(card.says), sure) : null;
    const people = (card.said || []).map((one) => make("span", { class: "says", dir: "auto", textContent: one }));
    const marks = [card.question, card.changed ? "changed" : "", card.kept ? "kept" : "", card.flag ? ["flagged", card.reason].filter(Boolean).join(": ") : "", card.note ? "note" : ""].filter(Boolean).join(" · ");
    const more = [card.who, card.why && `asked: ${card.why}`, card.note, card.says && `the model says ${card.says}${sure}`, card.chance !== null && card.chance !== undefined ? `chance that the label is right: ${Math.round(100 * card.chance)}\u00a0%` : ""].filter(Boolean);
    tile.title = [card.id, ...more].join("\n");
    tile.replaceChildren(
      make("span", { class: "face" }, card.node || (card.node = faceOf(card.face))),
      make("span", { class: "given", dir: "auto" }, words),
      ...(said ? [said] : []),
      ...people,
      ...(marks ? [make("span", { class: "marks", dir: "auto", textContent: marks })] : []),
    );
    tile.classList.toggle("here", place === this.at);
    tile.classList.toggle("changed", Boolean(card.changed));
    tile.setAttribute("aria-selected", String(this.chosen.has(place)));
  }

  matches() {
    const plain = (name) => name.toLowerCase().replace(/[_\-\s]+/g, " ");
    const words = plain(this.box.value).split(" ").filter(Boolean);
    const says = this.cards[this.at]?.says; // the model's opinion of the item comes first
    return this.classes
      .filter((one) => words.every((word) => plain(one.name).includes(word)))
      .sort((a, b) => (b.name === says) - (a.name === says));
  }

  drawAnswers() {
    const none = !this.cards.length;
    const button = (one, key) => {
      const made = make("button", { class: "answer", title: one.help ? `${one.name}: ${one.help}` : one.name, disabled: none, "data-class": one.name, onclick: () => this.relabel(one.name) },
        make("span", { class: "name" }, ...broken(one.name)), key && key !== one.name.toLowerCase() ? make("kbd", { textContent: keyName(key) }) : null);
      if (one.colour) made.style.setProperty("--colour", one.colour);
      made.classList.toggle("coloured", Boolean(one.colour));
      return made;
    };
    const { classes } = this;
    this.answers.classList.toggle("many", this.searching);
    this.answers.style.setProperty("--word", longestWord(classes));
    if (!this.searching) {
      this.answers.style.setProperty("--narrow", narrow(classes));
      this.answers.replaceChildren(...classes.map((one) => button(one, one.key)));
      return;
    }
    if (this.box.parentNode !== this.answers) this.answers.replaceChildren(this.box, make("div", { class: "list" }));
    const found = this.matches().slice(0, 6);
    this.first = found[0] || null;
    this.answers.querySelector(".list").replaceChildren(...found.map((one) => button(one, "")));
  }

  drawCommands() {
    const keys = this.data.commands;
    const none = !this.cards.length;
    const targets = this.targets.map((place) => this.cards[place]);
    const one = (name, words, act, title, disabled, key) => make("button", { class: "command", disabled, title, onclick: act, "data-command": name }, words, ...(key ? [make("kbd", { textContent: keyName(key) })] : []));
    const looked = this.touched || this.cards.length < 2; // as in `refused`
    this.commands.replaceChildren(
      one("keep", targets.length > 1 ? "The labels are right" : "The label is right", () => this.keep(), "It was looked at again and stays: it is in doubt no more", !targets.some((card) => card.kind === "label"), looked && keys.keep),
      one("choose", "Choose", () => this.pick(), "The keys then act on all that are chosen (also Ctrl and a click)", none, keys.choose),
      one("flag", targets.some((card) => !card.flag) || none ? "Flag" : "Clear flag", () => this.flag(), "Needs attention, or no longer", none, keys.flag),
      one("note", "Note", () => this.note(), "A remark, on all that are chosen", none, keys.note),
      one("like", "The model is right", () => this.agree(), "It gets the class that the model says", !targets.some((card) => differs(card)), keys.like),
      one("clear", targets.length && targets.every((card) => card.kind === "skip" || card.kind === "unsure") ? "Ask again" : targets.length > 1 ? `Remove the labels of ${targets.filter((card) => card.kind).length}` : "Remove the label", () => this.clear(), this.whose(targets), !targets.some((card) => card.kind), looked && keys.clear),
      one("undo", "Undo", () => this.undo(), "Take back the last thing I did, wherever", !this.history.length && !(this.numbers && this.numbers.undoable), keys.undo),
      one("zoom", "Large", () => this.zoom(), "As large as the window", none, keys.zoom),
    );
  }

  whose(cards) {
    const people = [...new Set(cards.flatMap((card) => card.people || []))];
    return `Take away ${people.length ? `what ${people.join(", ")} said` : "the label"}: the ${cards.length > 1 ? "items" : "item"} may be asked about again`;
  }

  // ------------------------------------------------------------------------------------- doing

  go(place) {
    if (!this.cards.length) return;
    const before = this.at;
    this.at = Math.max(0, Math.min(this.cards.length - 1, place));
    this.drawTile(before);
    this.drawTile(this.at);
    const card = this.cards[this.at];
    this.tiles[this.at].scrollIntoView({ block: "nearest" });
    if (this.node.getRootNode().activeElement?.classList.contains("tile")) this.tiles[this.at].focus({ preventScroll: true });
    this.drawCommands();
    this.drawTitle();
    if (this.searching || card.question !== this.cards[before].question) this.drawAnswers();
  }

  pick() {
    this.touched = true;
    if (this.chosen.has(this.at)) this.chosen.delete(this.at);
    else this.chosen.add(this.at);
    this.drawTile(this.at);
    this.drawCommands();
    this.drawTitle();
  }

  change(operation, places, what) {
    const sent = this.send(operation);
    this.history.push([{ op: sent.op, before: this.looks(places) }]);
    for (const place of places) {
      Object.assign(this.cards[place], what(this.cards[place]));
      this.drawTile(place);
    }
    this.told?.();
    return sent;
  }

  // all that a press sends is one entry of the history
  together(act) {
    const n = this.history.length;
    const sent = act();
    const parts = this.history.splice(n).flat();
    if (parts.length) this.history.push(parts);
    return sent;
  }

  looks(places) {
    return places.map((place) => [place, { ...this.cards[place] }]);
  }

  // what was done is said once it is stored
  done(places, words, sent = null) {
    const drawn = new Set([...this.chosen, ...places]);
    const several = this.chosen.size > 0;
    this.chosen.clear();
    drawn.forEach((place) => this.drawTile(place));
    if (sent) this.after.set(sent.op, () => this.say(`${words} ${keyName(this.data.commands.undo)} takes it back.`));
    else this.say(words);
    if (several) this.draw();
    else this.go(this.at + 1);
  }

  // what an operation says of places of one question
  about(places) {
    const question = this.cards[places[0]].question;
    return { items: places.map((place) => this.cards[place].item), ...(question ? { question } : {}) };
  }

  relabel(name) {
    const places = this.targets.filter((place) => this.cards[place].question === this.cards[this.at].question);
    if (!places.length) return this.say("What is chosen is of another question: go to one of it first.");
    const others = this.targets.length - places.length;
    const rest = others ? ` ${counted(others, "chosen item")} of another question left as ${others === 1 ? "it is" : "they are"}.` : "";
    // beside a map it is one's own choice, also where others said the same
    const mine = (card) => !this.data.beside || (card.people || []).includes(this.data.person);
    const changing = places.filter((place) => this.cards[place].class !== name || this.cards[place].kind !== "label" || this.cards[place].said?.length || !mine(this.cards[place]));
    const sent = changing.length ? this.give(changing, name) : null;
    this.done(places, `${sent ? `${counted(changing.length, "item")} labelled ${name}.` : `${name} already.`}${rest}`, sent);
  }

  give(places, name, mark = { changed: true }) {
    const more = { ...this.about(places), class: name };
    const what = (card) => ({ kind: "label", class: name, said: [], people: [...new Set([...(card.people || []), this.data.person])], ...mark });
    // beside a map a class is one's own choice; that a label is right is a review there, too
    if (this.data.beside && !mark.kept) return this.change({ kind: "choose", ...more }, places, what);
    return this.change({ kind: "relabel", ...more }, places, what);
  }

  // places -> [those of one question and, where it is asked for, of one class that the model says]
  groups(places, of = () => "") {
    const groups = new Map();
    for (const place of places) {
      const name = JSON.stringify([this.cards[place].question, of(this.cards[place])]);
      groups.set(name, [...(groups.get(name) || []), place]);
    }
    return [...groups.values()];
  }

  keep() {
    const places = this.targets.filter((place) => this.cards[place].kind === "label");
    if (!places.length) return;
    const sent = this.together(() => this.groups(places, (card) => card.class).map((some) => this.give(some, this.cards[some[0]].class, { kept: true })));
    this.done(places, `${counted(places.length, "label")} kept.`, sent.at(-1));
  }

  agree() {
    const places = this.targets.filter((place) => differs(this.cards[place]));
    if (!places.length) return;
    const sent = this.together(() => this.groups(places, (card) => card.says).map((some) => this.give(some, this.cards[some[0]].says)));
    this.done(places, `${counted(places.length, "item")} labelled as the model says.`, sent.at(-1));
  }

  clear() {
    const places = this.targets.filter((place) => this.cards[place].kind);
    if (!places.length) return;
    const sent = this.together(() => this.groups(places).map((some) => this.change({ kind: "clear", ...this.about(some) }, some, () => ({ kind: "", class: "", said: [], changed: true }))));
    this.done(places, `${counted(places.length, "label")} taken away.`, sent.at(-1));
  }

  flag() {
    const places = this.targets;
    const on = places.some((place) => !this.cards[place].flag);
    this.together(() => {
      for (const place of places)
        if (Boolean(this.cards[place].flag) !== on) this.change({ kind: "flag", item: this.cards[place].item, on }, [place], () => ({ flag: on, reason: "" }));
    });
    this.drawCommands();
  }

  note() {
    // a note is of an item, whatever is asked of it
    const { cards } = this; // those of now, whatever stands here when the note is kept
    const [first, ...others] = [...new Map(this.targets.map((place) => [cards[place].item, place])).values()];
    const card = cards[first];
    if (!card) return;
    const written = (place, text, sent) => {
      const here = cards === this.cards;
      this.history.push([{ op: sent.op, before: here ? this.looks([place]) : [] }]);
      if (!here) return;
      this.cards[place].note = [this.cards[place].note, text].filter(Boolean).join(" | ");
      this.drawTile(place);
    };
    const id = others.length ? counted(others.length + 1, "item") : card.id;
    this.noteOn({ ...card, id }, (text, operation) => this.together(() => {
      written(first, text, operation);
      for (const place of others) written(place, text, this.send({ kind: "note", item: cards[place].item, text }));
      this.drawCommands();
    }));
  }

  undo() {
    const last = this.lastHere(this.history.map((entry) => entry.at(-1)), "last");
    if (!last) {
      if (this.looked && this.numbers && !this.numbers.undoable) {
        this.say("Nothing to undo.");
        return;
      }
      // done elsewhere, or before these decisions were drawn
      const sent = this.send({ kind: "undo", target: null });
      this.after.set(sent.op, (ack) => this.took(ack));
      return;
    }
    const entry = this.history.pop();
    for (const part of [...entry].reverse()) {
      const sent = this.send({ kind: "undo", target: part.op });
      this.after.set(sent.op, (ack) => this.took(ack));
      this.steps.set(sent.op, { entry, part, now: this.looks(part.before.map(([place]) => place)) });
      this.restore(part.before);
    }
    if (last.before.length) this.go(last.before[0][0]);
  }

  // the tiles as they were: [[place, what it was]]
  restore(before) {
    for (const [place, was] of before) {
      Object.assign(this.cards[place], { changed: false, kept: false }, was);
      this.drawTile(place);
    }
  }

  // an operation that does not hold: the tiles are as they were before it
  forget(op) {
    for (const entry of this.history) {
      const place = entry.findIndex((part) => part.op === op);
      if (place >= 0) this.restore(entry.splice(place, 1)[0].before);
    }
    this.history = this.history.filter((entry) => entry.length);
  }

  // what the server took back, and how the items stand now
  took(ack) {
    const about = ack.about;
    if (!about) return;
    this.forget(about.op);
    const stands = new Map(about.items.map((one) => [one.item, one]));
    this.cards.forEach((card, place) => {
      const now = stands.get(card.item);
      if (!now || card.question) return; // what was done here stands as it was; of other questions it is not said
      Object.assign(card, { kind: now.kind, class: now.class, flag: now.flag, reason: now.flag ? card.reason : "" });
      this.drawTile(place);
    });
    this.say(`Taken back: ${about.words}.`);
    this.drawCommands();
  }

  zoom() {
    if (this.cards[this.at]) enlarge(this, this.cards[this.at]);
  }

  // ------------------------------------------------------------------------------------- keys

  // why a key is not taken beside a map: it is of what somebody chose, saw, and for K and Backspace pressed
  refused(key, event) {
    const { choose, zoom, undo, keep, clear } = this.data.commands;
    if (!this.data.beside || key === undo) return "";
    const ring = event.composedPath()[0].dataset?.item; // where the keys stand on the map
    if (Date.now() < this.late) return "This item came a moment ago: look at it, and press the key again.";
    if (Date.now() < this.awaits || (ring && !this.cards.some((card) => String(card.item) === ring))) return "Another item is chosen than stands here: the key was not taken.";
    if (this.touched || key === choose || key === zoom) return "";
    if (this.data.offered) return "Nobody chose this item: click it, or another one on the map, and keys are of it.";
    return this.cards.length > 1 && (key === keep || key === clear) ? `This key is not of ${counted(this.cards.length, "item")} at once: click a tile, or choose some by ${keyName(choose)}.` : "";
  }

  searchKey(event) {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape") {
      this.box.value = "";
      this.box.blur();
      this.drawAnswers();
    } else if (event.key === "Enter" && this.first && this.box.value.trim()) {
      event.preventDefault();
      const why = this.refused("", event);
      if (why) return this.say(why);
      const name = this.first.name;
      this.box.value = "";
      this.relabel(name);
      this.drawAnswers();
    } else if (!this.box.value && event.key.startsWith("Arrow")) this.move(event);
  }

  move(event) {
    const across = Math.max(1, this.tiles.findIndex((tile) => tile.offsetTop > this.tiles[0].offsetTop));
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
    if (!step || this.cards.length < 2) return false;
    this.go(this.at + step);
    this.take(event);
    return true;
  }

  key(event) {
    if (!this.here || event.isComposing || this.node.offsetParent === null) return;
    if (this.overlay) {
      this.overlayKey(event);
      return;
    }
    if (event.composedPath()[0] === this.box) return;
    const walking = event.composedPath()[0].classList?.contains("walk"); // over the map, which has some keys of its own
    if (walking ? STEERS.has(event.key) || PRESSES.has(event.key) : theirs(event, this.place)) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey) {
      if (pressed(event, ["z"]) === "z") { this.undo(); this.take(event); }
      return;
    }
    if (this.move(event) || event.repeat) return;
    const keys = this.data.commands;
    const classes = this.searching ? [] : this.classes;
    const key = pressed(event, [...classes.map((one) => one.key), ...Object.values(keys)]);
    if (key === null || (event.altKey && !this.searching)) return;
    const found = classes.find((one) => one.key && one.key === key);
    const acts = { [keys.clear]: () => this.clear(), [keys.choose]: () => this.pick(), [keys.flag]: () => this.flag(), [keys.keep]: () => this.keep(), [keys.like]: () => this.agree(), [keys.note]: () => this.note(), [keys.undo]: () => this.undo(), [keys.zoom]: () => this.zoom() };
    const why = found || acts[key] ? this.refused(found ? "" : key, event) : "";
    if (why) this.say(why);
    else if (found) this.relabel(found.name);
    else if (acts[key]) acts[key]();
    else if (this.searching && /^[\p{L}\p{N}]$/u.test(event.key)) { this.box.focus({ preventScroll: true }); return; }
    else return;
    this.take(event);
  }

  // ------------------------------------------------------------------------------------- speaking

  wants() {
    return false;
  }

  request() {
    return { ops: this.sends(), want: 0, have: [], screen: null, model: -1 };
  }

  take_in(reply, asked) {
    this.numbers = { ...reply.numbers, fitting: false }; // what the model says is looked at anew when the page is
    this.looked = true;
    for (const ack of this.acknowledge(reply, asked)) {
      const step = this.steps.get(ack.op);
      this.steps.delete(ack.op);
      if (ack.status !== "saved") this.forget(ack.op);
      if (!step) continue;
      if (ack.status === "saved") step.entry.splice(step.entry.indexOf(step.part), 1);
      else {
        // it was not taken back: it stands, and can be taken back later
        if (!this.history.includes(step.entry)) this.history.push(step.entry);
        this.restore(step.now);
      }
    }
    this.drawCommands();
    if (!this.data.beside || !(reply.acks || []).length) return;
    clearTimeout(this.redraws); // the map follows once no more is pressed, and not under a lasso
    const redraw = () => {
      if (this.held) this.redraws = setTimeout(redraw, REDRAW);
      else if (this.here) this.trigger?.("renew", newId());
    };
    this.redraws = setTimeout(redraw, REDRAW);
  }
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let gallery = galleries.get(data.project);
  if (!gallery) {
    gallery = new Gallery(data);
    galleries.set(data.project, gallery);
  }
  gallery.update(data, setTriggerValue);
  const mounted = gallery.mount(parentElement);
  return () => gallery.unmount(mounted);
}
