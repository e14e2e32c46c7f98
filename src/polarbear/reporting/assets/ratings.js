// The chart: ratings with bands, P(best) as stacked areas, or wins against the choice.

let frame = null;   // scales and size of the plot as it was drawn last

const MIN_SHOWN_BEST = 0.05;
const VIEWS = {
  rating: ["rating", "Chance to have the best solution of all on a new problem, with 95 % intervals"],
  best: ["P(best)", "Probability of the highest rating"],
  wins: ["against the choice", "Chance to beat the choice on a new problem"],
};

// In colour: whoever may be the best somewhere, the choice, and whom the reader asked for.
function isColoured(code) {
  const may = code === choice || (code < model.n && model.best[code].some((p) => p >= MIN_SHOWN_BEST));
  return may !== state.shown.has(model.algorithms[code]);
}

const GREY = { "--light": "#b4b9bf", "--dark": "#5c6066" };
const shownTint = (code) => (isColoured(code) ? tint(code) : GREY);

// Those in colour are drawn last, on top.
const visible = () => model.mean.map((_, code) => code).sort((a, b) => isColoured(a) - isColoured(b) || a - b);

// In each draw, a beats b on a new problem with probability r_a / (r_a + r_b).
function winsAgainst(code, rival) {
  const [own, other] = [model.draws[code], model.draws[rival]];
  return model.times.map((_, t) => {
    if (!own || !other) return model.mean[code][t] / (model.mean[code][t] + model.mean[rival][t]);
    return own[t].reduce((sum, one, d) => sum + one / (one + other[t][d]), 0) / own[t].length;
  });
}

function shownCurves() {
  if (state.view === "wins") return model.mean.map((_, code) => winsAgainst(code, choice));
  return state.view === "best" ? model.best : model.mean;
}

function drawRatings() {
  placeBudget();
  drawRibbon();
  drawAnswer();
  drawPlot();
  if (byId("figures").open) drawFigures();
}

function drawViews() {
  // Wins on a mix of classes do not follow from the ratings.
  const options = Object.entries(VIEWS).filter(([view]) => view !== "wins" || !model.classes).map(([view, [text]]) => [view, text]);
  choices(byId("views"), options, state.view, (view) => { state.view = view; drawPlot(); if (byId("figures").open) drawFigures(); });
  const against = state.view === "wins" ? [" ", marked(choice)] : [];
  byId("plot-title").replaceChildren(VIEWS[state.view][1], ...against);
}

function emphasise(code) {
  for (const one of byId("plot").querySelectorAll("[data-code]")) {
    one.classList.toggle("faint", code !== null && Number(one.dataset.code) !== code);
  }
}

function drawPlot() {
  const root = byId("plot"), width = root.clientWidth;
  if (!width) return;
  drawViews();
  if (model.times.length === 1) return drawSingle(root, width);
  const codes = visible(), values = shownCurves(), edges = margins(width), times = model.times, last = times.length - 1;
  const height = width < 640 ? 240 : 206;
  const tops = state.view === "rating" ? codes.map((code) => Math.max(...(isColoured(code) ? model.upper : model.mean)[code])) : [1];
  const highest = Math.min(1, Math.max(0.02, ...tops) * 1.03);
  const x = timeScale(width, edges), y = scaleOf(0, highest, height - 8, 6, false);
  frame = { x, y, width, height, codes, values, root };
  const marks = state.view === "best" ? areas(codes, x, y) : lines(codes, values, x, y);
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described() },
    heights(y, width, edges, highest), marks,
    width >= 640 && state.view !== "best" ? labels(codes, values, x, y, height, last) : [],
    svg("g", { id: "cross" }));
  root.replaceChildren(picture, html("div", { id: "tip", class: "tip", role: "status", hidden: true }));
  picture.addEventListener("pointermove", (event) => pointAt(nearest(event.offsetX), event.offsetY));
  picture.addEventListener("pointerleave", () => pointAt(null));
}

