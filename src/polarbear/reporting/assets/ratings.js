// Ratings over time: lines with bands, names to toggle, values at a time.

let frame = null;   // scales and size of the plot as it was drawn last

const visible = () => model.mean.map((_, code) => code).filter((code) => !state.hidden.has(model.algorithms[code]));

// Members of the Pareto set are drawn last, on top.
const byImportance = (codes) => codes.slice().sort((a, b) => inSet(a) - inSet(b) || a - b);

const shownCurves = () => (state.view === "best" ? model.best : model.mean);

function drawRatings() {
  choices(byId("views"), [["rating", "Rating"], ["best", "Probability of being the best"]], state.view, (view) => {
    state.view = view;
    drawRatings();
  });
  const scales = byId("scales");
  scales.hidden = model.times.length === 1 || !(model.times[0] > 0);
  choices(scales, [["log", "Log time"], ["linear", "Linear time"]], logTime() ? "log" : "linear", (scale) => {
    state.scale = scale;
    drawRatings();
    drawPairs();
  });
  drawNames();
  drawPlot();
  if (byId("figures").open) drawFigures();
}

function drawNames() {
  const root = byId("names");
  const before = document.activeElement?.dataset?.value;
  const had = root.contains(document.activeElement);
  const everyone = model.mean.map((_, code) => code);
  const set = (keep) => () => {
    state.hidden = new Set(everyone.filter((code) => !keep(code)).map((code) => model.algorithms[code]));
    drawRatings();
  };
  const chip = (code) => html("button", {
    type: "button", class: "chip", "data-value": `a${code}`, title: model.algorithms[code],
    "aria-pressed": String(!state.hidden.has(model.algorithms[code])),
    on: {
      click: () => { toggled(state.hidden, model.algorithms[code]); drawRatings(); },
      pointerenter: () => emphasise(code), pointerleave: () => emphasise(null),
      focus: () => emphasise(code), blur: () => emphasise(null),
    },
  }, swatch(code), html("bdi", {}, shortened(model.algorithms[code], 28)));
  const many = model.n > MANY_NAMES;
  const listed = everyone.filter((code) => !many || inSet(code) || (state.find && isSearched(code)));
  const ordered = byImportance(listed).sort((a, b) => inSet(b) - inSet(a)).slice(0, many ? 2 * MANY_NAMES : model.n);
  const shortcut = (text, value, keep) =>
    html("button", { type: "button", class: "quiet", "data-value": value, on: { click: set(keep) } }, text);
  root.replaceChildren(...ordered.map(chip),
    shortcut("All", "all", () => true),
    model.pareto.length < model.n && shortcut("Pareto set only", "set", inSet) || "",
    many && html("span", { class: "soft" }, `${ordered.length} of ${model.n} names are listed: the Pareto set`
      + (state.find ? ` and names with \u201c${state.find}\u201d` : "; search for others")) || "");
  if (had) focusAgain(root, before);
}

function emphasise(code) {
  for (const one of byId("plot").querySelectorAll("[data-code]")) {
    one.classList.toggle("faint", code !== null && Number(one.dataset.code) !== code);
  }
}

function drawPlot() {
  const root = byId("plot"), width = root.clientWidth;
  if (!width) return;
  if (model.times.length === 1) return drawSingle(root, width);
  const log = logTime(), codes = byImportance(visible()), values = shownCurves();
  const labelled = width >= 640;
  const height = Math.round(Math.min(Math.max(width * 0.42, 250), 440));
  const longest = Math.max(0, ...codes.map((code) => shortened(model.algorithms[code], 22).length));
  const right = labelled ? Math.min(40 + longest * 7, 180) : 14;
  const tops = state.view === "best" ? [1] : codes.map((code) => Math.max(...model.upper[code]));
  const highest = Math.min(1, Math.max(0.02, ...tops) * 1.03);
  const times = model.times, last = times.length - 1;
  const x = scaleOf(times[0], times[last], 52, width - right, log);
  const y = scaleOf(0, highest, height - 42, 10, false);
  frame = { x, y, width, height, codes, values, root };
  const band = (code) => {
    const up = times.map((time, t) => [x(time), y(model.upper[code][t])]);
    const down = times.map((time, t) => [x(time), y(model.lower[code][t])]).reverse();
    return svg("path", { class: "band tinted", "data-code": code, d: `${line([...up, ...down])}Z`, look: tint(code) });
  };
  const curve = (code) => svg("path", {
    class: inSet(code) ? "curve tinted" : "curve tinted other", "data-code": code, "stroke-dasharray": dash(code),
    d: line(times.map((time, t) => [x(time), y(values[code][t])])), look: tint(code),
  });
  // With many algorithms only members of the Pareto set have bands, which would overlap otherwise.
  const banded = state.view === "rating" ? codes.filter((code) => inSet(code) || codes.length <= 8) : [];
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described() },
    axes(x, y, width, height, right, log, highest),
    svg("rect", { id: "window", y: 10, height: Math.max(height - 52, 0) }),
    banded.map(band), codes.map(curve),
    labelled ? labels(codes, values, x, y, height, last) : [],
    svg("g", { id: "cross" }));
  root.replaceChildren(picture, html("div", { id: "tip", role: "status", hidden: true }));
  picture.addEventListener("pointermove", (event) => pointAt(nearest(event.offsetX), event.offsetY));
  picture.addEventListener("pointerleave", () => pointAt(null));
  placeBudget();
}

