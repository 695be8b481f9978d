// The desk of all questions: the item stays while they are answered. Switches turn with a key each, a question
// with classes takes the first keys while it is its turn, Enter stores what stands.

class DeskOfEvery extends Desk {
  get asked() {
    return this.known || this.data.asked;
  }

  get switches() {
    const open = new Set((this.card?.questions || []).map((one) => one.name));
    return this.asked.filter((one) => !one.classes && open.has(one.name));
  }

  get searching() {
    return this.switches.some((one) => !one.key);
  }

  // what stands for an item: what was pressed, else the model's guess, else no
  chosen(card) {
    if (!card.chosen) {
      card.chosen = {};
      card.turned = new Set();
      for (const one of card.questions) {
        const about = this.asked.find((other) => other.name === one.name);
        if (about) card.chosen[one.name] = about.classes ? one.guess || null : one.p >= 0.5 ? "yes" : "no";
      }
    }
    return card.chosen;
  }

  // the question with classes whose turn it is
  get turn() {
    const card = this.card;
    if (!card) return null;
    const open = new Set(card.questions.map((one) => one.name));
    return this.asked.find((one) => one.classes && open.has(one.name) && !card.turned?.has(one.name)) || null;
  }

  drawAnswers() {
    const card = this.shown;
    this.answers.className = "answers every";
    if (!card || !card.questions) {
      this.answers.replaceChildren();
      return;
    }
    const chosen = this.chosen(card);
    const of = new Map(card.questions.map((one) => [one.name, one]));
    const turn = this.turn;
    const lines = this.asked.filter((one) => one.classes && of.has(one.name)).map((one) => {
      const now = one === turn;
      const buttons = one.classes.map(({ name, key }) => make("button", {
        class: "answer", "data-class": name, "aria-pressed": String(chosen[one.name] === name), onclick: () => this.choose(one, name),
      }, make("span", { class: "name" }, ...broken(name)), now && key ? make("kbd", { textContent: keyName(key) }) : null));
      const head = make("h3", { title: one.words }, one.name, of.get(one.name).unsure ? this.mark(of.get(one.name)) : null);
      return make("section", { class: `asked ${now ? "turn" : ""}`, "data-question": one.name, "aria-current": now ? "step" : null }, head, make("div", { class: "choices" }, ...buttons));
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
      }, make("span", { class: "knob" }), make("span", { class: "name" }, ...broken(one.name)), said.unsure ? this.mark(said) : null, one.key ? make("kbd", { textContent: keyName(one.key) }) : null);
    });
    const row = make("div", { class: "switches" }, ...switches);
    if (this.searching) {
      this.box.placeholder = `Type to search ${this.switches.length} switches; Enter turns the first`;
      const focused = this.box.getRootNode().activeElement === this.box;
      row.prepend(this.box);
      if (focused) setTimeout(() => this.box.focus({ preventScroll: true }), 0);
    }
    const save = make("button", { class: "command strong", "data-command": "save", onclick: () => this.confirm() }, "Save all and go on", make("kbd", { textContent: keyName(this.data.commands.accept) }));
    this.answers.replaceChildren(...lines, ...(this.switches.length ? [row] : []), save);
  }

  fits(name) {
    const words = this.search.toLowerCase().split(" ").filter(Boolean);
    return words.length > 0 && words.every((word) => name.toLowerCase().includes(word));
  }

  mark(said) {
    return make("span", { class: "doubt", title: `The model is unsure: ${Math.round(100 * said.p)} %`, textContent: "unsure" });
  }

  turnOver(name) {
    const card = this.card;
    if (!card) return;
    const chosen = this.chosen(card);
    chosen[name] = chosen[name] === "yes" ? "no" : "yes";
    this.drawAnswers();
    this.live.textContent = `${name}: ${chosen[name]}`;
  }

  choose(one, name) {
    const card = this.card;
    if (!card) return;
    this.chosen(card)[one.name] = name;
    card.turned.add(one.name);
    if (!this.turn && !this.switches.length) this.confirm();
    else this.drawAnswers();
  }

  confirm() {
    const card = this.card;
    if (!card) {
      this.say("No item is on screen yet: the key was not taken.");
      return;
    }
    const chosen = this.chosen(card);
    const open = Object.keys(chosen).find((name) => chosen[name] === null);
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
    const card = this.card;
    if (card && what.kind === "unsure") super.answer({ kind: "answers", answers: Object.fromEntries(card.questions.map((one) => [one.name, null])) });
    else if (card && what.kind === "skip") super.answer({ kind: "answers", answers: {}, skip: true });
    else super.answer(what);
  }

  command(event) {
    const key = pressed(event);
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
    return super.may(command) && !["grid", "back", "forward", "name", "twins", "accept"].includes(command);
  }

  request() {
    return { ...super.request(), mode: "every" };
  }

  take_in(reply, asked) {
    if (reply.asked) this.known = reply.asked;
    const before = JSON.stringify(this.shown?.questions);
    super.take_in(reply, asked);
    if (before !== JSON.stringify(this.shown?.questions)) this.drawAnswers();
  }
}
