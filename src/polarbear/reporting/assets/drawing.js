// Elements, scales and axes. Text is always set as text, so that no name can be markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "look") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== false));
  return element;
}

const html = (name, attributes = {}, ...children) =>
  filled(document.createElement(name), attributes, children);

const svg = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

// The colours of an algorithm; the style sheet takes the one for a light or a dark page.
const tint = (code) => ({ "--light": model.looks[code].light, "--dark": model.looks[code].dark });
const dash = (code) => (model.looks[code].dash.length ? model.looks[code].dash.join(" ") : null);

// A name beside its swatch; a long name wraps in a column of its own.
const labelled = (code) => html("span", { class: "labelled" }, swatch(code), named(code));

// A name, isolated from the text direction around it.
const named = (code) => html("bdi", { class: "name" }, model.algorithms[code]);

const swatch = (code) => svg("svg", { class: "swatch tinted", viewBox: "0 0 22 8", "aria-hidden": "true", look: tint(code) },
  svg("line", { x1: 1, x2: 21, y1: 4, y2: 4, "stroke-dasharray": dash(code) }));

const shortened = (text, most) => {
  const letters = Array.from(text.replace(/\s+/g, " "));
  return letters.length <= most ? letters.join("") : `${letters.slice(0, most - 1).join("")}…`;
};

// The lightness of a colour, and black or white on top of it.
function inkOn(colour, opacity, ground) {
  const level = (hex, k) => parseInt(hex.slice(2 * k + 1, 2 * k + 3), 16);
  const linear = [0, 1, 2].map((k) => (opacity * level(colour, k) + (1 - opacity) * level(ground, k)) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (light + 0.05) ** 2 > 0.0525 ? "#000000" : "#ffffff";
}

// A scale that converts values to pixels and back.
function scaleOf(first, last, from, to, log) {
  const place = log ? Math.log : (value) => value;
  const back = log ? Math.exp : (value) => value;
  const low = place(first), wide = place(last) - low;
  const scale = (value) => (wide ? from + ((place(value) - low) / wide) * (to - from) : (from + to) / 2);
  scale.back = (pixel) => back(low + ((pixel - from) / (to - from)) * wide);
  scale.ends = [from, to];
  return scale;
}

function evenTicks(first, last, about) {
  if (!(last > first)) return [first];
  const rough = (last - first) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(first / step - 1e-9); k * step <= last * (1 + 1e-12); k++) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(first, last, about) {
  const decades = Math.log10(last / first);
  if (decades < 1) return evenTicks(first, last, about);
  const ticks = [];
  const parts = decades < 2.2 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / about));
  const start = decades < 2.2 ? Math.floor(Math.log10(first)) : Math.ceil(Math.log10(first) - 1e-9);
  for (let power = start; power <= Math.log10(last) + 1e-9; power += every) {
    ticks.push(...parts.map((part) => part * 10 ** power));
  }
  return ticks.filter((tick) => tick >= first * 0.999 && tick <= last * 1.001);
}

const line = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// Move heights of labels at least a gap apart.
function spread(wanted, gap, low, high) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const place = wanted.slice();
  let edge = low;
  for (const i of order) { place[i] = Math.max(place[i], edge); edge = place[i] + gap; }
  edge = high;
  for (const i of order.reverse()) { place[i] = Math.min(place[i], edge); edge = place[i] - gap; }
  return place;
}

// Draw a row of buttons, one of which is pressed.
function choices(root, options, pressed, choose) {
  root.replaceChildren(...options.map(([value, text]) => html("button", {
    type: "button", class: "option", "data-value": value, "aria-pressed": String(value === pressed),
    on: { click: () => { choose(value); focusAgain(root, value); } },
  }, text)));
}

// Keep the keyboard focus when a row is drawn again.
function focusAgain(root, value) {
  [...root.children].find((one) => one.dataset.value === value)?.focus();
}

const toggled = (set, value) => { if (!set.delete(value)) set.add(value); };

// Show the beginning of a long list, with a button for all of it.
function shortList(button, name, total, few, what, draw) {
  // A few more entries are shown without a button.
  const all = state.open.has(name) || total <= 1.3 * few;
  button.hidden = total <= 1.3 * few;
  button.textContent = all ? `Show the first ${few} only` : `Show all ${total.toLocaleString("en-US")} ${what}`;
  button.onclick = () => { toggled(state.open, name); draw(); };
  return all ? total : Math.min(few, total);
}
