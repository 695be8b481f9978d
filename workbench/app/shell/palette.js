// Ctrl+K on every page: pages, projects, classes and actions by their words.
//
// A dialog in the browser's top layer; the script is told what was chosen, and goes there. Keys of whatever lies
// below do not count while it is open. Links to pages of help, which would open a tab of their own, go the same way.

const MOST = 12;

class Palette {
  constructor() {
    this.entries = [];
    this.here = 0;
    this.dialog = document.createElement("dialog");
    this.dialog.setAttribute("aria-label", "Go to");
    this.box = document.createElement("input");
    this.box.type = "text";
    this.box.placeholder = "Page, project, class or action";
    this.box.setAttribute("aria-label", "Page, project, class or action");
    this.box.autocomplete = "off";
    this.list = document.createElement("ul");
    this.dialog.append(this.box, this.list);
    this.box.addEventListener("input", () => { this.here = 0; this.draw(); });
    this.dialog.addEventListener("keydown", (event) => this.within(event));
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
    this.onKey = (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || pressed(event, ["k"]) !== "k") return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (this.dialog.open) this.dialog.close();
      else this.show();
    };
    window.addEventListener("keydown", this.onKey, true);
    window.workbenchPalette = true; // the few lines in the index that waited for it (frontend.py) have done their work
    document.addEventListener("click", (event) => this.onLink(event), true);
  }

  // a plain click; whoever wants another tab says so with a key or the middle button
  onLink(event) {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.composedPath().find((node) => node instanceof HTMLAnchorElement && node.target === "_blank");
    if (!link || link.origin !== location.origin || !link.pathname.endsWith("/help")) return;
    const page = new URLSearchParams(link.search).get("page");
    if (!page || !this.dialog.isConnected) return;
    event.preventDefault();
    this.tell(`help:${page}`);
  }

  mount(root, entries, tell) {
    this.entries = entries;
    this.tell = tell;
    if (this.dialog.parentNode !== root) root.append(this.dialog);
    if (window.workbenchWanted) {
      // pressed before this script had come
      window.workbenchWanted = false;
      this.show();
    }
  }

  show() {
    if (!this.dialog.isConnected) return;
    this.box.value = "";
    this.here = 0;
    this.draw();
    this.dialog.showModal();
    this.box.focus();
  }

  found() {
    const words = this.box.value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.entries.filter((one) => words.every((word) => `${one.kind} ${one.name}`.toLowerCase().includes(word))).slice(0, MOST);
  }

  draw() {
    const found = this.found();
    this.here = Math.max(0, Math.min(this.here, found.length - 1));
    this.list.replaceChildren(...found.map((one, place) => {
      const button = document.createElement("button");
      const kind = document.createElement("span");
      kind.className = "kind";
      kind.textContent = one.kind;
      const name = document.createElement("span");
      name.className = "name";
      name.dir = "auto";
      name.textContent = one.name;
      button.append(name, kind);
      button.tabIndex = -1;
      button.setAttribute("aria-current", String(place === this.here));
      button.addEventListener("click", () => this.choose(one));
      const line = document.createElement("li");
      line.append(button);
      return line;
    }));
    if (!found.length) {
      const line = document.createElement("li");
      line.textContent = "Nothing has these words.";
      this.list.append(line);
    }
  }

  within(event) {
    event.stopPropagation(); // what lies below does not hear it
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.here += event.key === "ArrowDown" ? 1 : -1;
      this.draw();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      const one = this.found()[this.here];
      if (one) this.choose(one);
    }
  }

  choose(one) {
    this.dialog.close();
    this.tell(one.id);
  }
}

let palette = null;

export default function ({ data, parentElement, setTriggerValue }) {
  palette ||= new Palette();
  const entries = JSON.parse(typeof data === "string" ? data : new TextDecoder().decode(data));
  palette.mount(parentElement, entries, (id) => setTriggerValue("go", id));
}
