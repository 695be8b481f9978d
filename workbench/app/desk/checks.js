// The panel beside a check: how many there were, and the bound falling towards the line that was promised.

const figure = (tag, attributes = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

const share = (x, digits = 1) => `${Number((100 * x).toFixed(100 * x >= 10 ? 0 : digits))}\u00a0%`;

// "41 checks, 0 called wrong; 44 to 90 to go"
const checksSaid = (c) => {
  if (!c.curve) return "no checks were started";
  const so_far = `${counted(c.checks, "check")}, ${c.wrong.toLocaleString("en")} called wrong`;
  if (c.phase === "certified") return `${so_far}; that is enough`;
  return c.to_go ? `${so_far}; ${c.to_go}` : so_far;
};

// shares on a logarithmic scale, so that the fall is seen from the first check to the last
const checksChart = (c) => {
  const [width, height, left, top, bottom] = [320, 170, 42, 8, 22];
  const n = Math.max(20, c.checks + (c.ahead ?? 20));
  const least = Math.max(1e-3, Math.min(c.error, c.curve.at(-1)[1] || 1) / 1.6);
  const x = (t) => left + (t / n) * (width - left - 8);
  const y = (p) => top + (Math.log(1 / Math.max(p, least)) / Math.log(1 / least)) * (height - top - bottom);
  const parts = [];
  for (const p of [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005].filter((one) => one >= least && Math.abs(y(one) - y(c.error)) > 13))
    parts.push(figure("line", { class: "grid", x1: left, x2: width - 8, y1: y(p), y2: y(p) }), figure("text", { class: "tick", x: left - 6, y: y(p) + 4, "text-anchor": "end" }, share(p)));
  parts.push(
    figure("line", { class: "goal", x1: left, x2: width - 8, y1: y(c.error), y2: y(c.error) }),
    figure("text", { class: "tick goal", x: left - 6, y: y(c.error) + 4, "text-anchor": "end" }, share(c.error)),
  );
  for (const t of c.wrongs) parts.push(figure("line", { class: "wrong", x1: x(t), x2: x(t), y1: height - bottom, y2: height - bottom - 9 }));
  const [t, bound] = c.curve.at(-1);
  if (c.ahead) parts.push(figure("line", { class: "ahead", x1: x(t), y1: y(bound), x2: x(t + c.ahead), y2: y(c.error) }));
  parts.push(
    figure("polyline", { class: "bound", points: c.curve.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ") }),
    figure("circle", { class: "now", cx: x(t), cy: y(bound), r: 4 }),
    figure("text", { class: "tick", x: left, y: height - 5 }, "0"),
    figure("text", { class: "tick", x: width - 8, y: height - 5, "text-anchor": "end" }, `${n.toLocaleString("en")} checks`),
  );
  const said = `A checker calls at most ${share(bound)} of the labels wrong; the line is at ${share(c.error)}.`;
  return figure("svg", { class: "falling", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said }, ...parts);
};

const checksPanel = (c) => {
  const words = `${c.words[0].toUpperCase()}${c.words.slice(1)}.${c.checks ? ` Enough is ${share(c.error)}.` : ""}`;
  const parts = [
    make("h2", { class: "counter", textContent: checksSaid(c) }),
    checksChart(c),
    make("p", { class: "small", textContent: words }),
  ];
  if (c.second_looks) parts.push(make("p", { class: "small", textContent: `${counted(c.second_looks, "second look")}, ${c.disagreed.toLocaleString("en")} disagreed.` }));
  if (!c.to_go && c.checks >= 20) parts.push(make("p", { class: "small", textContent: "At this rate no number of checks would be enough." }));
  if (c.later) parts.push(make("p", { class: "small", textContent: `${counted(c.later, "answer")} count once an earlier check is answered, which somebody has on screen.` }));
  parts.push(make("p", { class: "small quietly", textContent: "Drawn at random; what the machine says is hidden, so that it does not lead you. What nobody can tell counts as wrong." }));
  return parts;
};

// what stands in the place of an item
const checksOver = (c) => {
  const told = { certified: "Enough checks were answered.", failed: "The checks say that the labels do not hold.", void: "What was frozen is not there any more.", none: "No checks were started." };
  return told[c.phase] || (c.unchecked || c.later ? "The next checks are on somebody else's screen." : "Every label was checked.");
};
