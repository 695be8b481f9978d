// Instructions as nodes: what the server read of the Markdown is drawn with text alone, never as HTML.

const toldRuns = (runs) => (runs || []).map((run) => {
  if (run.kind === "text") return document.createTextNode(run.text);
  if (run.kind === "code") return make("code", { textContent: run.text });
  if (run.kind === "break") return make("br");
  if (run.kind === "picture") return make("img", { class: "told-picture", src: run.src, alt: run.alt || "", loading: "lazy", decoding: "async" });
  if (run.kind === "link" && /^(https?:\/\/|mailto:)/i.test(run.to)) return make("a", { href: run.to, target: "_blank", rel: "noopener noreferrer" }, ...toldRuns(run.runs));
  return make(run.kind === "strong" ? "strong" : run.kind === "em" ? "em" : "span", {}, ...toldRuns(run.runs));
});

const toldBlock = (block) => {
  if (block.kind === "heading") return make(`h${Math.min(block.level + 2, 6)}`, {}, ...toldRuns(block.runs));
  if (block.kind === "paragraph") return make("p", {}, ...toldRuns(block.runs));
  if (block.kind === "code") return make("pre", { tabIndex: 0 }, make("code", { textContent: block.text }));
  if (block.kind === "rule") return make("hr");
  if (block.kind === "quote") return make("blockquote", {}, ...told(block.blocks));
  if (block.kind === "table") {
    const row = (cells, tag) => make("tr", {}, ...cells.map((runs) => make(tag, tag === "th" ? { scope: "col" } : {}, ...toldRuns(runs))));
    return make("div", { class: "told-table", tabIndex: 0 }, make("table", {}, make("thead", {}, row(block.head, "th")), make("tbody", {}, ...block.rows.map((cells) => row(cells, "td")))));
  }
  const list = make(block.ordered ? "ol" : "ul", {}, ...block.items.map((item) => make("li", {}, ...told(item))));
  if (block.ordered && block.start !== 1) list.start = block.start;
  return list;
};

const told = (blocks) => blocks.map((block) => {
  const node = toldBlock(block);
  node.dir = "auto";
  if (block.fresh) node.classList.add("fresh");
  return node;
});

// the class with two or three items that show what it is
const toldClass = (one, keep) => {
  const head = make("h4", {}, ...(one.colour ? [make("span", { class: "swatch" })] : []), ...broken(one.name));
  if (one.colour) head.firstChild.style.background = one.colour;
  const kind = one.examples[0]?.face.kind;
  const items = one.examples.map((example) => make("figure", {}, faceOf(example.face), make("button", {
    class: "keep", "aria-pressed": String(example.picked), textContent: example.picked ? "Kept" : "Keep",
    title: example.picked ? "Kept as an example for everybody; a click lets it go" : "Nearest to the middle of its class; a click keeps it for everybody",
    "aria-label": `${example.picked ? "Kept" : "Keep"} as an example of ${one.name}: ${example.id}`,
    onclick: () => keep(one, example),
  })));
  return make("section", { class: "told-class" }, head,
    ...(one.help ? [make("p", { dir: "auto", textContent: one.help })] : []),
    ...(items.length ? [make("div", { class: `examples of-${kind}` }, ...items)] : []));
};

// all of the panel
const toldSheet = (sheet, acts) => {
  const unread = sheet.version > sheet.read;
  const news = unread ? (sheet.read ? "changed since you last read" : "new to you") : "";
  const head = make("div", { class: "told-head" },
    make("h2", { textContent: "Instructions" }),
    ...(news ? [make("span", { class: "badge marked", textContent: news })] : []),
    make("span", { class: "space" }),
    ...(acts.read && unread ? [make("button", { class: "command strong", textContent: "I have read them", onclick: acts.read })] : []),
    make("button", { class: "command quiet", title: "Close the instructions", onclick: acts.close }, "Close", make("kbd", { textContent: acts.key })));
  const classes = sheet.classes.filter((one) => one.help || one.examples.length);
  return [head,
    ...(sheet.version ? [make("p", { class: "small by", textContent: `Version ${sheet.version}, by ${sheet.author}, ${sheet.time.slice(0, 16).replace("T", " ")} UTC` })] : [make("p", { class: "small", textContent: "Nobody has written any yet: Instructions, at the top of the page." })]),
    make("div", { class: "told" }, ...told(sheet.blocks)),
    ...(classes.length ? [make("h3", { textContent: "The classes" }), ...classes.map((one) => toldClass(one, acts.keep))] : []),
    ...(sheet.more > 0 ? [make("p", { class: "small", textContent: `and ${counted(sheet.more, "more class", "more classes")}` })] : [])];
};