const described = () => {
  const what = state.view === "best" ? "Probability of the highest rating" : "Ratings with 95 % credible bands";
  return `${what} of ${plural(visible().length, "algorithm")} from ${range(model.times[0], model.times[model.times.length - 1])}. ${model.verdict.summary}`;
};

function axes(x, y, width, height, right, log, highest) {
  const first = model.times[0], last = model.times[model.times.length - 1];
  const about = Math.max(3, Math.floor((width - right - 52) / 90));
  const times = log ? logTicks(first, last, about) : evenTicks(first, last, about);
  const bottom = height - 42;
  const clock = model.clock === "time" ? "time" : model.clock;
  return [
    evenTicks(0, highest, 5).map((tick) => [
      svg("line", { class: "grid", x1: 52, x2: width - right, y1: y(tick), y2: y(tick) }),
      svg("text", { class: "tick end", x: 45, y: y(tick) + 4 }, plain(tick)),
    ]),
    times.map((tick) => [
      svg("line", { class: "mark", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 5 }),
      svg("text", { class: "tick middle", x: x(tick), y: bottom + 18 }, short(turned(tick))),
    ]),
    svg("line", { class: "axis", x1: 52, x2: width - right, y1: bottom, y2: bottom }),
    svg("text", { class: "title middle", x: (52 + width - right) / 2, y: height - 6 }, log ? `${clock}, log scale` : clock),
    svg("text", { class: "title middle", transform: `translate(12 ${(bottom + 10) / 2}) rotate(-90)` },
      state.view === "best" ? "P(best)" : "rating"),
  ].flat(2);
}

// Names at the ends of their lines, as many as fit; members of the Pareto set come first.
function labels(codes, values, x, y, height, last) {
  const fit = Math.floor((height - 50) / 15);
  const all = codes.slice().reverse();
  const some = (all.length > 16 ? all.filter(inSet) : all).slice(0, fit);
  const heights = spread(some.map((code) => y(values[code][last])), 15, 14, height - 46);
  const from = x(model.times[last]);
  return some.map((code, i) => svg("g", { "data-code": code },
    svg("path", { class: "leader tinted", d: line([[from + 3, y(values[code][last])], [from + 14, heights[i]]]), look: tint(code) }),
    svg("text", { class: inSet(code) ? "label" : "label other", x: from + 18, y: heights[i] + 4 },
      shortened(model.algorithms[code], 22), svg("title", {}, model.algorithms[code]))));
}

// One time only: an interval for each algorithm.
function drawSingle(root, width) {
  const values = shownCurves();
  const codes = visible().sort((a, b) => values[b][0] - values[a][0]);
  const left = Math.min(190, width * 0.36), row = 24, height = codes.length * row + 40;
  const tops = state.view === "best" ? [1] : codes.map((code) => model.upper[code][0]);
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
    svg("text", { class: "tick middle", x: x(tick), y: height - 20 }, plain(tick)),
  ]);
  root.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described() },
    ticks.flat(), rows,
    svg("text", { class: "title middle", x: (left + width - 20) / 2, y: height - 3 },
      `${state.view === "best" ? "P(best)" : "rating"} at ${moment(model.times[0])}`)));
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
  cross.replaceChildren(
    svg("line", { class: "cross", x1: at, x2: at, y1: 10, y2: frame.height - 42 }),
    ...ordered.map((code) => svg("circle", { class: "dot tinted", cx: at, cy: frame.y(frame.values[code][t]), r: 3.5, look: tint(code) })));
  const few = ordered.slice(0, 10);
  if (close !== null && !few.includes(close)) few.push(close);
  const rows = few.map((code) => html("tr", { class: code === close ? "close" : "" },
    html("td", {}, swatch(code), html("bdi", {}, shortened(model.algorithms[code], 24))),
    html("td", { class: "number" }, frame.values[code][t].toFixed(3)),
    state.view === "rating" && html("td", { class: "number soft" }, `${model.lower[code][t].toFixed(3)} to ${model.upper[code][t].toFixed(3)}`)));
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
  const codes = visible(), values = shownCurves();
  const head = html("tr", {}, html("th", { scope: "col", class: "number" }, model.clock === "time" ? "time" : model.clock),
    ...codes.map((code) => html("th", { scope: "col", class: "number" }, named(code))));
  const rows = model.times.map((time, t) => html("tr", {}, html("th", { scope: "row", class: "number" }, timed(time)),
    ...codes.map((code) => html("td", { class: "number" }, values[code][t].toFixed(3)))));
  const caption = state.view === "best" ? "Probability of the highest rating" : "Mean ratings";
  byId("figures").querySelector("div").replaceChildren(
    html("table", {}, html("caption", {}, caption), html("thead", {}, head), html("tbody", {}, ...rows)));
}
