"""What the driver asks of a page, one script a question."""

from __future__ import annotations

__all__ = ["EXCHANGE", "LOADED", "POINT", "READ", "READ_NEXT", "TYPED", "WRITE"]

CONTROLS = "button.btn, a.product-link, fieldset label"
_FIELD = "#search_input, #head-words"

_READING = f"""
const root = document.documentElement, main = document.getElementById("page");
if (location.protocol === "chrome-error:") return {{lost: true}};
if (!root.dataset.state || !main) return {{missing: document.title}};
main.normalize();
const nodes = [], walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {{
  const text = walker.currentNode, parent = text.parentElement;
  const kind = {{BUTTON: "button", LABEL: "option", A: "link"}}[parent.tagName] ?? "text";
  nodes.push([kind, text.data, parent.control?.name ?? "", parent.classList.contains("clicked")]);
}}
const controls = [...main.querySelectorAll("{CONTROLS}")].map((element) => {{
  if (element.tagName === "BUTTON") return ["button", element.textContent, "", element.value, false];
  if (element.tagName === "A") return ["link", element.textContent, "", element.getAttribute("href"), false];
  const radio = element.control;
  return ["option", element.textContent, radio.name, radio.getAttribute("value"), radio.hasAttribute("checked")];
}});
return {{
  state: Number(root.dataset.state), kind: root.dataset.kind, facts: root.dataset.facts,
  path: location.pathname, query: location.search, nodes, controls,
  score: document.querySelector("#reward pre")?.textContent ?? null,
  searchable: document.querySelector("{_FIELD}") !== null,
  html: arguments[arguments.length - 1] ? main.innerHTML : null,
}};
"""

READ = f"return (() => {{{_READING}}})();"
"""Everything that is read off a page at once; its last argument: whether HTML is wanted, too."""

READ_NEXT = f"""
const read = () => {{{_READING}}};
return new Promise((resolve) => {{
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => resolve(read()));
  else if (Number(document.documentElement.dataset.state) !== arguments[0]) resolve(read());
}});
"""
"""The same, as soon as it has been parsed, of a page of another state number than the first argument.

The promise of a page with that number is never kept: it ends with the page, which gives way to the next one."""

LOADED = """
return (document.readyState === "complete" ? Promise.resolve() : new Promise((done) => addEventListener("load", done)))
  .then(() => Promise.all(Array.from(document.images, (image) => image.decode().catch(() => null)))).then(() => null);
"""
"""Waits for styles and pictures."""

_MIDDLE = """
const middle = () => {
  element.scrollIntoView({block: "center", behavior: "instant"});
  const box = element.getClientRects()[0];
  if (!box) return null;
  const x = box.x + box.width / 2, y = box.y + box.height / 2, top = document.elementFromPoint(x, y);
  return top && (element.contains(top) || top.contains(element)) ? [x, y] : null;
};
if (document.readyState === "complete") return middle();
return new Promise((resolve) => addEventListener("load", () => resolve(middle())));
"""
"""Where to click on an element, once styles have put it in its place."""

POINT = f'const element = document.querySelectorAll("#page :is({CONTROLS})")[arguments[0]];' + _MIDDLE
"""Where to click on a control, by its number; null for one that cannot be clicked on."""

WRITE = f'const field = document.querySelector("{_FIELD}"); field.focus(); field.select();'
"""Goes to the search field, so that what is typed replaces what it holds."""

TYPED = (
    f'const field = document.querySelector("{_FIELD}");'
    'if (field.value !== arguments[0]) return null; const element = field.form.querySelector("button");' + _MIDDLE
)
"""Where to click in order to search; null unless the search field holds exactly these words."""

EXCHANGE = """{
const [html, address] = arguments, root = document.documentElement;
const other = new DOMParser().parseFromString(html, "text/html");
history.replaceState(null, "", address);
document.title = other.title;
Object.assign(root.dataset, other.documentElement.dataset);
document.body.replaceWith(document.adoptNode(other.body));
}"""
"""Exchanges the page for another one without loading it."""
