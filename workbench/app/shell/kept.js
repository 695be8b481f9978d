// What waits in this browser of a project that is not this person's to open any more.

export default function ({ data, parentElement }) {
  const outbox = new Outbox(data.project, data.account);
  const n = outbox.of(data.person).length;
  const words = `${counted(n, "answer")} of yours ${n === 1 ? "waits" : "wait"} in this browser, and ${n === 1 ? "is" : "are"} sent once you may open the project again.`;
  const parts = n ? [make("div", { class: "desk" }, make("p", { class: "message", textContent: words }), keptButton(outbox, data.person, data.project))] : [];
  parentElement.querySelector(".desk-place").replaceChildren(...parts);
}
