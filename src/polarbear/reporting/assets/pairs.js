// The table of pairs: probabilities to be ahead at all times, over time, and crossings.

const FEW_PAIRS = 20;
const RELATIONS = ["dominates", "is dominated by", "crosses", "equals", "undecided"];

const COLUMNS = [
  ["first", "first"], ["relation", ""], ["second", "second"],
  ["everywhere", "P(first ahead at all times)"], ["reversed", "P(second ahead at all times)"],
  ["when", "ahead over time"],
];

function drawPairs() {
  const { pairs, certainty } = model;
  byId("pairs").hidden = !pairs || !pairs.first.length;
  if (byId("pairs").hidden) return;
  byId("pairs-lead").replaceChildren(
    `Statements about pairs have a probability of at least ${plain(100 * certainty)} %. `,
    model.race ? "They are those of the posterior: the race, which tests after every round, may not have proven them. " : "",
    model.times.length > 1 ? `Bars are over time, from ${range(model.times[0], model.times[model.times.length - 1])}: ` : "",
    key("first", "the first is ahead"), " ", key("second", "the second is ahead"), " ", key("open", "not certain"));
  drawFilter(pairs);
  const rows = sortedPairs(pairs);
  const few = shortList(byId("all-pairs"), "pairs", rows.length, FEW_PAIRS, "pairs", drawPairs);
  const header = COLUMNS.map(([column, text]) => html("th", {
    scope: "col", class: ["everywhere", "reversed"].includes(column) ? "number" : "",
    "aria-sort": state.sort.column === column ? (state.sort.up ? "ascending" : "descending") : "none",
  }, column === "when" ? text : html("button", { type: "button", class: "sort", "data-value": column, on: { click: () => sortBy(column) } }, text || "relation")));
  byId("pair-table").replaceChildren(
    html("caption", { class: "hidden" }, "Pairs of algorithms"),
    html("thead", {}, html("tr", {}, ...header)),
    html("tbody", {}, ...rows.slice(0, few).map((row) => pairRow(pairs, row))));
}

const key = (side, text) => html("span", { class: "key" }, html("span", { class: `block ${side}`, "aria-hidden": "true" }), ` ${text}`);

function sortBy(column) {
  const numeric = ["everywhere", "reversed"].includes(column);
  state.sort = { column, up: state.sort.column === column ? !state.sort.up : !numeric };
  drawPairs();
  byId("pair-table").querySelector(`[data-value=${column}]`).focus();
}

function sortedPairs(pairs) {
  const { column, up } = state.sort;
  const value = {
    first: (row) => model.algorithms[pairs.first[row]],
    second: (row) => model.algorithms[pairs.second[row]],
    relation: (row) => RELATIONS.indexOf(pairs.relation[row]),
    everywhere: (row) => pairs.everywhere[row],
    reversed: (row) => pairs.reversed[row],
  }[column];
  const order = (a, b) => (typeof value(a) === "string" ? compare(value(a), value(b)) : value(a) - value(b));
  return pairs.first.map((_, row) => row).filter((row) => wantedPair(pairs, row))
    .sort((a, b) => (up ? order(a, b) : order(b, a)) || a - b);
}

// With many algorithms, pairs of the Pareto set are shown by default.
const whose = () => state.pairs ?? (model.n > 8 && model.pareto.length > 1 ? "set" : "all");

function wantedPair(pairs, row) {
  const chosen = whose(), two = [pairs.first[row], pairs.second[row]];
  if (chosen === "all") return true;
  if (chosen === "set") return two.every(inSet);
  return two.some((code) => model.algorithms[code] === chosen.slice(2));
}

function drawFilter(pairs) {
  const root = byId("pairs-filter");
  root.hidden = model.n < 4;
  if (root.contains(document.activeElement)) return;
  const option = (value, text) => html("option", { value, selected: whose() === value }, text);
  root.replaceChildren(html("label", {}, "Show pairs of ", html("select", { on: { change: (event) => { state.pairs = event.target.value; drawPairs(); } } },
    option("all", "all algorithms"), option("set", "the Pareto set"),
    ...model.mean.map((_, code) => option(`a:${model.algorithms[code]}`, shortened(model.algorithms[code], 40))))),
    pairs.left_out ? html("span", { class: "soft" }, ` ${plural(pairs.left_out, "pair")} of dominated algorithms are not listed.`) : "");
}

function pairRow(pairs, row) {
  // A dominated algorithm may stay undecided against all but the one that dominates it.
  const open = [pairs.first[row], pairs.second[row]].every(inSet) ? "undecided against" : "undecided (one is dominated) against";
  const relation = { equals: "is equivalent to", undecided: open }[pairs.relation[row]] ?? pairs.relation[row];
  return html("tr", {},
    html("th", { scope: "row" }, labelled(pairs.first[row])),
    html("td", { class: "relation" }, relation),
    html("th", { scope: "row" }, labelled(pairs.second[row])),
    html("td", { class: "number", "data-says": "P(first at all times) " }, chance(pairs.everywhere[row])),
    html("td", { class: "number", "data-says": "P(second) " }, chance(pairs.reversed[row])),
    html("td", { class: "when" }, ...whenAhead(pairs, row)));
}

// Split time into stretches in which one of the two, or neither, is certainly ahead.
function stretches(ahead) {
  const side = (p) => (p >= model.certainty ? "first" : 1 - p >= model.certainty ? "second" : "open");
  const periods = [];
  ahead.forEach((p, t) => {
    const last = periods[periods.length - 1];
    if (last && last.side === side(p)) last.to = t;
    else periods.push({ side: side(p), from: t, to: t });
  });
  return periods;
}

function whenAhead(pairs, row) {
  const times = model.times, last = times.length - 1;
  const periods = stretches(pairs.ahead.subarray(row * times.length, (row + 1) * times.length));
  const x = scaleOf(times[0], times[last], 0, 160, logTime());
  // A stretch reaches half way to its neighbours.
  const edge = (t, to) => (t < 0 || t > last ? x.ends[Number(to)] : (x(times[t]) + x(times[t + (to ? 1 : -1)])) / 2);
  const bars = periods.map(({ side, from, to }) => {
    const left = from === 0 ? 0 : edge(from, false), right = to === last ? 160 : edge(to, true);
    return svg("rect", { class: side, x: left, y: 0, width: Math.max(right - left, 1), height: 12 });
  });
  const says = periods.filter(({ side }) => side !== "open").map(({ side, from, to }) => {
    const code = pairs[side][row];
    return `${model.algorithms[code]} from ${range(times[from], times[to])}`;
  });
  const crossed = (pairs.crossings[row] ?? []).map(({ until, since, probability }) =>
    `between ${roughly(until)} and ${roughly(since)} (${saying(probability)})`);
  return [
    svg("svg", { class: "stretches", width: 160, height: 12, viewBox: "0 0 160 12", role: "img", "aria-label": says.join("; ") || "neither is certainly ahead" },
      svg("title", {}, says.join("; ") || "neither is certainly ahead"), ...bars),
    html("span", { class: "soft" }, crossed.length ? unbroken(`they cross ${crossed.join(", and ")}`) : ""),
  ];
}
