// The desk: an item, the questions that are asked about it, and their keys. One question is the case of one: the card
// ends with its key. A row of several ends with Enter, which stores what stands: switches turn with a key each, and a
// question with classes has the first keys while it is its turn.
//
// The page's script mounts this component once and leaves it alone. It holds a short queue of cards, answers
// keys itself and speaks with POST {base}/sync (docs/reference/desk.md): every operation carries an id made here, is kept
// in localStorage until the server says that it is stored, and may be sent any number of times.

const desks = new Map(); // project -> Desk: outlives reruns of the script and remounts
const READY = 4; // cards whose pictures are fetched ahead
const IDLE_LOOK = 3000; // ms between looks at what others did
const PLACES = [..."123456789"]; // keys of the classes that a search lists
const unheard = []; // keys pressed while the page draws its desk anew
const FRESH = 5000; // ms after which such a key is not acted on any more
const READING = 400; // ms that an item stands before anybody can have read it
const HEARD = /^(.|Enter|Backspace|Delete|Escape|Home|End|Arrow\w+)$/u;
let last = null; // the desk that stood here last, and on which page

// what stands before and after a part that stays: who types in it keeps the focus
const around = (node, part, before, after) => {
  if (part.parentNode !== node) node.append(part);
  for (const child of [...node.childNodes]) if (child !== part) child.remove();
  part.before(...before);
  part.after(...after);
};

// --------------------------------------------------------------------------------------------- the desk

class Desk extends Speaker {
  constructor(data) {
    super(data);
    this.checking = data.mode === "check"; // frozen labels are checked: blind, in their order
    this.queue = [];
    this.closed = new Set(); // asks answered here; the server may not know yet
    this.done = new Set(); // items answered here: a card for one, asked anew before its answer arrived, is stale
    this.history = []; // {op, card} of this tab, newest last
    this.undone = [];
    this.model = null;
    this.reported = null; // the question on screen that the server was told of last
    this.awaited = new Set(); // undos of which only the server knows what they take back
    this.faster = 0; // further cards ahead, for keys that met an empty queue
    this.left = Infinity; // when the page took the desk away
    this.fetches = ""; // the operation that asks for an item of this person's choice, until it is on screen
    this.shownAt = 0;
    this.search = "";
    this.copies = null; // of the item before: {item, class, n} without a label
    this.view = null; // an earlier answer that is looked at: its place in the trail
    this.trail = null;
    this.flags = new Map(); // item -> whether it is flagged, as far as this tab knows
    this.remarks = new Map(); // item -> notes of this tab that its cards do not have yet
    this.plane = null; // the pool's points, where it has two features
    this.hidden = stored("desk-hide-guess") === "1";
    this.seeing = stored("desk-seeing") === "1";
    this.telling = stored(`desk-told/${data.project}`) === "1"; // the instructions stand beside the item
    this.sheet = null; // what they say
    this.sheetNode = make("div", { class: "sheet" });
    this.node = make("div", { class: "desk" });
    this.build();
    this.listen();
    this.pump();
  }

  update(data, trigger) {
    this.turning = false;
    const another = data.person !== this.data.person;
    const changed = JSON.stringify(data.asked) !== JSON.stringify(this.data.asked);
    this.renew(data, trigger);
    if (changed) {
      this.looked = false; // something was done past this desk
      this.pump(true);
    }
    const year = 365 * 24 * 3600;
    document.cookie = `${data.cookie}=${encodeURIComponent(data.person)}; path=/; max-age=${year}; samesite=strict`;
    if (another) {
      // somebody else sits down: what the one before did is theirs, and waits here for them where it was not sent
      this.close();
      this.queue = [];
      this.history = [];
      this.undone = [];
      this.closed.clear();
      this.done.clear();
      this.awaited.clear();
      this.fetches = "";
      this.flags.clear();
      this.remarks.clear();
      this.after.clear();
      this.faster = 0;
      this.reported = this.model = null;
      this.view = this.trail = null;
      this.numbers = this.sheet = null;
      this.offered = false;
      this.say("");
      this.pump();
    }
    this.node.dataset.person = data.person;
    this.question.textContent = this.heading;
    if (this.checking) this.pump(true); // the page says whether to go on
  }

  mount(parent) {
    const mounted = super.mount(parent);
    last = { desk: this, page: location.pathname };
    this.left = Infinity;
    this.hear();
    return mounted;
  }

  unmount(mounted) {
    super.unmount(mounted);
    if (!this.here) this.left = performance.now();
  }

  // whether the page, which took the desk away, is to put it back: soon, and not once its checks are decided
  get returns() {
    const decided = this.checking && !this.data.on && (this.numbers?.check.phase ?? "checking") !== "checking";
    return this.here || (!decided && performance.now() - this.left < FRESH);
  }

  // No key is lost while the page takes the desk away and puts it back, or another in its place.
  miss(event) {
    const mine = last?.desk === this && last.page === location.pathname && this.returns;
    if (!mine || !HEARD.test(event.key) || event.ctrlKey || event.metaKey || theirs(event)) return;
    unheard.push({ event, desk: this, shown: this.shown, page: last.page, at: performance.now() });
    this.take(event);
  }

  // They count for the item that was on screen and is there again; for another they would answer what nobody saw.
  hear() {
    const missed = unheard.splice(0).filter((one) => one.page === location.pathname);
    const counts = (one) => one && one.desk === this && one.shown && one.shown === this.shown && performance.now() - one.at < FRESH;
    while (counts(missed[0])) this.key(missed.shift().event);
    if (missed.length) this.say(`The page was being drawn anew: ${counted(missed.length, "key")} ${missed.length === 1 ? "was" : "were"} not taken.`);
  }

  get card() {
    return (!this.fetches && !this.shut && this.queue[0]) || null;
  }

  // what is on screen: an earlier answer, or the question
  get shown() {
    return this.view === null ? this.card : this.trail[this.view];
  }

  // the questions of this desk, each with its classes; one without is a switch
  get asked() {
    return this.data.asked;
  }

  // whether one question is asked, so that its key ends the card
  get alone() {
    return this.asked.length === 1;
  }

  // those that are open about the item on screen
  get open_questions() {
    const names = this.shown?.questions?.map((one) => one.name);
    return this.alone || !names ? this.asked : this.asked.filter((one) => names.includes(one.name));
  }

  get switches() {
    return this.open_questions.filter((one) => !one.classes);
  }

  // the question with classes whose turn it is
  get turn() {
    const done = (!this.alone && this.shown?.turned) || new Set();
    return this.open_questions.find((one) => one.classes && !done.has(one.name)) || null;
  }

  // what stands above the item; of one that was answered in part it says how many are open
  get heading() {
    const open = this.view === null && this.shown ? this.open_questions.length : this.asked.length;
    return open < this.asked.length ? `${open} of ${this.data.question}` : this.data.question;
  }

  // whether classes, or switches, are searched by typing
  get searching() {
    return this.alone ? this.data.classes.length > this.data.most_buttons : this.switches.some((one) => !one.key);
  }

  // ------------------------------------------------------------------------------------- parts

  build() {
    this.head = make("div", { class: "head" });
    this.question = make("span", { class: "question", dir: "auto", role: "heading", "aria-level": "2" });
    this.title = make("span", { class: "title" });
    this.marks = make("span", { class: "marks" }); // what is noted and flagged about the item
    this.badge = make("span", { class: "badge" });
    this.head.append(this.question, make("span", { class: "space" }), this.status, this.shelf);
    this.under = make("div", { class: "head under" }, this.title, this.badge, this.marks);
    this.stage = make("div", { class: "stage" });
    this.answers = make("div", { class: "answers" });
    this.switched = make("div", { class: "switches" });
    this.box = make("input", {
      dir: "auto",
      class: "search", type: "text", autocomplete: "off", spellcheck: false, "aria-label": "Search answers",
      oninput: () => { this.search = this.box.value; this.drawAnswers(); this.drawCommands(); },
      onkeydown: (event) => this.searchKey(event),
    });
    this.commands = make("div", { class: "commands" });
    this.aside = make("div", { class: "aside" });
    this.live = make("div", { class: "unseen", "aria-live": "polite" });
    const left = make("div", { class: "left" }, this.head, this.under, this.stage, this.answers, this.commands, this.message);
    this.node.append(left, this.aside, this.live);
  }

  draw() {
    const late = this.later;
    this.later = false;
    this.drawCard();
    if (late) {
      this.drawAside();
      this.prepare();
    }
    this.drawAnswers();
    this.drawMarks();
    this.drawCommands();
    this.drawStatus();
  }

