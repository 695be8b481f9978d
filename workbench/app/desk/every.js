// The desk of all questions: the item stays while they are answered. Switches turn with a key each, a question
// with classes takes the first keys while it is its turn, Enter ends the row: it stores what stands.

class DeskOfEvery extends Desk {
  get asked() {
    return this.known || this.data.asked;
  }

  get switches() {
    const open = new Set((this.shown?.questions || []).map((one) => one.name));
    return this.asked.filter((one) => !one.classes && open.has(one.name));
  }

  // of an item that was answered in part it says how many are open
  get heading() {
    const open = this.view === null ? this.shown?.questions?.length : 0;
    return open && open < this.asked.length ? `${open} of ${this.data.question}` : this.data.question;
  }

  get searching() {
    return this.switches.some((one) => !one.key);
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
        card.chosen[one.name] = told ? card.said[one.name] : about.classes ? one.guess || null : one.p >= 0.5 ? "yes" : "no";
      }
    }
    return card.chosen;
  }

  // the question with classes whose turn it is
  get turn() {
    const card = this.shown;
    if (!card?.questions) return null;
    const open = new Set(card.questions.map((one) => one.name));
    return this.asked.find((one) => one.classes && open.has(one.name) && !card.turned?.has(one.name)) || null;
  }

  drawAnswers() {
    const card = this.shown;
    this.answers.className = "answers every";
    this.question.textContent = this.heading;
    if (!card || !card.questions) {
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
      const near = [chosen[one.name], of.get(one.name).guess];
      const listed = many ? one.classes.filter((other) => other.key || near.includes(other.name)) : one.classes;
      const buttons = [...listed, ...typed].map(({ name, key }) => make("button", {
        class: "answer", "data-class": name, "aria-pressed": String(chosen[one.name] === name), onclick: () => this.choose(one, name),
      }, make("span", { class: "name" }, ...broken(name)), now && key ? make("kbd", { textContent: keyName(key) }) : null));
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
    const row = make("div", { class: "switches" }, ...switches);
    if (this.searching) {
      this.box.placeholder = `Type to search ${this.switches.length} switches; Enter turns the first`;
      const focused = this.box.getRootNode().activeElement === this.box;
      row.prepend(this.box);
      if (focused) setTimeout(() => this.box.focus({ preventScroll: true }), 0);
    }
    const save = make("button", { class: "command strong", "data-command": "save", onclick: () => this.confirm() }, this.view === null ? "Save all and go on" : "Save what changed", make("kbd", { textContent: keyName(this.data.commands.accept) }));
    this.answers.replaceChildren(...lines, ...(this.switches.length ? [row] : []), save);
  }

  fits(name) {
    const words = this.search.toLowerCase().split(" ").filter(Boolean);
    return words.length > 0 && words.every((word) => name.toLowerCase().includes(word));
  }

  mark(said) {
    if (said.new) return make("span", { class: "doubt", title: "The model of this question has not learnt yet", textContent: "no guess yet" });
    return make("span", { class: "doubt", title: `The model is unsure: ${Math.round(100 * said.p)} %`, textContent: "unsure" });
  }

  turnOver(name) {
    const card = this.shown;
    if (!card) return;
    const chosen = this.chosen(card);
    chosen[name] = chosen[name] === "yes" ? "no" : "yes";
    card.touched = true;
    this.drawAnswers();
    this.live.textContent = `${name}: ${chosen[name]}`;
  }

  choose(one, name, fresh = false) {
    const card = this.shown;
    if (!card) return;
    this.chosen(card)[one.name] = name;
    card.turned.add(one.name);
    card.touched = true;
    if (fresh) card.adds = [...new Set([...(card.adds || []), one.name])];
    this.drawAnswers();
  }

  confirm() {
    const card = this.shown;
    if (!card) {
      this.say("No item is on screen yet: the key was not taken.");
      return;
    }
    if (this.view === null && !card.touched && !this.stands) {
      this.say("Nobody can have read this row yet: the key was not taken.");
      return;
    }
    const chosen = this.chosen(card);
    // what was said to be unsure may stay so
    const open = Object.keys(chosen).find((name) => chosen[name] === null && !(this.view !== null && card.said?.[name] === null));
    if (open) {
      this.say(`Choose a class of ${open} first: the model has no guess.`);
      return;
    }
    this.answer({ kind: "answers", answers: { ...chosen } });
  }

  accept() {
    this.confirm();
  }

  answer(what) {
    if (this.view !== null) {
      this.amend(what);
      return;
    }
    const card = this.card;
    if (!card || !["answers", "unsure", "skip"].includes(what.kind)) {
      super.answer(what);
      return;
    }
    card.said = what.kind === "skip" ? {} : this.saidBy(card, what);
    const adds = what.kind === "answers" && card.adds ? { adds: card.adds } : {};
    super.answer({ kind: "answers", answers: card.said, ...(what.kind === "skip" ? { skip: true } : adds) });
  }

  // what an answer says of each question: unsure is of all of them
  saidBy(card, what) {
    return what.kind === "answers" ? what.answers : Object.fromEntries(card.questions.map((one) => [one.name, null]));
  }

  // the questions of which something else is said now
  amend(what) {
    const card = this.shown;
    if (what.kind === "skip") {
      this.say("An answer cannot be skipped: take it back, or say unsure.");
      return;
    }
    const was = { ...card.said };
    const answers = Object.fromEntries(Object.entries(this.saidBy(card, what)).filter(([name, said]) => was[name] !== said));
    if (!Object.keys(answers).length) {
      this.leave();
      return;
    }
    const is = { ...was, ...answers };
    const adds = (card.adds || []).filter((name) => name in answers);
    this.did(this.send({ kind: "amend", item: card.item, answers, ...(adds.length ? { adds } : {}) }), { kind: "amend", item: card.item, was, is });
    this.became(card.item, is);
    Object.assign(card, { said: is, kind: "answers", chosen: null });
    this.drawn = null;
    this.draw();
    this.say(`Changed to ${this.answerOf(card)}. ${this.takes}`);
  }

  became(item, said) {
    for (const one of this.history) if (one.card && one.card.item === item) one.card.said = said;
  }

  looked_at(one) {
    const said = one.card.said || {};
    return { ...one.card, node: null, ask: null, kind: Object.keys(said).length ? "answers" : "skip", said, chosen: null, adds: null };
  }

  get mode() {
    return { mode: "every" };
  }

  get changes() {
    return `press what is wrong, and ${keyName(this.data.commands.accept)} saves it.`;
  }

  answerOf(card) {
    if (!card.said) return super.answerOf(card); // one of those found by words
    if (card.kind === "skip") return "skipped";
    const parts = this.asked.filter((one) => one.name in card.said).flatMap((one) => {
      const said = card.said[one.name];
      if (said === null) return [`${one.name} unsure`];
      return one.classes ? [`${one.name} ${said}`] : said === "yes" ? [one.name] : [];
    });
    return parts.join(", ") || "no switch";
  }

  undo() {
    super.undo();
    if (this.card?.role === "again") this.card.turned = new Set(); // each question has its turn once more
  }

  lastThere(kind) {
    return this.numbers?.[kind === "undo" ? "last" : "put"] || null;
  }

  // a new class of the question whose turn it is, else of the last one with classes
  another(of = null) {
    const open = new Set((this.shown?.questions || []).map((one) => one.name));
    const one = of || this.turn || this.asked.filter((other) => other.classes && open.has(other.name)).at(-1);
    if (!one) return;
    const field = this.naming((name, fresh) => { this.close(); this.choose(one, name, fresh); }, "Its name; those there are are offered", () => one.classes);
    this.open(`A class of ${one.name} for this item`, field.node);
    field.box.focus({ preventScroll: true });
  }

  gridWords(reply) {
    const { question, switch: turns } = reply;
    if (!turns) return { which: `${question}: which of these are not “${reply.class}”?`, as: `as ${question} ${reply.class}` };
    const yes = reply.class === "yes";
    return { which: yes ? `Which of these are not “${question}”?` : `Which of these are “${question}”?`, as: yes ? `as “${question}”` : `as not “${question}”` };
  }

  otherGrids(reply) {
    const called = (one) => (this.asked.find((other) => other.name === one.question)?.classes ? `${one.question} ${one.class}` : one.class === "yes" ? one.question : `not ${one.question}`);
    const buttons = reply.others.map((one) => make("button", {
      class: "command", "aria-pressed": String(one.question === reply.question && one.class === reply.class),
      onclick: () => this.grid({ question: one.question, class: one.class }),
    }, `${called(one)} (${one.n.toLocaleString("en")})`));
    return [make("div", { class: "commands", role: "group", "aria-label": "Other grids" }, ...buttons)];
  }

  get keys() {
    return [...this.switches, ...(this.turn?.classes || [])].map((one) => one.key).concat(super.keys);
  }

  command(event) {
    const key = pressed(event, this.keys);
    if (key === null) return false;
    const one = this.switches.find((other) => other.key && other.key === key);
    if (one) {
      this.turnOver(one.name);
      return true;
    }
    const turn = this.turn;
    const found = turn?.classes.find((other) => other.key && other.key === key);
    if (found) {
      this.choose(turn, found.name);
      return true;
    }
    if (key === this.data.commands.accept) {
      this.confirm();
      return true;
    }
    return super.command(event);
  }

  searchKey(event) {
    if (event.key === "Enter" && !event.isComposing) {
      event.stopPropagation();
      event.preventDefault();
      const found = this.search.trim() ? this.switches.find((one) => this.fits(one.name)) : null;
      if (!this.search.trim()) this.confirm();
      else if (found) {
        this.search = this.box.value = "";
        this.turnOver(found.name);
      } else this.say("No switch has these words.");
      return;
    }
    super.searchKey(event);
  }

  pick() {} // a digit is no place in a list here

  may(command) {
    if (command === "name") return this.asked.some((one) => one.classes);
    return super.may(command) && !["twins", "accept"].includes(command);
  }

  request() {
    return { ...super.request(), ...this.mode };
  }

  take_in(reply, asked) {
    const stands = () => JSON.stringify([this.shown?.questions, this.asked]);
    const before = stands();
    if (reply.asked) this.known = reply.asked;
    super.take_in(reply, asked);
    if (before !== stands()) this.drawAnswers();
  }
}
