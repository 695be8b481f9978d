// Instructions on the page where they are written, as the desk shows them.

export default function (component) {
  const place = component.parentElement.querySelector(".desk-place") || component.parentElement;
  const words = component.data.blocks.length ? told(component.data.blocks) : [make("p", { class: "empty", textContent: "Nothing is written yet." })];
  place.replaceChildren(make("div", { class: "told preview" }, ...words));
}