  drawCard() {
    const card = this.shown;
    this.node.classList.toggle("looking-back", this.view !== null);
    // without a card the words depend on what the server last said is left
    const n = this.numbers;
    const drawn = card || (n ? `none of ${[n.left, n.labelled, n.skipped, n.unsure, this.away, this.shut, this.outbox.of(this.data.person).length]}` : `none yet, ${this.away}, ${this.shut}`);
    if (drawn === this.drawn && this.stage.childNodes.length) return;
    this.drawn = drawn;
    this.stage.replaceChildren();
    if (!card) {
      this.title.textContent = "";
      this.badge.hidden = true;
      this.marks.replaceChildren();
      const numbers = this.numbers;
      if (this.shut) {
        this.stage.append(make("p", { class: "empty", textContent: `${this.shut} What you answered since is kept in this browser, and is sent once you may open it again.` }), ...[keptButton(this.outbox, this.data.person, this.data.project)].filter(Boolean));
        this.drawAside();
        return;
      }
      if (this.checking && numbers) {
        this.stage.append(make("p", { class: "empty", textContent: numbers.check.phase === "checking" && this.outbox.of(this.data.person).length ? "The next check comes in a moment." : checksOver(numbers.check) }));
        this.drawAside();
        return;
      }
      const done = numbers && numbers.left === 0;
      const kept = this.outbox.of(this.data.person).length;
      const away = `${kept ? `${counted(kept, "answer is", "answers are")} kept in this browser; more` : "More"} items come when the server is back.`;
      const words = done ? "Nothing is left to ask." : this.away ? away : numbers ? "Getting the next item ..." : "Getting the first items ...";
      this.stage.append(make("p", { class: "empty", textContent: words }));
      if (done) {
        const detail = `${counted(numbers.labelled, "item")} labelled, ${numbers.skipped} skipped, ${numbers.unsure} unsure.`;
        this.stage.append(make("p", { class: "empty small", textContent: detail }));
        if (numbers.skipped + numbers.unsure > 0)
          this.stage.append(make("button", { class: "command", textContent: "Ask the skipped and unsure again", onclick: () => this.send({ kind: "requeue" }) }));
      }
      this.drawAside();
      return;
    }
    this.title.textContent = this.title.title = untold(card.id, this.data.classes);
    const back = this.view === null ? "" : `your answer, ${counted(this.view + 1, "item")} back: ${this.answerOf(card)}`;
    this.badge.hidden = !(back || card.badge);
    this.badge.textContent = this.badge.title = back || card.badge || "";
    this.badge.className = `badge ${back ? "back" : card.role}`;
    if (!card.node) card.node = faceOf(card.face);
    this.stage.className = `stage of-${card.face.kind}`;
    this.stage.append(card.node);
    if (this.plane && card.at) this.stage.append(plane(this.plane, card.at, 300));
    this.stage.classList.toggle("two", Boolean(this.plane && card.at));
    this.shownAt = performance.now();
    this.stands = false;
    delete this.node.dataset.stands;
    clearTimeout(this.standTimer);
    this.standTimer = setTimeout(() => { this.stands = true; this.node.dataset.stands = ""; }, READING);
    if (!this.later) {
      this.drawAside();
      this.prepare();
    }
    clearTimeout(this.liveTimer);
    this.liveTimer = setTimeout(() => { this.live.textContent = `Item ${untold(card.id, this.data.classes)}. ${back || card.why || ""}`; }, 250);
  }

