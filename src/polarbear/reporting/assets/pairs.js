// Pairs as a matrix: in each cell, over time, the colour of the one that is certainly ahead.

const MAX_MATRIX = 24;

function drawPairs() {
  const { pairs, certainty } = model;
  byId("pairs").hidden = !pairs || !pairs.first.length;
  if (byId("pairs").hidden) return;
  const order = rowOrder().filter((code) => code < model.n);
  const codes = order.length <= MAX_MATRIX ? order : order.filter(inSet).slice(0, MAX_MATRIX);
  const left = model.n - codes.length;
  byId("pairs-lead").textContent = unbroken("Each cell runs over time and has the colour of the algorithm that is ahead with at least "
    + `${plain(100 * certainty)} %; grey is not certain. ${model.race ? "This is by the posterior; the race may not have proven it. " : ""}`
    + (left ? `${plural(left, "algorithm")} ${left === 1 ? "is" : "are"} not shown. ` : "") + "The arrow keys move between cells.");
  const row = new Map(pairs.first.map((first, k) => [`${first} ${pairs.second[k]}`, k]));
  const wideCell = Math.max(18, Math.min(84, Math.floor((byId("pairs").clientWidth - 150) / codes.length) - 4));
  const cell = (a, b) => {
    if (a === b) return html("td", { class: "self" });
    const k = row.get(`${a} ${b}`) ?? row.get(`${b} ${a}`);
    if (k === undefined) return html("td", {});
    return html("td", {}, html("button", { type: "button", class: "pair", tabindex: -1, "aria-label": pairSays(pairs, k), title: pairSays(pairs, k),
      on: { focus: () => { byId("pair-says").textContent = pairSays(pairs, k); } } }, pairStrip(pairs, k, wideCell)));
  };
  const name = (code) => html("bdi", {}, shortened(model.algorithms[code], wideCell < 50 ? 3 : 9));
  byId("matrix").replaceChildren(
    html("caption", { class: "hidden" }, "Pairs of algorithms"),
    html("thead", {}, html("tr", {}, html("td", {}), ...codes.map((code) => html("th", { scope: "col", title: model.algorithms[code] }, name(code))))),
    html("tbody", {}, ...codes.map((a) => html("tr", {}, html("th", { scope: "row" }, labelled(a)), ...codes.map((b) => cell(a, b))))));
  byId("matrix").querySelector(".pair")?.setAttribute("tabindex", 0);
  byId("matrix").onkeydown = pairKeys;
  byId("pair-says").textContent = "";
}

function pairKeys(event) {
  const cells = [...byId("matrix").querySelectorAll("tbody tr")].map((one) => [...one.querySelectorAll("td")]);
  const td = event.target.closest("td"), r = cells.findIndex((some) => some.includes(td));
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
  if (r < 0 || (!down && !right)) return;
  event.preventDefault();
  let [i, j] = [r + down, cells[r].indexOf(td) + right];
  while (cells[i]?.[j] && !cells[i][j].firstChild) [i, j] = [i + down, j + right];   // over the diagonal
  const next = cells[i]?.[j]?.querySelector(".pair");
  if (!next) return;
  for (const one of byId("matrix").querySelectorAll(".pair")) one.tabIndex = one === next ? 0 : -1;
  next.focus();
}

// Split time into stretches in which one of the two, or neither, is certainly ahead.
function stretches(pairs, k) {
  const T = model.times.length, side = (p) => (p >= model.certainty ? "first" : 1 - p >= model.certainty ? "second" : "open");
  const periods = [];
  pairs.ahead.subarray(k * T, (k + 1) * T).forEach((p, t) => {
    const last = periods[periods.length - 1];
    if (last && last.side === side(p)) last.to = t;
    else periods.push({ side: side(p), from: t, to: t });
  });
  return periods;
}

function pairStrip(pairs, k, width) {
  const { edges } = ribbonOf(model.ribbons), single = model.times.length === 1;
  const x = scaleOf(model.times[0], lastTime(), 0, width, logTime());
  return svg("svg", { width, height: 18, viewBox: `0 0 ${width} 18`, "aria-hidden": "true" }, svg("rect", { class: "empty", width, height: 18 }),
    stretches(pairs, k).filter(({ side }) => side !== "open").map(({ side, from, to }) => {
      const code = pairs[side][k], left = single ? 0 : x(edges[from]), right = single ? width : x(edges[to + 1]);
      return svg("rect", { class: "cell tinted", x: left.toFixed(1), width: Math.max(right - left, 1).toFixed(1), height: 18, look: tint(code) });
    }));
}

function pairSays(pairs, k) {
  const [a, b] = [pairs.first[k], pairs.second[k]].map((code) => model.algorithms[code]);
  const ahead = stretches(pairs, k).filter(({ side }) => side !== "open").map(({ side, from, to }) =>
    `${side === "first" ? a : b} is ahead ${model.times.length === 1 ? "" : `from ${roughly(model.times[from])} to ${about(model.times[to])}`}`);
  const crossed = (pairs.crossings[k] ?? []).map(({ until, since, probability }) => `they cross between ${roughly(until)} and ${about(since)} (${share(probability)})`);
  const always = `Ahead at all times: ${a} ${share(pairs.everywhere[k])}, ${b} ${share(pairs.reversed[k])}`;
  return `${[...(ahead.length ? ahead : [`neither ${a} nor ${b} is certainly ahead`]), ...crossed].join("; ")}. ${always}.`;
}