function lines(codes, values, x, y) {
  const { times } = model;
  const band = (code) => {
    const up = times.map((time, t) => [x(time), y(model.upper[code][t])]);
    const down = times.map((time, t) => [x(time), y(model.lower[code][t])]).reverse();
    return svg("path", { class: "band tinted", "data-code": code, d: `${line([...up, ...down])}Z`, look: tint(code) });
  };
  const curve = (code) => svg("path", {
    class: isColoured(code) ? "curve tinted" : "curve other", "data-code": code, "stroke-dasharray": isColoured(code) ? dash(code) : null,
    d: line(times.map((time, t) => [x(time), y(values[code][t])])), look: tint(code),
  });
  return [...(state.view === "rating" ? codes.filter(isColoured).map(band) : []), ...codes.map(curve)];
}

// P(best) as areas on top of each other, in the order in which the algorithms lead.
function areas(codes, x, y) {
  const { times } = model, base = new Float64Array(times.length);
  const order = rowOrder().filter((code) => code < model.n && isColoured(code));
  return order.map((code) => {
    const low = times.map((time, t) => [x(time), y(base[t])]);
    times.forEach((_, t) => { base[t] += model.best[code][t]; });
    const high = times.map((time, t) => [x(time), y(base[t])]).reverse();
    return svg("path", { class: "area tinted", "data-code": code, d: `${line([...low, ...high])}Z`, look: tint(code) }, svg("title", {}, model.algorithms[code]));
  });
}

const described = () => `${VIEWS[state.view][1]}: ${plural(model.n, "algorithm")} from ${range(model.times[0], lastTime())}. ${ribbonOf(model.ribbons).says}`;

const heights = (y, width, { left, right }, highest) => evenTicks(0, highest, 4).map((tick) => [
  svg("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
  svg("text", { class: "tick end", x: left - 7, y: y(tick) + 4 }, `${plain(100 * tick)} %`),
]).flat();

// Names at the ends of their lines, as many as fit; those in colour come first.
function labels(codes, values, x, y, height, last) {
  const fit = Math.floor((height - 10) / 15), all = codes.slice().reverse();
  const some = (all.length > fit ? all.filter(isColoured) : all).slice(0, fit);
  const places = spread(some.map((code) => y(values[code][last])), 15, 8, height - 10);
  const from = x(model.times[last]);
  return some.map((code, i) => svg("g", { "data-code": code },
    svg("path", { class: `leader tinted${isColoured(code) ? "" : " other"}`, d: line([[from + 3, y(values[code][last])], [from + 14, places[i]]]), look: tint(code) }),
    svg("text", { class: isColoured(code) ? "label strong" : "label other", x: from + 18, y: places[i] + 4 },
      shortened(model.algorithms[code], 16), svg("title", {}, model.algorithms[code]))));
}

// One time only: an interval for each algorithm.
function drawSingle(root, width) {
  const values = shownCurves();
  const codes = visible().sort((a, b) => values[b][0] - values[a][0]);
  const left = Math.min(190, width * 0.36), row = 24, height = codes.length * row + 40;
  const tops = state.view === "rating" ? codes.map((code) => model.upper[code][0]) : [1];
  const x = scaleOf(0, Math.min(1, Math.max(0.02, ...tops) * 1.05), left, width - 20, false);
  frame = null;
  const most = Math.floor(left / 7.5);
  const rows = codes.map((code, i) => {
    const middle = 14 + i * row;
    return svg("g", { "data-code": code },
      svg("text", { class: "label end", x: left - 10, y: middle + 4 }, shortened(model.algorithms[code], most), svg("title", {}, model.algorithms[code])),
      state.view === "rating" && svg("line", { class: "whisker tinted", x1: x(model.lower[code][0]), x2: x(model.upper[code][0]), y1: middle, y2: middle, look: tint(code) }),
      svg("circle", { class: "dot tinted", cx: x(values[code][0]), cy: middle, r: 5, look: tint(code) }));
  });
  const ticks = evenTicks(0, x.back(width - 20), Math.floor((width - left) / 80)).map((tick) => [
    svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 4, y2: height - 36 }),
    svg("text", { class: "tick middle", x: x(tick), y: height - 20 }, `${plain(100 * tick)} %`),
  ]);
  root.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described() },
    ticks.flat(), rows,
    svg("text", { class: "title middle", x: (left + width - 20) / 2, y: height - 3 },
      `${VIEWS[state.view][0]} at ${about(model.times[0])}`)));
}