  // The next item alone is drawn in the key's own task: what stands about it has a task of its own, after the
  // frame with the item. (A page that nobody sees has no frames.)
  drawSoon() {
    this.later = !document.hidden;
    if (!this.later) {
      this.draw();
      return;
    }
    this.drawCard();
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => setTimeout(() => this.drawRest(), 0));
  }

  drawRest() {
    if (!this.later) return; // all of it was drawn meanwhile
    this.later = false;
    this.drawAside();
    this.drawAnswers();
    this.drawMarks();
    this.drawCommands();
    this.prepare();
    if (this.searching && this.here && !this.overlay) this.box.focus({ preventScroll: true });
  }

  // badges of what somebody noted or flagged about the item
  drawMarks() {
    const card = this.shown;
    const notes = card ? this.notesOn(card) : [];
    const n = notes.length;
    this.marks.replaceChildren(
      ...(card && this.isFlagged(card) ? [make("span", { class: "badge marked", textContent: "flagged" })] : []),
      ...(n ? [make("button", { class: "badge marked", title: notes.map(([who, text]) => `${who}: ${text}`).join("\n"), onclick: () => this.note(), textContent: n === 1 ? "note" : `${n} notes` })] : []),
    );
  }

  notesOn(card) {
    return [...(card.notes || []), ...(this.remarks.get(card.item) || [])];
  }

  // what waits is drawn, and its pictures fetched and decoded, before it is needed
  prepare() {
    for (const next of this.queue.slice(1, 1 + READY)) {
      if (next.node) continue;
      next.node = faceOf(next.face);
      if (next.node.decode) next.node.decode().catch(() => {});
    }
  }

  drawAside() {
    const card = this.shown;
    this.aside.classList.toggle("telling", this.telling);
    if (this.telling) {
      // what is being read stays where it is while the items change
      if (this.aside.firstChild !== this.sheetNode) this.aside.replaceChildren(this.sheetNode);
      return;
    }
    this.aside.replaceChildren();
    if (this.checking && this.view === null) {
      if (this.numbers?.check.curve) this.aside.append(...checksPanel(this.numbers.check));
      return;
    }
    if (!card) return;
    if (this.view !== null) {
      const words = `${keyName(this.data.commands.back)} goes further back, ${keyName(this.data.commands.forward)} forward; ${this.changes} Esc returns to the question.`;
      this.aside.append(make("h2", { textContent: "An earlier answer" }), make("p", { textContent: words }));
      return;
    }
    this.aside.append(make("h2", { textContent: "Why this one" }), make("p", { textContent: card.why || "" }));
    const speaks = card.guess && card.guess.length;
    if (speaks) {
      const words = this.hidden ? "Show the model's guess" : "Hide the model's guess";
      this.aside.append(make("button", {
        class: "command quiet", textContent: words, title: "So that it does not lead you",
        onclick: () => { this.hidden = !this.hidden; stored("desk-hide-guess", this.hidden ? "1" : "0"); this.drawAside(); },
      }));
    }
    if (speaks && !this.hidden) {
      const bars = make("div", { class: `guess ${stacked(card.guess.map(([name]) => name)) ? "stacked" : ""}` });
      for (const [name, p] of card.guess) {
        const bar = make("span", { class: "bar" });
        bar.style.width = `${Math.max(1, Math.round(100 * p))}%`;
        bars.append(
          make("span", { class: "name", title: name }, ...broken(name)),
          make("span", { class: "track" }, bar),
          make("span", { class: "p", textContent: card.early ? "" : `${Math.round(100 * p)}\u00a0%` }),
        );
      }
      this.aside.append(make("h3", { textContent: card.early ? "A first guess" : "The model's guess" }), bars);
      if (card.sources?.length) {
        const said = make("ul", { class: "said" });
        for (const [source, name, trust] of card.sources)
          said.append(make("li", {}, make("span", { class: "source", textContent: `${source[0].toUpperCase()}${source.slice(1)}: ` }), make("b", {}, ...broken(name)), make("span", { class: "trust", textContent: trust })));
        this.aside.append(make("h3", { textContent: "What it began with" }), said);
        if (card.differs) this.aside.append(make("p", { class: "small", textContent: card.differs }));
      }
    }
    if (card.near && card.near.length && !this.hidden) {
      const near = make("div", { class: `near of-${card.near[0].face.kind} ${stacked(card.near.map((one) => one.class), card.near[0].face.kind === "image" ? 9 : 14) ? "stacked" : ""}` });
      near.style.setProperty("--letters", longest(card.near.map((one) => one.class)));
      for (const one of card.near) {
        const face = one.face.kind === "row" && !one.face.rows.length ? make("p", { textContent: "The same in every column." }) : faceOf(one.face);
        near.append(make("figure", {}, face, make("figcaption", { title: one.class }, ...broken(one.class))));
      }
      this.aside.append(make("h3", { textContent: "Nearest labelled items" }), near);
    }
    if (card.face.kind !== "row") this.drawSeen(card);
  }

  // what the features are made of: the small copy of a picture, the terms of a text; asked for on demand
  drawSeen(card) {
    const words = this.seeing ? "Hide what the model sees" : "What the model sees";
    this.aside.append(make("button", {
      class: "command quiet seeing", textContent: words, "aria-expanded": String(this.seeing), title: "What its features are made of",
      onclick: () => { this.seeing = !this.seeing; stored("desk-seeing", this.seeing ? "1" : "0"); this.drawAside(); this.aside.querySelector(".seeing")?.focus({ preventScroll: true }); },
    }));
    if (!this.seeing) return;
    const place = make("div", { class: "seen" });
    this.aside.append(place);
    const draw = () => {
      const found = card.seen;
      const terms = (found.terms || []).map(([term, weight]) => {
        const bar = make("span", { class: "bar" });
        bar.style.width = `${Math.max(1, Math.round(100 * weight))}%`;
        return [make("span", { class: "name", dir: "auto", title: term, textContent: term }), make("span", { class: "track" }, bar), make("span")];
      });
      place.replaceChildren(
        ...(found.src ? [make("img", { class: "pixels", src: found.src, alt: "The copy that the model sees" })] : []),
        make("p", { class: "small", textContent: found.words }),
        ...(terms.length ? [make("div", { class: "guess" }, ...terms.flat())] : []),
      );
    };
    if (card.seen) return draw();
    place.append(make("p", { class: "small", textContent: "..." }));
    this.post("look", { kind: "seen", item: card.item }).then((reply) => { if (reply) { card.seen = reply; draw(); } })
      .catch((error) => place.replaceChildren(make("p", { class: "small", textContent: error instanceof TypeError ? "No answer from the server." : error.message })));
  }

  matches(typed = this.search, classes = this.data.classes) {
    // classes that hold every typed word, in any order; the model's guesses first
    const plain = (name) => name.toLowerCase().replace(/[_\-\s]+/g, " ");
    const words = plain(typed).split(" ").filter(Boolean);
    const order = new Map(((!this.hidden && this.card?.guess_order) || []).map((name, place) => [name, place]));
    const rank = (name) => (order.has(name) ? order.get(name) : 1e6);
    return classes
      .filter((one) => words.every((word) => plain(one.name).includes(word)))
      .map((one, place) => ({ ...one, place }))
      .sort((a, b) => rank(a.name) - rank(b.name) || a.place - b.place);
  }

  // the class that Enter takes: one that somebody typed words of, else the guess that is shown
  get first() {
    if (this.search.trim()) return this.matches()[0]?.name || "";
    return (this.view === null && !this.hidden && this.card?.guess?.[0]?.[0]) || "";
  }

  // A digit goes on with the words in the box where some class has it there; else it is a listed class's key.
  spells(digit) {
    return Boolean(this.search) && this.data.classes.some((one) => one.name.includes(digit)) && ["", " "].some((gap) => this.matches(this.search + gap + digit).length > 0);
  }

  drawAnswers() {
    this.question.textContent = this.heading;
    this.answers.className = this.alone ? "answers" : "answers every";
    if (this.alone) this.drawClasses();
    else this.drawRow();
  }

  drawClasses() {
    const classes = this.data.classes;
    const said = this.view === null ? null : this.shown.said;
    this.answers.classList.toggle("many", this.searching);
    this.answers.classList.toggle("lengthy", longest(classes.map((one) => one.name)) > LENGTHY);
    this.answers.style.setProperty("--word", leastWide(classes)); // so many side by side that no word is cut
    if (classes.length < 2 || (this.namer?.node.isConnected && this.namer.box.value)) {
      // a model needs two classes: until then the field stands ready, and what is being typed in it stays
      if (this.namer?.node.parentNode !== this.answers) {
        this.namer = this.naming((name, fresh) => this.choose(this.turn, name, fresh), "Type the class of this item; Enter labels it");
        this.answers.replaceChildren(this.namer.node);
        this.namer.focus();
      }
      this.namer.told.textContent = classes.length ? `One class so far: ${classes[0].name}.` : "There are no classes yet: they are what you type. Classes, at the top of the page, names many at once.";
    } else if (!this.searching) {
      this.answers.style.setProperty("--narrow", narrow(classes));
      this.answers.replaceChildren(...classes.map((one) => this.answerButton(this.turn, one, one.key, said?.[this.turn.name] === one.name)));
    } else {
      if (this.box.parentNode !== this.answers) this.answers.replaceChildren(this.box, make("div", { class: "list" }));
      this.box.placeholder = `Type to search ${classes.length} classes; Enter takes the first`;
      const found = this.matches().slice(0, 9);
      const list = this.answers.querySelector(".list");
      list.replaceChildren(...found.map((one, place) => this.answerButton(this.turn, one, `${this.spells(String(place + 1)) ? "Alt+" : ""}${place + 1}`, said?.[this.turn.name] === one.name)));
      const words = this.search.trim();
      if (!found.length) list.append(make("p", { class: "empty small", textContent: "No class has these words." }));
      if (!found.length && words) list.append(make("button", { class: "command", disabled: !this.shown, onclick: () => this.choose(this.turn, words, true) }, `New class “${words}”`));
    }
  }

  drawRow() {
    const card = this.shown;
    if (!card) {
      this.answers.replaceChildren();
      return;
    }
    const chosen = this.chosen(card);
    const of = new Map(card.questions.map((one) => [one.name, one]));
    const turn = this.turn;
    const lines = this.asked.filter((one) => one.classes && of.has(one.name)).map((one) => {
      const now = one === turn;
      // one that was typed has its button before the server lists it
      const typed = chosen[one.name] && !one.classes.some((other) => other.name === chosen[one.name]) ? [{ name: chosen[one.name], key: "" }] : [];
      // of very many those with a key stand there, and what is chosen or guessed; the others are searched
      const many = one.classes.length > this.data.most_buttons;
      const near = [chosen[one.name], of.get(one.name).guess?.[0][0]];
      const listed = many ? one.classes.filter((other) => other.key || near.includes(other.name)) : one.classes;
      const buttons = [...listed, ...typed].map((entry) => this.answerButton(one, entry, now ? entry.key : "", chosen[one.name] === entry.name));
      const head = make("h3", { title: one.words }, one.name, of.get(one.name).unsure || of.get(one.name).new ? this.mark(of.get(one.name)) : null);
      // a model needs two classes: until then the button for another one stands among them
      const words = one.classes.length < 2 ? "New class" : many ? `Search ${one.classes.length} classes` : "";
      const more = words ? [make("button", { class: "command", onclick: () => this.another(one) }, words, many && now ? make("kbd", { textContent: keyName(this.data.commands.name) }) : null)] : [];
      return make("section", { class: `asked ${now ? "turn" : ""}`, "data-question": one.name, "aria-current": now ? "step" : null }, head, make("div", { class: "choices" }, ...buttons, ...more));
    });
    // of those that are searched: what was typed, else first what is on or unsure
    const first = (one) => chosen[one.name] === "yes" || of.get(one.name).unsure;
    const rest = this.search.trim() ? this.switches.filter((one) => this.fits(one.name)) : [...this.switches.filter(first), ...this.switches.filter((one) => !first(one))];
    const switches = (this.searching ? rest.slice(0, Math.max(12, this.search.trim() ? 0 : rest.filter(first).length)) : this.switches).map((one) => {
      const on = chosen[one.name] === "yes";
      const said = of.get(one.name);
      return make("button", {
        class: "answer switch", role: "switch", "aria-checked": String(on), "data-question": one.name, title: one.words || one.name,
        onclick: () => this.turnOver(one.name),
      }, make("span", { class: "knob" }), make("span", { class: "words" }, make("span", { class: "name" }, ...broken(one.name)), this.view !== null && chosen[one.name] === null ? make("span", { class: "doubt", textContent: "you: unsure" }) : said.unsure || said.new ? this.mark(said) : null), one.key ? make("kbd", { textContent: keyName(one.key) }) : null);
    });
    if (this.searching) {
      this.box.placeholder = `Type to search ${this.switches.length} switches; Enter turns the first`;
      around(this.switched, this.box, [], switches);
    } else this.switched.replaceChildren(...switches);
    const save = make("button", { class: "command strong", "data-command": "save", onclick: () => this.confirm() }, this.view === null ? "Save all and go on" : "Save what changed", make("kbd", { textContent: keyName(this.data.commands.accept) }));
    if (this.switches.length) around(this.answers, this.switched, lines, [save]);
    else this.answers.replaceChildren(...lines, save);
  }

  fits(name) {
    const words = this.search.toLowerCase().split(" ").filter(Boolean);
    return words.length > 0 && words.every((word) => name.toLowerCase().includes(word));
  }

  mark(said) {
    if (said.new) return make("span", { class: "doubt", title: "The model of this question has not learnt yet", textContent: "no guess yet" });
    const [[name, p]] = said.guess;
    return make("span", { class: "doubt", title: `The model is unsure: ${name} ${Math.round(100 * p)}\u00a0%`, textContent: "unsure" });
  }

  // what stands for an item: what was pressed or said before, else the model's guess, else no
  chosen(card) {
    if (!card.chosen) {
      card.chosen = {};
      card.turned = new Set();
      for (const one of card.questions) {
        const about = this.asked.find((other) => other.name === one.name);
        if (!about) continue;
        const told = card.said && one.name in card.said;
        card.chosen[one.name] = told ? card.said[one.name] : one.guess?.[0][0] || (about.classes ? null : "no");
      }
    }
    return card.chosen;
  }

  // a class of a question
  answerButton(question, { name, help, colour }, key, pressed) {
    const shown = key && key !== name.toLowerCase() ? make("kbd", { textContent: keyName(key) }) : null;
    const button = make("button", {
      class: "answer", title: help ? `${name}: ${help}` : name, disabled: !this.shown,
      onclick: () => this.choose(question, name), "data-class": name, "aria-pressed": this.alone && this.view === null ? null : String(pressed),
    }, make("span", { class: "name" }, ...broken(name)), shown);
    if (colour) button.style.setProperty("--colour", colour);
    button.classList.toggle("coloured", Boolean(colour));
    return button;
  }

  // how an earlier answer is changed
  get changes() {
    return this.alone ? "a class changes the answer." : `press what is wrong, and ${keyName(this.data.commands.accept)} saves it.`;
  }

  // in words: what was said of an item
  answerOf(card) {
    const said = card.said || {};
    const parts = this.asked.filter((one) => one.name in said).flatMap((one) => {
      const words = said[one.name] ?? "unsure";
      if (this.alone) return [words];
      return one.classes || words === "unsure" ? [`${one.name} ${words}`] : words === "yes" ? [one.name] : [];
    });
    return parts.join(", ") || (Object.keys(said).length ? "no switch" : "skipped");
  }

  drawCommands() {
    const keys = this.data.commands;
    const one = (name, words, act, title, disabled = false) =>
      make("button", { class: "command", disabled, title, onclick: act, "data-command": name }, words, make("kbd", { textContent: keyName(keys[name]) }));
    const card = this.shown;
    const flagged = card && this.isFlagged(card);
    const guess = this.view === null && !this.hidden && card?.guess?.length ? card.guess[0][0] : "";
    const takes = this.searching ? this.first : guess;
    const whole = this.data.mode === "every";
    const short = takes.length > 100 ? `${takes.slice(0, 99)}…` : takes;
    const accept = one("accept", takes ? (this.searching && !guess ? `Take ${short}` : `Accept ${short}`) : "Accept", () => this.accept(), takes ? `The label is ${takes}` : (this.searching ? "Type a word of the class" : "The model has no guess for this item"), !takes);
    accept.classList.toggle("accepts", Boolean(takes));
    const copies = this.copies;
    const shown = [
      accept,
      ...(copies ? [one("twins", `Same for its ${counted(copies.n, "copy", "copies")}`, () => this.same(), `The item before has copies: they get ${copies.class} too`)] : []),
      one("back", "Back", () => this.back(), "Look at my earlier answers, and change them", !this.history.length && !(this.numbers && this.numbers.undoable)),
      one("skip", "Skip", () => this.skip(), "Set the item aside", !card || this.view !== null),
      one("unsure", "Unsure", () => this.unsure(), "I cannot tell: keep the item, without a label", !card),
      one("undo", "Undo", () => this.undo(), "Take back my last decision", !this.history.length && !(this.numbers && this.numbers.undoable)),
      one("redo", "Redo", () => this.redo(), "Put it back", !(this.numbers && this.numbers.redoable)),
      one("flag", flagged ? "Flagged" : "Flag", () => this.flag(), "Needs attention", !card),
      one("note", "Note", () => this.note(), "A remark about the item", !card),
      one("grid", "Grid", () => this.grid(), "24 items that the model takes for one class: take out the wrong ones", !(this.numbers && this.numbers.model !== null)),
      one("find", "Find", () => this.find(), "Find items by their words, and be asked about them"),
      one("like", "More like this", () => this.find(card), "The items nearest to this one", !card),
      one("name", "New class", () => this.another(), "Give the item a class that there is not yet", !card),
      one("questions", whole ? "One question" : "All questions", () => this.turnQuestions(), whole ? "Ask one question over all items: the one chosen at the side" : "Ask all questions while the item stands there"),
      this.tellButton(one),
      one("help", "Keys", () => this.help(), "The card of keys"),
    ];
    // what has the focus keeps it, however often its line is drawn
    const held = this.commands.getRootNode().activeElement;
    const name = this.commands.contains(held) ? held.dataset.command : "";
    this.commands.replaceChildren(...shown.filter((button) => this.may(button.dataset.command)));
    if (name) this.commands.querySelector(`[data-command="${name}"]`)?.focus({ preventScroll: true });
  }

  // ------------------------------------------------------------------------------------- instructions

  // the version in force, where this person has not read it
  get unread() {
    const n = this.numbers;
    return n && n.told > n.read ? n.told : 0;
  }

  tellButton(one) {
    const news = this.unread ? (this.numbers.read ? "changed since you last read" : "new to you") : "";
    const button = one("instructions", "Instructions", () => this.tell(), news ? `Instructions: ${news}` : "What to look for, and examples of the classes");
    button.setAttribute("aria-pressed", String(this.telling));
    if (news) button.insertBefore(make("span", { class: "badge marked", textContent: this.numbers.read ? "changed" : "new" }), button.lastChild);
    return button;
  }

  // open them beside the item, or close them; who opens them reads them
  tell(on = !this.telling) {
    this.telling = on;
    stored(`desk-told/${this.data.project}`, on ? "1" : null);
    if (on) {
      this.sheetNode.replaceChildren(make("p", { class: "small", textContent: "..." }));
      this.lookUp(true);
    }
    this.drawAside();
    this.drawCommands();
  }

  async lookUp(read = false) {
    const person = this.data.person;
    try {
      const sheet = await this.post("instructions", this.mode);
      if (!sheet || person !== this.data.person) return;
      this.sheet = sheet;
      this.drawSheet();
      if (!read) return;
      this.hasRead();
      // on a phone they stand below the keys
      this.aside.scrollIntoView({ block: matchMedia("(max-width: 900px)").matches ? "start" : "nearest" });
    } catch (error) {
      this.sheet = null;
      this.sheetNode.replaceChildren(make("p", { class: "small", textContent: error instanceof TypeError ? "No answer from the server." : error.message }));
    }
  }

  drawSheet() {
    this.sheetNode.replaceChildren(...toldSheet(this.sheet, {
      key: keyName(this.data.commands.instructions),
      close: () => this.tell(false),
      read: this.unread ? () => { this.hasRead(); this.sheet = { ...this.sheet, read: this.sheet.version }; this.drawSheet(); } : null,
      keep: (one, example) => this.keepExample(one, example),
    }));
  }

  hasRead() {
    if (!this.sheet || !this.numbers || this.sheet.version <= this.numbers.read) return;
    this.send({ kind: "read", version: this.sheet.version });
    this.numbers = { ...this.numbers, read: this.sheet.version };
    this.drawCommands();
  }

  keepExample(one, example) {
    const sent = this.send({ kind: "example", item: example.item, class: one.name, on: !example.picked });
    this.after.set(sent.op, () => this.lookUp());
  }

  // Instructions that a person has never read open by themselves, once; a later version says that it is new.
  tellFirst() {
    const n = this.numbers;
    if (this.offered || !this.here) return;
    this.offered = true;
    if (this.telling) this.lookUp();
    else if (n.told && !n.read) {
      this.telling = true;
      this.lookUp();
      this.drawAside();
      this.drawCommands();
    }
  }

  // nothing that would choose an item, or show what the machine says of it, while labels are checked
  may(command) {
    if (command === "questions") return Boolean(this.data.several) && !this.checking;
    if (command === "name") return this.asked.some((one) => one.classes);
    if (!this.alone && ["accept", "twins"].includes(command)) return false;
    return !this.checking || !["skip", "grid", "find", "like", "accept", "twins"].includes(command);
  }

  // The page draws the other desk; what is not sent yet waits in the browser. Keys are for that one: while both
  // stand there they would be taken twice.
  turnQuestions() {
    this.turning = true;
    setTimeout(() => {
      this.turning = false;
      if (last?.desk === this && this.here) this.hear();
    }, 5000);
    this.trigger?.("mode", newId());
  }

  drawStatus() {
    super.drawStatus();
    // what was asked for comes once the server is back, or comes no more
    if (this.problem || (this.fetches !== "soon" && !this.outbox.waiting.has(this.fetches))) this.fetches = "";
    if (Boolean(this.shown) !== this.drawn instanceof Object) this.draw();
    else if (!this.shown) this.drawCard();
    const numbers = this.numbers;
    if (numbers) {
      const parts = [`${counted(numbers.labelled, "label")} of ${numbers.total.toLocaleString("en")}`];
      if (this.checking) parts.push(checksSaid(numbers.check));
      else if (numbers.model === null) parts.push("the model speaks after labels of two classes");
      else parts.push(`model learned from ${numbers.learned}`);
      this.status.title = parts.join("; ");
    }
  }

  // ------------------------------------------------------------------------------------- doing

  turnOver(name) {
    const card = this.shown;
    if (!card) {
      this.none();
      return;
    }
    const chosen = this.chosen(card);
    chosen[name] = chosen[name] === "yes" ? "no" : "yes";
    card.touched = true;
    this.drawAnswers();
    this.live.textContent = `${name}: ${chosen[name]}`;
  }

  // a class of a question: of one question it ends the card
  choose(one, name, fresh = false) {
    const card = this.shown;
    const adds = fresh ? [one.name] : [];
    if (this.alone) this.answer({ [one.name]: name }, adds);
    else if (!card) this.none();
    else {
      this.chosen(card)[one.name] = name;
      card.turned.add(one.name);
      card.touched = true;
      card.adds = [...new Set([...(card.adds || []), ...adds])];
      this.drawAnswers();
    }
  }

  // ends a row of several questions: it stores what stands
  confirm() {
    const card = this.shown;
    if (!card) {
      this.none();
      return;
    }
    if (this.view === null && !card.touched && !this.stands) {
      this.say("Nobody can have read this row yet: the key was not taken.");
      return;
    }
    if (this.view !== null && !card.touched) {
      this.leave(); // nothing was pressed: what was left open is not answered by looking at it
      return;
    }
    const chosen = this.chosen(card);
    // what was said to be unsure may stay so
    const open = Object.keys(chosen).find((name) => chosen[name] === null && !(this.view !== null && card.said?.[name] === null));
    if (open) this.say(`Choose a class of ${open} first: the model has no guess.`);
    else this.answer({ ...chosen }, card.adds || []);
  }

  none() {
    this.faster = Math.min(6, this.faster + 1);
    this.say("No item is on screen yet: the key was not taken.");
  }

  skip() {
    if (this.view === null) this.answer({});
    else this.say("An answer cannot be skipped: take it back, or say unsure.");
  }

  // of all questions
  unsure() {
    this.answer(Object.fromEntries(this.open_questions.map((one) => [one.name, null])));
  }

  // What is said of each question of the item on screen: a class, or null for unsure; nothing of one that is skipped.
  // `adds` are the questions whose class may be new.
  answer(said, adds = []) {
    if (this.view !== null) {
      this.amend(said, adds);
      return;
    }
    const card = this.card;
    if (!card) {
      this.none();
      return;
    }
    this.say("");
    this.queue.shift();
    if (card.ask) this.closed.add(card.ask);
    this.done.add(card.item);
    const ms = Math.round(performance.now() - this.shownAt);
    const operation = this.send({ ...this.row(card, said, adds), ask: card.ask, item: card.item, ms });
    this.did(operation, { card, said });
    const [name] = Object.values(said);
    this.copies = this.alone && name && card.twins ? { item: card.item, class: name, n: card.twins } : null;
    this.trail = null;
    this.search = this.box.value = "";
    this.drawSoon();
  }

  // an answer as the server takes it
  row(card, said, adds) {
    const skipped = !Object.keys(said).length;
    if (!this.alone) return { kind: "answers", answers: said, ...(skipped ? { skip: true } : adds.length ? { adds } : {}) };
    if (skipped) return { kind: "skip" };
    const [name] = Object.values(said);
    if (name === null) return { kind: "unsure" };
    const shown = Boolean(card.guess?.length) && !this.hidden; // whether it may have led
    return { kind: "label", class: name, shown, ...(adds.length ? { new: true } : {}) };
  }

  // the copies of the item before get its class
  same() {
    const copies = this.copies;
    if (!copies) {
      this.say("The item before has no copy without a label.");
      return;
    }
    this.copies = null;
    this.did(this.send({ kind: "twins", item: copies.item, class: copies.class }), { kind: "twins" });
    this.drawSoon();
    this.say(`${counted(copies.n, "copy", "copies")} of it labelled too. ${this.takes}`);
  }

  // what an undo takes back next
  did(operation, what) {
    this.history.push({ op: operation.op, card: null, ...what });
    this.undone = [];
    if (this.numbers) this.numbers = { ...this.numbers, redoable: false }; // as the server will say
    if (this.history.length > 200) this.history.shift();
  }

  // ------------------------------------------------------------------------------------- a class that is typed

  // A field: what is typed and Enter is a class, one there is where it is called so or was chosen with the arrows.
  naming(give, placeholder, classes = () => this.data.classes) {
    let at = -1; // the one of those offered that Enter takes; -1 is what was typed
    let offered = [];
    const list = make("div", { class: "list", role: "listbox", "aria-label": "Classes that there are" });
    const typed = () => box.value.trim();
    const draw = () => {
      offered = typed() ? this.matches(typed(), classes()).slice(0, 6) : [];
      at = Math.min(at, offered.length - 1);
      list.replaceChildren(...offered.map((one, place) => make("button", { class: "answer", role: "option", tabIndex: -1, "aria-selected": String(place === at), onclick: () => take(one.name) }, make("span", { class: "name" }, ...broken(one.name)))));
    };
    const take = (name) => {
      const words = name || typed();
      if (!words) return;
      const same = classes().find((one) => one.name.toLowerCase() === words.toLowerCase());
      box.value = "";
      at = -1;
      draw();
      give(same ? same.name : words, !same);
    };
    const box = make("input", {
      dir: "auto",
      class: "search", type: "text", autocomplete: "off", spellcheck: false, maxLength: 300, placeholder, "aria-label": "A class",
      oninput: () => { at = -1; draw(); },
      onkeydown: (event) => {
        event.stopPropagation();
        if (event.isComposing) return;
        const moved = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (event.key === "Enter") take(at >= 0 ? offered[at].name : "");
        else if (moved) { at = Math.max(-1, Math.min(offered.length - 1, at + moved)); draw(); }
        else if (event.key === "Escape") { if (this.overlay) this.close(); else box.blur(); }
        else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !box.value) this.undo();
        else return;
        event.preventDefault();
      },
    });
    const go = make("button", { class: "command strong", onclick: () => take("") }, "Label", make("kbd", { textContent: "Enter" }));
    const told = make("p", { class: "empty small", hidden: false });
    const elsewhere = () => this.overlay || document.querySelector("[data-testid=stDialog]") || within([document.activeElement], TYPED);
    const focus = () => setTimeout(() => { if (this.here && !elsewhere()) box.focus({ preventScroll: true }); }, 0);
    return { box, told, focus, node: make("div", { class: "naming" }, make("div", { class: "line" }, box, go), list, told) };
  }

  // a new class of the question whose turn it is, else of the last one with classes
  another(of = null) {
    const one = of || this.turn || this.open_questions.filter((other) => other.classes).at(-1);
    const { item } = this.shown || {};
    if (item === undefined || !one) return;
    if (this.alone && !one.classes.length) {
      this.namer?.box.focus({ preventScroll: true });
      return;
    }
    const give = (name, fresh) => {
      this.close();
      if (this.shown?.item === item) this.choose(one, name, fresh);
      else this.say("Another item is on screen by now: the class was not taken.");
    };
    const field = this.naming(give, "Its name; those there are are offered", () => one.classes);
    this.open(this.alone ? "A class for this item" : `A class of ${one.name} for this item`, field.node);
    field.box.focus({ preventScroll: true });
  }

  // ------------------------------------------------------------------------------------- looking back

  // the questions of which something else is said now, of the item that is looked at
  amend(said, adds) {
    const card = this.shown;
    const was = card.said;
    const answers = Object.fromEntries(Object.entries(said).filter(([name, answer]) => was[name] !== answer));
    const names = Object.keys(answers);
    if (!names.length) {
      this.leave();
      return;
    }
    const is = { ...was, ...answers };
    const added = adds.filter((name) => names.includes(name));
    const operation = this.alone
      ? this.send({ kind: "correct", item: card.item, class: answers[names[0]] ?? "", ...(added.length ? { new: true } : {}) })
      : this.send({ kind: "amend", item: card.item, answers, ...(added.length ? { adds: added } : {}) });
    this.did(operation, { item: card.item, was, is });
    this.became(card.item, is);
    Object.assign(card, { said: is, chosen: null });
    this.drawn = null;
    this.draw();
    this.say(`Changed to ${this.answerOf(card)}. ${this.takes}`);
  }

  // what this tab remembers of an item that was answered again, or whose new answer was taken back
  became(item, said) {
    for (const one of this.history) if (one.card?.item === item) one.said = said;
  }

  async back() {
    if (this.trail === null) {
      const seen = new Set();
      this.trail = [];
      for (const one of [...this.history].reverse()) {
        if (!one.card || seen.has(one.card.item)) continue;
        seen.add(one.card.item);
        this.trail.push(this.looked_at(one));
      }
      this.earlier = this.post("look", { kind: "history", n: 60, ...this.mode }).then((reply) => {
        for (const card of reply?.items || []) if (card.kind && !seen.has(card.item)) this.trail?.push(card);
      }).catch(() => {});
    }
    const next = this.view === null ? 0 : this.view + 1;
    if (next >= this.trail.length) await this.earlier; // only the tab's own answers are at hand at once
    if (this.trail === null) return;
    if (next >= this.trail.length) {
      this.say(this.trail.length ? "That is as far back as this goes." : "There is no earlier answer of yours.");
      return;
    }
    this.see(next);
  }

  // a card of the trail
  looked_at({ card, said }) {
    return { ...card, node: null, ask: null, said, chosen: null, adds: null, touched: false };
  }

  // what requests say of the desk they come from
  get mode() {
    return this.data.mode ? { mode: this.data.mode } : {};
  }

  forward() {
    if (this.view === null) this.say("This is the question.");
    else if (this.view === 0) this.leave();
    else this.see(this.view - 1);
  }

  see(place) {
    if (this.view === null) this.spent = performance.now() - this.shownAt;
    this.view = place;
    this.draw();
  }

  leave() {
    this.view = this.trail = null;
    this.draw();
    this.shownAt = performance.now() - (this.spent || 0); // what was looked at meanwhile is not the item's
  }

  isFlagged(card) {
    return this.flags.has(card.item) ? this.flags.get(card.item) : Boolean(card.flag);
  }

  accept() {
    if (!this.alone) {
      this.confirm();
      return;
    }
    if (this.view !== null) {
      this.leave();
      return;
    }
    const takes = this.searching ? this.first : (!this.hidden && this.card?.guess?.[0]?.[0]) || "";
    if (takes) this.choose(this.turn, takes);
    else this.say(this.searching ? "Type a word of the class; Enter then takes the first that has it." : "The model has no guess for this item.");
  }

  undo() {
    if (this.view !== null) this.leave();
    this.trail = null;
    const last = this.lastHere(this.history, "last");
    if (!last) {
      // done elsewhere, or by an earlier page: the server knows what it was, and says so
      if (this.numbers && !this.numbers.undoable && this.looked) this.say("Nothing to undo.");
      else this.step("undo");
      return;
    }
    this.history.pop();
    this.copies = null;
    const sent = this.send({ kind: "undo", target: last.op });
    this.after.set(sent.op, (ack) => this.took(ack));
    this.undone.push(last);
    if (last.kind === "flag") this.flags.set(last.item, !last.on);
    if (last.kind === "note") this.remarks.get(last.noted)?.pop();
    if (last.was) this.became(last.item, last.was);
    if (!last.card) {
      this.draw();
      return;
    }
    if (last.card.ask) this.closed.delete(last.card.ask);
    this.done.delete(last.card.item);
    const card = { ...last.card, ask: null, role: "again", badge: "taken back", why: "You took its answer back.", turned: new Set(), touched: false };
    this.queue = [card, ...this.queue.filter((one) => one.item !== card.item)];
    this.draw();
  }

  redo() {
    if (this.view !== null) this.leave();
    const last = this.lastHere(this.undone, "put");
    if (!last) {
      if (this.numbers && !this.numbers.redoable && this.looked) this.say("Nothing to put back.");
      else this.step("redo");
      return;
    }
    this.undone.pop();
    const sent = this.send({ kind: "redo", target: last.op });
    this.after.set(sent.op, (ack) => this.took(ack, "Put back"));
    this.history.push(last); // so that the next undo takes it back again
    if (last.kind === "flag") this.flags.set(last.item, last.on);
    if (last.is) this.became(last.item, last.is);
    if (last.card) this.done.add(last.card.item);
    if (this.card && this.card.role === "again" && this.card.item === last.card?.item) this.queue.shift();
    this.draw();
  }

  // what only the server knows the whole of is asked of it, and shown once it was done
  step(kind) {
    const sent = this.send({ kind, target: (this.looked && this.numbers?.[kind === "undo" ? "last" : "put"]) || null }); // of old numbers none: whatever is last
    if (kind === "undo") this.awaited.add(sent.op);
    this.after.set(sent.op, (ack) => {
      const about = ack.about;
      if (!about) return;
      const [from, to] = kind === "undo" ? [this.history, this.undone] : [this.undone, this.history];
      const place = about.op ? from.findIndex((one) => one.op === about.op) : -1;
      to.push(place < 0 ? { op: about.op, card: null } : from.splice(place, 1)[0]);
      for (const { item, kind: stands } of about.items) if (stands) this.done.add(item); else this.done.delete(item);
      const decided = new Set(about.items.filter((one) => one.kind).map((one) => one.item));
      if (decided.size) this.queue = this.queue.filter((card) => card.ask === null || !decided.has(card.item) || card.role === "again");
      this.took(ack, kind === "undo" ? "Taken back" : "Put back");
      this.drawn = null;
      this.draw();
    });
  }

  took(ack, how = "Taken back") {
    for (const { item, flag } of ack.about?.items || []) this.flags.set(item, flag);
    if (ack.about) this.say(`${how}: ${ack.about.words}.`);
    this.drawCommands();
  }

  // An undo or a redo that came too late is none: what was shown of it is taken off the screen again.
  notDone(operation) {
    if (operation?.kind === "undo") {
      const place = this.undone.findIndex((one) => one.op === operation.target);
      const [last] = place < 0 ? [] : this.undone.splice(place, 1);
      if (!last) return;
      this.history.push(last);
      if (last.kind === "flag") this.flags.set(last.item, last.on);
      if (!last.card) return;
      this.done.add(last.card.item);
      if (last.card.ask) this.closed.add(last.card.ask);
      this.queue = this.queue.filter((card) => !(card.ask === null && card.role === "again" && card.item === last.card.item));
    } else if (operation?.kind === "redo") {
      const place = this.history.findIndex((one) => one.op === operation.target);
      if (place >= 0) this.undone.push(...this.history.splice(place, 1));
    }
  }

  flag() {
    const card = this.shown;
    if (!card) return;
    const on = !this.isFlagged(card);
    this.flags.set(card.item, on);
    this.did(this.send({ kind: "flag", item: card.item, on }), { kind: "flag", item: card.item, on });
    this.drawMarks();
    this.drawCommands();
  }

  // ------------------------------------------------------------------------------------- overlays

  zoom() {
    const card = this.shown;
    if (!card) return;
    enlarge(this, card);
  }

  note() {
    const card = this.shown;
    if (!card) return;
    this.noteOn(card, (text, operation) => {
      this.remarks.set(card.item, [...(this.remarks.get(card.item) || []), [this.data.person, text]]);
      this.did(operation, { kind: "note", noted: card.item });
      this.drawMarks();
    }, this.notesOn(card));
  }

  // what stands behind whatever can be undone
  get takes() {
    return `${keyName(this.data.commands.undo)} takes it back.`;
  }

  // the card of keys
  help() {
    const words = {
      accept: !this.alone ? "save what stands of all questions, and go on" : this.searching ? "the first class that has the typed words, else the guess" : "accept the model's guess",
      skip: "skip: set the item aside", unsure: "unsure: I cannot tell", undo: "take back my last decision (also Ctrl+Z)",
      redo: "put it back (also Ctrl+Y)", back: "look back at my answers, and change them", forward: "forward again",
      flag: "flag: needs attention", note: "a note about the item", grid: "grid: confirm many at once",
      find: "find items and be asked about them", instructions: "instructions and examples, beside the item", name: "a class that there is not yet", like: "more like this one", twins: "copies of the item before get its class too", zoom: "large", questions: "all questions of an item, or one over all items", help: "this card",
    };
    const row = (key, text) => make("tr", {}, make("th", { scope: "row" }, make("kbd", { textContent: key })), make("td", { textContent: text }));
    this.open("Keys", make("table", { class: "keys" },
      row(this.alone && this.searching ? "1 to 9" : "digits, letters", this.alone && this.searching ? "the nine classes listed (with Alt where a name has the digit)" : "the class on the button"),
      row("Esc", "close"),
      ...Object.entries(words).filter(([name]) => this.may(name) || (name === "accept" && !this.alone)).map(([name, text]) => row(keyName(this.data.commands[name]), text))));
  }

  // items by their words, or like one; those that are open can be asked about next
  find(near = null) {
    const called = near && untold(near.id, this.data.classes);
    const box = make("input", { class: "search", dir: "auto", type: "search", placeholder: "Words, an id, or column:value", "aria-label": "Find items", autocomplete: "off" });
    const told = make("p", { class: "empty small", role: "status", textContent: near ? `Nearest to ${called}` : "Words may be in any order; \"two words\" stand together." });
    const place = make("div", { class: "grid" });
    const go = make("button", { class: "command strong", disabled: true });
    let chosen = new Set();
    let all = [];
    let how = "";
    let asked = null; // the words that what is shown answers
    const stale = () => !near && box.value.trim() !== asked;
    const name = () => {
      go.disabled = stale() ? !box.value.trim() : !chosen.size;
      go.replaceChildren(stale() ? "Find" : chosen.size ? `Ask me about ${chosen.size === 1 ? "this one" : `these ${chosen.size.toLocaleString("en")}`}` : "Nothing here can be asked about", make("kbd", { textContent: "Enter" }));
    };
    const show = (reply) => {
      all = reply.items;
      chosen = new Set(reply.open);
      place.className = `grid of-${all[0]?.face.kind || ""}`;
      place.replaceChildren(...all.map((card) => {
        const tag = card.kind ? make("span", { class: "given", dir: "auto", textContent: this.answerOf(card) }) : card.open ? null : make("span", { class: "given", textContent: "to measure on" });
        const tile = make("button", { class: `tile ${card.open ? "" : "shut"}`, title: untold(card.id, this.data.classes), "aria-pressed": String(!chosen.has(card.item)), disabled: !card.open }, faceOf(card.face), tag);
        tile.addEventListener("click", (event) => {
          if (chosen.has(card.item)) chosen.delete(card.item);
          else chosen.add(card.item);
          tile.setAttribute("aria-pressed", String(!chosen.has(card.item)));
          name();
          if (event.detail) this.overlay?.node.firstChild.focus({ preventScroll: true }); // Enter goes on after the pointer
        });
        return tile;
      }));
      const shown = all.length < reply.total ? `, ${all.length} shown` : "";
      told.textContent = reply.total ? `${counted(reply.total, "item")}${shown}; ${reply.askable.toLocaleString("en")} can be asked about${reply.askable > reply.open.length ? `, the first ${reply.open.length} at once` : ""}. A click leaves one out.` : "Nothing found.";
      name();
    };
    const look = async () => {
      const words = box.value.trim();
      try {
        const reply = await this.post("look", { ...(near ? { kind: "like", item: near.item } : { kind: "find", words }), n: 24, ...this.mode });
        if (!reply) return;
        asked = words;
        how = near ? `like ${called}` : `search: ${words}`;
        show(reply);
      } catch (error) {
        told.textContent = error instanceof TypeError ? "No answer from the server." : error.message;
      }
    };
    const want = () => {
      if (!chosen.size) return;
      // what stands on screen gives way at once: the next key is for what was asked for
      this.fetches = "soon";
      const operation = this.send({ kind: "want", items: [...chosen], text: how, ...this.mode });
      this.fetches = operation.op;
      this.awaited.add(operation.op);
      this.did(operation, { kind: "want" });
      this.close();
      if (this.view !== null) this.leave();
      this.say(`${chosen.size === 1 ? "It is" : `These ${chosen.size.toLocaleString("en")} are`} asked about now. ${this.takes}`);
    };
    // Enter finds what was typed, and asks about what was found
    const next = () => {
      if (!stale()) want();
      else if (box.value.trim()) look();
    };
    go.addEventListener("click", next);
    box.addEventListener("input", name);
    box.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      next();
    });
    const overlay = near ? this.open(`More like ${called}`, told, place, go) : this.open("Find", box, told, place, go);
    overlay.keys = (key) => { if (key === "Enter") next(); return key === "Enter"; };
    overlay.node.firstChild.classList.add("wide");
    name();
    if (near) look();
    else box.focus({ preventScroll: true });
  }

  // what a grid could be of instead
  otherGrids(reply) {
    const called = (one) => (this.alone ? one.class : this.asked.find((other) => other.name === one.question)?.classes ? `${one.question} ${one.class}` : one.class === "yes" ? one.question : `not ${one.question}`);
    const buttons = reply.others.map((one) => make("button", {
      class: "command", "aria-pressed": String(one.question === reply.question && one.class === reply.class),
      onclick: () => this.grid({ question: one.question, class: one.class }),
    }, `${called(one)} (${one.n.toLocaleString("en")})`));
    return buttons.length > 1 ? [make("div", { class: "commands", role: "group", "aria-label": "Other grids" }, ...buttons)] : [];
  }

  // in words: what a grid takes its items for
  gridWords({ question, switch: turns, class: name }) {
    if (this.alone) return { which: `Which of these are not “${name}”?`, as: `as ${name}` };
    if (!turns) return { which: `${question}: which of these are not “${name}”?`, as: `as ${question} ${name}` };
    return name === "yes" ? { which: `Which of these are not “${question}”?`, as: `as “${question}”` } : { which: `Which of these are “${question}”?`, as: `as not “${question}”` };
  }

  async grid(of = {}) {
    let reply;
    try {
      reply = await this.post("grid", { n: 24, ...this.mode, ...of });
    } catch (error) {
      this.say(error instanceof TypeError ? "No answer from the server." : error.message);
      return;
    }
    if (!reply || !reply.items || !reply.items.length) {
      this.say(reply?.why || "The model is sure of no further items of one class yet.");
      return;
    }
    const said = this.gridWords(reply);
    const wrong = new Set();
    const letters = "abcdefghijklmnopqrstuvwx";
    const tiles = reply.items.map((card, place) => {
      const tile = make("button", { class: "tile", title: untold(card.id, this.data.classes), "aria-pressed": "false" }, faceOf(card.face), card.doubtful ? make("span", { class: "given", textContent: "unsure" }) : null, make("kbd", { textContent: letters[place] || "" }));
      tile.classList.toggle("doubtful", Boolean(card.doubtful));
      tile.addEventListener("click", (event) => { flip(place); rest(event); });
      return tile;
    });
    // after the pointer Enter confirms; on a tile that was reached by Tab it turns that tile
    const rest = (event) => { if (event.detail) this.overlay?.node.firstChild.focus({ preventScroll: true }); };
    const confirm = make("button", { class: "command strong" });
    const flip = (place) => {
      const item = reply.items[place].item;
      if (wrong.has(item)) wrong.delete(item);
      else wrong.add(item);
      tiles[place].setAttribute("aria-pressed", String(wrong.has(item)));
      words();
    };
    const words = () => {
      const n = reply.items.length - wrong.size;
      confirm.disabled = !n;
      confirm.replaceChildren(n ? `Confirm ${counted(n, "item")} ${said.as}` : "Nothing is left to confirm", make("kbd", { textContent: n ? "Enter" : "Esc" }));
    };
    const done = () => {
      if (confirm.disabled) return;
      const kept = reply.items.filter((card) => !wrong.has(card.item)).map((card) => card.ask);
      const rejected = reply.items.filter((card) => wrong.has(card.item)).map((card) => card.ask);
      const operation = this.send({ kind: "grid", class: reply.class, asks: kept, rejected, ...(reply.question ? { question: reply.question } : {}) });
      this.did(operation, { kind: "grid" });
      this.after.set(operation.op, ({ left_out: others = 0 }) => this.say(
        `${counted(kept.length - others, "item")} confirmed ${said.as}` + (others ? `; ${others} were answered, or are held, by somebody else.` : ".") + ` ${this.takes}`,
      ));
      this.close();
    };
    confirm.addEventListener("click", done);
    words();
    const overlay = this.open(said.which, make("p", { class: "small", textContent: reply.measured }), ...this.otherGrids(reply), make("div", { class: `grid of-${reply.items[0].face.kind}` }, ...tiles), confirm);
    overlay.node.firstChild.classList.add("wide");
    overlay.keys = (key) => {
      const place = letters.indexOf(key.toLowerCase());
      if (key === "Enter") done();
      else if (key.length === 1 && place >= 0 && place < tiles.length) flip(place);
      else return false;
      return true;
    };
  }

  // ------------------------------------------------------------------------------------- keys

  listen() {
    window.addEventListener("keydown", (event) => this.key(event), true);
    window.addEventListener("pagehide", () => this.flush());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.pump(); });
    setInterval(() => { if (this.here && !document.hidden) this.pump(true); }, IDLE_LOOK);
    new MutationObserver(() => this.hush()).observe(document.body, { childList: true });
    try {
      this.channel = new BroadcastChannel(`desk/${this.data.project}`);
      this.channel.onmessage = (event) => this.drop(event.data.gone || []);
    } catch {
      this.channel = null;
    }
  }

  // The page's own dialog about its connection would lie over the item and take every key: the desk says it itself.
  hush() {
    for (const dialog of this.here ? document.querySelectorAll("[data-testid=stDialog]") : [])
      if (dialog.textContent.startsWith("Connection error")) dialog.querySelector("[aria-label=Close]")?.click();
  }

  key(event) {
    if (event.isComposing || event.repeat) return;
    if (!this.here || this.turning) {
      this.miss(event);
      return;
    }
    if (this.overlay) {
      this.overlayKey(event);
      return;
    }
    if (event.composedPath()[0] === this.box || theirs(event)) return; // the box has its own handler
    if ((event.ctrlKey || event.metaKey) && !event.altKey) {
      const key = pressed(event, ["z", "y", "Shift+z"]);
      if (key === "z") { this.undo(); this.take(event); }
      else if (key === "y" || key === "Shift+z") { this.redo(); this.take(event); }
      return;
    }
    if (event.ctrlKey || event.metaKey || (event.altKey && !this.searching)) return;
    if (event.key === "Escape" && this.view !== null) {
      this.leave();
      this.take(event);
      return;
    }
    if (this.searching && !event.altKey) {
      const digit = /^\p{L}$/u.test(event.key) ? "" : pressed(event, PLACES);
      const listed = PLACES.includes(digit) && (this.alone ? !this.spells(digit) : this.keys.includes(digit));
      if (listed && this.alone) { this.pick(Number(digit) - 1); this.take(event); return; }
      if (!listed && /^[\p{L}\p{N}]$/u.test(event.key)) {
        this.box.focus({ preventScroll: true }); // the letter lands in the box
        return;
      }
    }
    if (this.command(event)) this.take(event);
    else if (/^\S$/u.test(event.key) && this.message.hidden) this.say(`${keyName(event.key)} means nothing here. ${keyName(this.data.commands.help)} shows the keys.`);
  }

  // those that mean something
  get keys() {
    return [...this.switches, ...(this.turn?.classes || [])].map((one) => one.key).concat(Object.values(this.data.commands), "Backspace");
  }

  pick(place) {
    const one = this.matches()[place];
    if (one) this.choose(this.turn, one.name);
  }

  command(event) {
    const key = pressed(event, this.keys);
    if (key === null) return false;
    const turned = this.switches.find((one) => one.key && one.key === key);
    const found = this.turn?.classes.find((one) => one.key && one.key === key);
    if (turned) this.turnOver(turned.name);
    else if (found) this.choose(this.turn, found.name);
    if (turned || found) return true;
    const acts = {
      skip: () => this.skip(), unsure: () => this.unsure(), undo: () => this.undo(),
      redo: () => this.redo(), flag: () => this.flag(), note: () => this.note(), grid: () => this.grid(), help: () => this.help(),
      accept: () => this.accept(), zoom: () => this.zoom(), back: () => this.back(), forward: () => this.forward(),
      find: () => this.find(), name: () => this.another(), like: () => { if (this.shown) this.find(this.shown); }, instructions: () => this.tell(), twins: () => this.same(), questions: () => this.turnQuestions(),
    };
    const name = Object.keys(acts).find((one) => this.data.commands[one] === key) || (key === "Backspace" ? "undo" : "");
    if (!name || !(this.may(name) || (name === "accept" && !this.checking)) || (name === "zoom" && !this.shown)) return false;
    acts[name]();
    return true;
  }

  searchKey(event) {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.repeat && !this.box.value) {
      event.preventDefault(); // a key that is held emptied the box: what it goes on with is meant for nothing
      return;
    }
    if (event.key === "Enter") {
      event.preventDefault();
      const found = !this.alone && this.search.trim() ? this.switches.find((one) => this.fits(one.name)) : null;
      if (found) {
        this.search = this.box.value = "";
        this.turnOver(found.name);
      } else if (!this.alone && this.search.trim()) this.say("No switch has these words.");
      else this.accept();
    } else if (event.key === "Escape") {
      this.search = this.box.value = "";
      this.drawAnswers();
      this.box.blur();
    } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !this.box.value) {
      event.preventDefault();
      this.undo();
    } else if (this.alone && /^[1-9]$/.test(event.key) && (event.altKey || !this.spells(event.key))) {
      event.preventDefault();
      this.pick(Number(event.key) - 1);
    } else if (event.altKey || (!this.box.value && (!/^[\p{L}\p{N}]$/u.test(event.key) || (!this.alone && this.keys.includes(event.key))))) {
      // what is no text: commands with Alt, and in an empty box arrows, Space, signs and keys of classes
      if (this.command(event)) event.preventDefault();
    }
  }

  // ------------------------------------------------------------------------------------- speaking

  drop(gone) {
    if (!gone.length) return;
    const shut = new Set(gone);
    const before = this.card;
    this.queue = this.queue.filter((card) => !(card.ask && shut.has(card.ask)));
    if (before !== this.card) this.draw();
  }

  // Before the first model nothing grows old. Afterwards a new model replaces what waits, however many cards
  // these are, so hands that were faster than the server get some more.
  get ahead() {
    if (this.checking) return Math.min(12, this.data.ahead + this.faster);
    const cold = this.numbers && this.numbers.model === null;
    return Math.min(12, (cold ? 10 : this.data.ahead) + this.faster);
  }

  wants() {
    return this.queue.length < this.ahead && this.numbers && this.numbers.left > this.queue.length && this.got;
  }

  // whether the server was told of another item on screen than this one
  get turned() {
    return (this.card?.ask || null) !== this.reported;
  }

  // Questions to measure on show nothing of the model. They wait until there is one, and then take turns with
  // those that show what it learnt; what stays behind a release of the others would else be a row of them.
  spread(from, cold) {
    const waiting = this.queue.slice(from);
    const blind = waiting.filter((card) => card.role === "evaluation");
    const others = waiting.filter((card) => card.role !== "evaluation");
    if (this.checking || !blind.length || !others.length) return;
    const turns = cold ? [...others, ...blind] : others.flatMap((card, place) => [card, ...blind.slice(place, place + 1)]).concat(blind.slice(others.length));
    this.queue = [...this.queue.slice(0, from), ...turns];
  }

  request() {
    const ahead = this.ahead;
    return {
      ops: this.sends(), want: Math.max(0, ahead - this.queue.filter((card) => card.ask).length),
      have: this.queue.map((card) => card.ask).filter(Boolean), screen: this.card?.ask || null, turned: this.turned, model: this.model,
      ...this.mode, ...(this.checking ? { on: Boolean(this.data.on) } : {}),
    };
  }

  take_in(reply, asked) {
    let jumps = false;
    const before = this.card;
    this.reported = asked.screen;
    for (const ack of this.acknowledge(reply, asked)) {
      const item = ack.operation?.item;
      if (item !== undefined) this.done.delete(item); // what comes for it from now on is asked knowing the answer
      jumps = this.awaited.delete(ack.op) || jumps;
      if (ack.op === this.fetches) this.fetches = "";
      if (ack.status === "saved") continue;
      this.history = this.history.filter((one) => one.op !== ack.op); // no undo takes it back
      this.notDone(ack.operation);
    }
    const gone = new Set(reply.gone || []);
    const released = new Set(reply.released || []);
    if (gone.size) this.channel?.postMessage({ gone: [...gone] });
    // what was given back for better questions leaves the queue; the card on screen stays, its answer is taken
    this.queue = this.queue.filter((card, place) => !card.ask || !(gone.has(card.ask) || (place > 0 && released.has(card.ask))));
    this.got = 0;
    const shown = this.card;
    const back = []; // what was taken back, latest first
    for (const card of reply.queue || []) {
      if (this.closed.has(card.ask) || (this.done.has(card.item) && card.role !== "again")) continue;
      const same = this.queue.findIndex((one) => one.item === card.item);
      if (same >= 0) {
        // the card on screen must not change under the eyes: it only learns its ask
        this.queue[same].ask = card.ask;
        continue;
      }
      this.got += 1;
      (shown && card.role === "again" ? back : this.queue).push(card);
    }
    if (this.got) this.spread(shown ? 1 : 0, reply.numbers.model === null);
    // behind the item on screen, which must not change under the eyes, but where this tab waits for it
    this.queue.splice(1, 0, ...back);
    const first = this.queue.findIndex((card) => card.ask && card.ask === reply.first);
    if (jumps && first > 0 && this.queue[0].ask) this.queue.unshift(...this.queue.splice(first, 1));
    // turned to while the request was on its way: the next one says that it is being looked at
    const screen = this.card?.ask;
    this.reclaims = Boolean(screen && screen !== asked.screen && reply.first && screen !== reply.first);
    if (reply.plane) this.plane = reply.plane;
    const another = this.sheet && this.telling && this.sheet.version !== reply.numbers.told;
    this.numbers = reply.numbers;
    this.looked = true;
    this.model = reply.numbers.model;
    if (another) this.lookUp();
    this.tellFirst();
    const { asked: questions, commands } = reply;
    const changed = JSON.stringify([questions, commands]) !== JSON.stringify([this.asked, this.data.commands]);
    if (changed) this.data = { ...this.data, asked: questions, commands, classes: questions.length === 1 ? questions[0].classes : [] };
    this.prepare();
    if (before !== this.card) this.draw();
    else {
      if (!this.shown) this.drawCard();
      if (changed) this.drawAnswers();
      this.drawCommands();
    }
    if (this.checking) {
      if (!this.later) this.drawAside();
      // the page shows what follows once it is decided
      if (reply.numbers.check.phase !== this.data.phase) this.trigger?.("renew", newId());
    }
    if (reply.numbers.model !== asked.model || (reply.acks || []).length) this.told?.();
    this.fetchBelow();
  }

  // What the page will draw below the desk is large: it comes while the first item is looked at, not before.
  fetchBelow() {
    const address = this.data.below;
    if (!address || this.fetched || !this.shown) return;
    this.fetched = true;
    const whenIdle = window.requestIdleCallback || ((work) => work());
    // what cannot be fetched now is asked for again by whoever draws it
    const fetchIt = () => import(new URL(address, document.baseURI).href).catch(() => {});
    setTimeout(() => whenIdle(fetchIt), 1000); // the item's picture is there by then
  }
}


export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const key = `${data.project} ${data.mode || ""}`;
  let desk = desks.get(key);
  if (!desk) {
    desk = new Desk(data);
    desks.set(key, desk);
  }
  desk.update(data, setTriggerValue);
  const mounted = desk.mount(parentElement);
  return () => desk.unmount(mounted);
}
