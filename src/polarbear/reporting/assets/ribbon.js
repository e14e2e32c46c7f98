// The ribbon: who leads at each time, paler and hatched where that is not certain.

const CERTAIN = 0.95;
const PAPER = { light: "#ffffff", dark: "#15181c" };

// The opacity of a cell, as in ribbon.py.
const strength = (p) => Math.min(1, Math.max(0.3, 0.3 + (0.7 * (p - 0.3)) / 0.65));

const pen = document.createElement("canvas").getContext("2d");

// The width of a name in a cell, with a margin.
function wide(text) {
  pen.font = "700 17px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
  return pen.measureText(text).width + 8;
}

// The margins of everything with a time axis, so that all of it lies below each other.
function margins(width) {
  const names = model.algorithms.map((name) => Math.min(Array.from(name).length, 16));
  return width < 640 ? { left: 36, right: 12 } : { left: 52, right: Math.min(40 + 8 * Math.max(...names, 4), 160) };
}

function timeScale(width, { left, right }) {
  return scaleOf(model.times[0], lastTime(), left, width - right, logTime());
}

// One ribbon as SVG; its cells are {t, x, width} of each time.
function ribbonPicture(ribbon, width, edges, height, label) {
  const single = model.times.length === 1, x = timeScale(width, edges);
  const at = ribbon.edges.map((edge, k) => (single ? x.ends[k] : x(edge)));
  const cells = ribbon.top.map(([code], t) => {
    const place = { x: at[t], y: 2, width: Math.max(at[t + 1] - at[t], 0.5) + 0.4, height };
    const p = ribbon.probability[t][0];
    return [svg("rect", { class: "cell tinted", "data-code": code, ...place, "fill-opacity": strength(p).toFixed(2), look: tint(code) }),
      p < CERTAIN && svg("rect", { class: "hatched", ...place })];
  });
  const names = ribbon.leads.map((lead) => {
    const from = at[lead.first], to = at[lead.last + 1], name = shortened(model.algorithms[lead.algorithm], 20);
    if (wide(name) > to - from) return null;
    const middle = ribbon.probability[Math.round((lead.first + lead.last) / 2)][0], look = model.looks[lead.algorithm];
    const ink = (kind) => inkOn(look[kind], strength(middle), PAPER[kind]);
    return svg("text", { class: "cell-name middle tinted", x: (from + to) / 2, y: 2 + height / 2 + 6,
      look: { "--light": ink("light"), "--dark": ink("dark"), "--light-ground": mixed(look.light, strength(middle), PAPER.light), "--dark-ground": mixed(look.dark, strength(middle), PAPER.dark) } }, name);
  });
  const bounds = ribbon.leads.slice(1).map(({ first }) => svg("line", { class: "bound", x1: at[first], x2: at[first], y1: 0, y2: height + 6 }));
  const total = height + (label ? 22 : 4);
  return svg("svg", { width, height: total, viewBox: `0 0 ${width} ${total}`, role: "img", "aria-label": `What to run if you stop here: ${ribbon.says}` },
    svg("defs", {}, svg("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { class: "hatch", width: 2, height: 7 }))),
    cells.flat(), bounds, names, label ? ribbonTicks(ribbon, at, x, height + 18) : []);
}

function mixed(colour, opacity, ground) {
  const level = (hex, k) => parseInt(hex.slice(2 * k + 1, 2 * k + 3), 16);
  return `rgb(${[0, 1, 2].map((k) => Math.round(opacity * level(colour, k) + (1 - opacity) * level(ground, k))).join(" ")})`;
}

// The ends of the axis and the times at which the leader changes, where these fit.
function ribbonTicks(ribbon, at, x, y) {
  const last = roughly(lastTime()), texts = [];
  if (model.times.length === 1) return [svg("text", { class: "tick middle", x: (x.ends[0] + x.ends[1]) / 2, y }, about(lastTime()))];
  const text = (place, said, look, exact) => svg("text", { class: `tick ${look}`, x: place, y }, said, svg("title", {}, moment(exact)));
  let end = x.ends[0] + 7 * roughly(model.times[0]).length + 8;
  texts.push(text(x.ends[0], roughly(model.times[0]), "", model.times[0]));
  for (const { first, start } of ribbon.leads.slice(1)) {
    const half = (7 * timed(start).length) / 2;
    if (at[first] - half < end || at[first] + half > x.ends[1] - 7 * last.length - 8) continue;
    texts.push(text(at[first], timed(start), "middle", ribbon.edges[first]));
    end = at[first] + half + 8;
  }
  return [...texts, text(x.ends[1], last, "end", lastTime())];
}

let cellAt = null;

let pastRibbon = () => null;   // of the round of a race that the reader looks at

const shownRibbon = () => pastRibbon() ?? ribbonOf(model.ribbons);

function drawRibbon() {
  const root = byId("ribbon"), width = root.clientWidth, ribbon = shownRibbon();
  if (!width) return;
  const picture = ribbonPicture(ribbon, width, margins(width), 44, true);
  root.replaceChildren(picture, html("div", { class: "tip", id: "ribbon-tip", role: "status", hidden: true }));
  root.setAttribute("aria-label", `What to run if you stop here: ${ribbon.says}. Arrow keys show the most likely at a time, Enter sets the budget to it.`);
  byId("ribbon-title").textContent = `What to run if you stop here${model.clock === "time" ? "" : `, in ${model.clock}`}`;
  byId("ribbon-note").textContent = ribbon.probability.some(([p]) => p < CERTAIN) ? "pale and hatched: less than 95 % certain" : "all at least 95 % certain";
  const cell = (event) => {
    const [from, to] = timeScale(width, margins(width)).ends, x = timeScale(width, margins(width));
    const time = event.offsetX <= from ? -Infinity : event.offsetX >= to ? Infinity : x.back(event.offsetX);
    const inside = ribbon.edges.slice(1, -1).findIndex((edge) => time < edge);
    return inside < 0 ? model.times.length - 1 : inside;
  };
  picture.addEventListener("pointermove", (event) => showCell(cell(event)));
  picture.addEventListener("pointerleave", () => showCell(null));
  picture.addEventListener("click", (event) => stopAt(cell(event)));
}

function stopAt(t) {
  if (model.times.length === 1) return;
  Object.assign(state, { kind: "exactly", at: model.times[t] });
  budgetChanged();
}

// The three most likely at a time, beside the pointer.
function showCell(t) {
  const tip = byId("ribbon-tip"), ribbon = shownRibbon();
  cellAt = t;
  if (!tip) return;
  tip.hidden = t === null;
  if (tip.hidden) return;
  tip.replaceChildren(html("strong", {}, moment(model.times[t])), html("table", {}, ...ribbon.top[t].map((code, k) =>
    html("tr", {}, html("td", {}, swatch(code), named(code)), html("td", { class: "number" }, share(ribbon.probability[t][k]))))));
  const root = byId("ribbon"), x = timeScale(root.clientWidth, margins(root.clientWidth))(model.times[t]);
  tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, root.clientWidth - tip.offsetWidth))}px`;
}

function ribbonKeys(event) {
  const last = model.times.length - 1, now = cellAt ?? -1;
  if (event.key === "Escape") showCell(null);
  if ((event.key === "Enter" || event.key === " ") && cellAt !== null) { event.preventDefault(); stopAt(cellAt); }
  const to = { ArrowRight: Math.min(now + 1, last), ArrowLeft: Math.max(now - 1, 0), Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  showCell(to);
}