const nearest = (pixel) => {
  const away = model.times.map((time) => Math.abs(frame.x(time) - pixel));
  return away.indexOf(Math.min(...away));
};

let pointed = null;

// Show the values at a time, and emphasise the curve next to the pointer.
function pointAt(t, pixel = null) {
  const tip = byId("tip"), cross = byId("cross");
  pointed = t;
  if (!frame || !tip) return;
  tip.hidden = t === null || !frame.codes.length;
  if (tip.hidden) { cross.replaceChildren(); emphasise(null); return; }
  const at = frame.x(model.times[t]);
  const ordered = frame.codes.slice().sort((a, b) => frame.values[b][t] - frame.values[a][t]);
  const close = pixel === null ? null : ordered.slice().sort((a, b) =>
    Math.abs(frame.y(frame.values[a][t]) - pixel) - Math.abs(frame.y(frame.values[b][t]) - pixel))[0];
  emphasise(close);
  const dots = state.view === "best" ? [] : ordered.filter(isColoured);
  cross.replaceChildren(
    svg("line", { class: "cross", x1: at, x2: at, y1: 6, y2: frame.height - 8 }),
    ...dots.map((code) => svg("circle", { class: "dot tinted", cx: at, cy: frame.y(frame.values[code][t]), r: 3.5, look: tint(code) })));
  const few = ordered.slice(0, 8);
  if (close !== null && !few.includes(close)) few.push(close);
  const rows = few.map((code) => html("tr", { class: code === close ? "close" : "" },
    html("td", {}, swatch(code), html("bdi", {}, shortened(model.algorithms[code], 24))),
    html("td", { class: "number" }, share(frame.values[code][t])),
    state.view === "rating" && html("td", { class: "number soft" }, shareRange(model.lower[code][t], model.upper[code][t]))));
  tip.replaceChildren(html("strong", {}, moment(model.times[t])), html("table", {}, ...rows),
    few.length < ordered.length ? html("p", { class: "soft" }, `and ${ordered.length - few.length} more`) : "");
  const room = frame.root.clientWidth - tip.offsetWidth - 4;
  tip.style.left = `${Math.max(0, Math.min(at < frame.width / 2 ? at + 14 : at - tip.offsetWidth - 14, room))}px`;
}

function plotKeys(event) {
  if (!frame || event.target !== byId("plot")) return;
  const last = model.times.length - 1, now = pointed ?? -1;
  const to = { ArrowRight: Math.min(now + 1, last), ArrowLeft: Math.max(now - 1, 0), Home: 0, End: last }[event.key];
  if (event.key === "Escape") pointAt(null);
  if (to === undefined) return;
  event.preventDefault();
  pointAt(to);
}

function drawFigures() {
  const codes = rowOrder().filter((code) => code < model.n), values = shownCurves();
  const head = html("tr", {}, html("th", { scope: "col", class: "number" }, model.clock === "time" ? "time" : model.clock),
    ...codes.map((code) => html("th", { scope: "col", class: "number" }, named(code))));
  const rows = model.times.map((time, t) => html("tr", {}, html("th", { scope: "row", class: "number" }, timed(time)),
    ...codes.map((code) => html("td", { class: "number" }, values[code][t].toFixed(3)))));
  const caption = VIEWS[state.view][1];
  byId("figures").querySelector("div").replaceChildren(
    html("table", {}, html("caption", {}, caption), html("thead", {}, head), html("tbody", {}, ...rows)));
}
