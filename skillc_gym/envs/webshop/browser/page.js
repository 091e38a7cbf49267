// Functions that the driver calls on a page of the site; each gets what it needs as arguments and returns JSON.

const CONTROLS = "button.btn, a.product-link, fieldset label";
const FIELD = "#search_input, #head-words";

// Everything that is read off a page at once. The page is what the site made it, whatever its texts say.
function read(withHtml) {
  const root = document.documentElement, main = document.getElementById("page");
  if (location.protocol === "chrome-error:") return {lost: true};
  if (!root.dataset.state || !main) return {missing: document.title};
  main.normalize();
  const nodes = [], walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, parent = text.parentElement;
    const kind = {BUTTON: "button", LABEL: "option", A: "link"}[parent.tagName] ?? "text";
    nodes.push([kind, text.data, parent.control?.name ?? "", parent.classList.contains("clicked")]);
  }
  const controls = [...main.querySelectorAll(CONTROLS)].map((element) => {
    if (element.tagName === "BUTTON") return ["button", element.textContent, "", element.value, false];
    const looked_at = element.classList.contains("clicked");
    if (element.tagName === "A") return ["link", element.textContent, "", element.getAttribute("href"), looked_at];
    const radio = element.control;
    return ["option", element.textContent, radio.name, radio.getAttribute("value"), radio.hasAttribute("checked")];
  });
  return {
    state: Number(root.dataset.state), kind: root.dataset.kind, facts: root.dataset.facts,
    path: location.pathname, query: location.search, nodes, controls,
    score: document.querySelector("#reward pre")?.textContent ?? null,
    searchable: document.querySelector(FIELD) !== null,
    html: withHtml ? main.innerHTML : null,
  };
}

// The same, as soon as it has been parsed, of a page of another state number than the given one. The promise of a page
// with that number is never kept: it ends with the page, which gives way to the next one.
function readNext(state, withHtml) {
  return new Promise((resolve) => {
    const done = () => resolve(read(withHtml));
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", done);
    else if (Number(document.documentElement.dataset.state) !== state) done();
  });
}

// Exchanges the page for another one without loading it, and reads that.
function exchange(html, address, withHtml) {
  const root = document.documentElement, other = new DOMParser().parseFromString(html, "text/html");
  history.replaceState(null, "", address);
  document.title = other.title;
  Object.assign(root.dataset, other.documentElement.dataset);
  document.body.replaceWith(document.adoptNode(other.body));
  return read(withHtml);
}

// Waits for styles and pictures.
function loaded() {
  const styled = document.readyState === "complete" || new Promise((done) => addEventListener("load", done));
  const drawn = () => Promise.all(Array.from(document.images, (image) => image.decode().catch(() => null)));
  return Promise.resolve(styled).then(drawn).then(() => null);
}

// Where to click on an element, once styles have put it in its place; null for one that cannot be clicked on.
function middle(element) {
  const find = () => {
    element.scrollIntoView({block: "center", behavior: "instant"});
    const box = element.getClientRects()[0];
    if (!box) return null;
    const x = box.x + box.width / 2, y = box.y + box.height / 2, top = document.elementFromPoint(x, y);
    return top && (element.contains(top) || top.contains(element)) ? [x, y] : null;
  };
  if (document.readyState === "complete") return find();
  return new Promise((resolve) => addEventListener("load", () => resolve(find())));
}

// Where to click on a control, by its number.
function point(number) {
  return middle(document.querySelectorAll(`#page :is(${CONTROLS})`)[number]);
}

// Goes to the search field, so that what is typed replaces what it holds.
function write() {
  const field = document.querySelector(FIELD);
  field.focus();
  field.select();
}

// Where to click in order to search; null unless the search field holds exactly these words.
function typed(words) {
  const field = document.querySelector(FIELD);
  return field.value === words ? middle(field.form.querySelector("button")) : null;
}
