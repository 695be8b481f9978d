// Whose a key is, for desk, gallery and map alike: what has the focus keeps the keys that are its own, and what is
// left is the view's.

// a key as people read it, and a press as the server names it
const keyNames = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };
const keyName = (key) => keyNames[key] || (key && key.length === 1 ? key.toUpperCase() : (key || "").replace(/\+([a-z])$/, (_, one) => `+${one.toUpperCase()}`));
//
// It counts by its letter or sign. Where that means nothing here (`keys` are those that do), as in another script, with
// an input method or on a row of digits that gives signs, it counts by its place on the board. A Latin letter never does:
// on a board with its letters elsewhere that would be the key of another.
const pressed = (event, keys) => {
  const letter = /^Key([A-Z])$/.exec(event.code)?.[1].toLowerCase();
  if (event.altKey) return letter ? `Alt+${letter}` : null;
  const named = (one) => (event.shiftKey && /^[a-z]$/.test(one) ? `Shift+${one}` : one);
  const names = [named(event.key.length === 1 ? event.key.toLowerCase() : event.key)];
  const foreign = /^\p{L}+$/u.test(event.key) && !/\p{Script=Latin}/u.test(event.key);
  if (letter && (foreign || ["Process", "Unidentified"].includes(event.key))) names.push(named(letter));
  const digit = /^Digit(\d)$/.exec(event.code)?.[1];
  if (digit && !event.shiftKey) names.push(digit);
  return names.find((one) => keys.includes(one)) ?? names[0];
};

// where people type, or a letter looks for something: every key is theirs
const TYPED = [
  "input:not([type=checkbox], [type=radio], [type=button], [type=submit], [type=reset], [type=file], [type=range], [type=color])",
  "textarea", "select", "canvas", "iframe", "[contenteditable]:not([contenteditable=false])", "[data-testid=stPopoverBody]",
  ...["textbox", "searchbox", "combobox", "listbox", "menu", "menubar", "grid", "treegrid", "tree", "spinbutton", "dialog", "alertdialog", "application"].map((role) => `[role=${role}]`),
].join(", ");
// what arrows move
const STEERED = ["input[type=radio]", "input[type=range]", ...["slider", "tab", "tablist", "radio", "radiogroup", "separator"].map((role) => `[role=${role}]`)].join(", ");
const STEERS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);
// what Enter or Space presses
const PRESSED = ["button", "a[href]", "summary", "input", "label", "audio", "video", ...["button", "link", "checkbox", "switch", "option", "menuitem", "treeitem"].map((role) => `[role=${role}]`)].join(", ");
const PRESSES = new Set(["Enter", " "]);

const within = (path, selectors) => path.some((node) => node instanceof Element && node.matches(selectors));

// whether a press of Enter or Space is that of a button, a link or the like
const presses = (event) => PRESSES.has(event.key) && within(event.composedPath(), `${PRESSED}, ${STEERED}`);

// whether a key is somebody else's than the view's; `own` is a part of the view whose keys are all the view's
const theirs = (event, own = null) => {
  if (event.isComposing || event.key === "Tab") return true;
  if (document.querySelector("[data-testid=stDialog]")) return true; // wherever the focus is
  if (event.key === "Escape" && document.querySelector("[data-testid=stPopoverBody]")) return true;
  const path = event.composedPath();
  if (own && path.includes(own)) return false;
  return within(path, TYPED) || (STEERS.has(event.key) && within(path, STEERED)) || presses(event);
};
