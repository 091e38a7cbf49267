"use strict";
// An option is chosen by clicking on it, or by Space or Enter; arrow keys only move between options, so that nobody who
// listens to them one by one is sent to another page at each.
document.addEventListener("click", (event) => {
  if (event.target.matches("form.options input[type=radio]")) event.target.form.requestSubmit();
});
document.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  if (!step || !event.target.matches("form.options input[type=radio]")) return;
  event.preventDefault();
  const radios = [...event.target.form.querySelectorAll("input[type=radio]")];
  radios[(radios.indexOf(event.target) + step + radios.length) % radios.length].focus();
});
// After a choice the page is another one: the focus goes back to the option.
const KEY = "option";
document.addEventListener("submit", (event) => {
  const radio = event.target.querySelector("input[type=radio]:focus");
  if (radio) sessionStorage.setItem(KEY, radio.id);
});
const last = sessionStorage.getItem(KEY);
if (last) {
  sessionStorage.removeItem(KEY);
  document.getElementById(last)?.focus();
}
