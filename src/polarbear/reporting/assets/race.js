// The race: dominance over rounds, eliminations, and cost by algorithm.

function drawRace() {
  const { race } = model;
  byId("race").hidden = !race;
  if (!race) return;
  drawFacts(byId("race-facts"), race.facts);
  const width = byId("race-pictures").clientWidth;
  if (!width) return;
  byId("race-pictures").replaceChildren(
    ...(race.dominance && race.rounds.share.length ? [drawDominance(race, width)] : []),
    ...(race.rounds.share.length ? [drawSettled(race, width), drawOut(race),] : []),
    ...(race.allocation.length ? [drawAllocation(race)] : []));
}

const roundScale = (race, width, right) => scaleOf(1, race.rounds.share.length, 52, width - right, false);

function roundAxis(x, race, width, right, bottom, title) {
  const rounds = race.rounds.share.length;
  const ticks = evenTicks(1, rounds, Math.max(4, Math.floor(width / 110))).filter(Number.isInteger);
  return [
    ticks.map((tick) => [
      svg("line", { class: "mark", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 5 }),
      svg("text", { class: "tick middle", x: x(tick), y: bottom + 18 }, plain(tick)),
    ]),
    svg("line", { class: "axis", x1: 52, x2: width - right, y1: bottom, y2: bottom }),
    svg("text", { class: "title middle", x: (52 + width - right) / 2, y: bottom + 35 }, title),
  ].flat(2);
}

// Probabilities above 0.9 take half of the height, because eliminations happen there.
function splitScale(top, bottom) {
  const middle = (top + bottom) / 2;
  const low = scaleOf(0, 0.9, bottom, middle + 4, false), high = scaleOf(0.9, 1, middle - 4, top, false);
  return (p) => (p < 0.9 ? low(p) : high(p));
}

function drawDominance(race, width) {
  const labelled = width >= 640, right = labelled ? 170 : 14, height = 340, bottom = height - 44;
  const values = unpacked(race.dominance), n = race.dominance.shape[1], rounds = race.rounds.share.length;
  const x = roundScale(race, width, right), y = splitScale(12, bottom);
  const of = (code) => Array.from({ length: rounds }, (_, r) => [r + 1, values[r * n + code]]).filter(([, p]) => Number.isFinite(p));
  const codes = model.algorithms.map((_, code) => code).filter((code) => of(code).length).sort((a, b) => inSet(a) - inSet(b) || a - b);
  const ends = codes.map((code) => { const [r, p] = of(code).at(-1); return [x(r), y(p)]; });
  const ticks = [0, 0.3, 0.6, 0.9, 0.95, 1].map((tick) => [
    svg("line", { class: "grid", x1: 52, x2: width - right, y1: y(tick), y2: y(tick) }),
    svg("text", { class: "tick end", x: 45, y: y(tick) + 4 }, `${plain(100 * tick)} %`),
  ]);
  const curves = codes.map((code) => svg("path", {
    class: inSet(code) ? "curve tinted" : "curve tinted other", "data-code": code, "stroke-dasharray": dash(code),
    d: line(of(code).map(([r, p]) => [x(r), y(p)])), look: tint(code),
  }, svg("title", {}, model.algorithms[code])));
  const marks = [
    ...race.out.map(({ round, algorithm, probability }) => mark("out", x(round), y(probability ?? 1), algorithm)),
    ...race.settled.map(({ round, algorithm }) => [round, algorithm, values[(round - 1) * n + algorithm]])
      .filter(([, , p]) => Number.isFinite(p)).map(([round, algorithm, p]) => mark("settled", x(round), y(p), algorithm)),
  ];
  // Names of racing algorithms are at the end, those of eliminated ones beside their crosses.
  const lasts = (code) => of(code).at(-1)[0] === rounds;
  const order = codes.slice().reverse().filter((code) => lasts(code) && (inSet(code) || codes.length <= 16)).slice(0, 18);
  const places = order.map((code) => codes.indexOf(code));
  const heights = spread(places.map((k) => ends[k][1]), 15, 14, bottom - 4);
  const labels = labelled ? order.map((code, i) => svg("g", {},
    svg("path", { class: "leader tinted", d: line([ends[places[i]], [width - right + 14, heights[i]]]), look: tint(code) }),
    svg("text", { class: inSet(code) ? "label" : "label other", x: width - right + 18, y: heights[i] + 4 }, shortened(model.algorithms[code], 20)))) : [];
  const gone = labelled && codes.length <= 16 ? codes.filter((code) => !lasts(code)) : [];
  labels.push(...gone.map((code) => svg("text", { class: "label other", x: ends[codes.indexOf(code)][0] + 9, y: ends[codes.indexOf(code)][1] + 4 },
    shortened(model.algorithms[code], 20))));
  return html("figure", {},
    html("figcaption", {}, html("strong", {}, "Probability of being replaceable. "),
      "The highest probability that another algorithm replaces it. ",
      html("span", { class: "soft" }, "× eliminated, ◆ certainly worth running. The axis is stretched above 90 %.")),
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Dominance over ${plural(rounds, "round")}` },
      ticks.flat(), svg("line", { class: "limit", x1: 52, x2: width - right, y1: y(model.certainty), y2: y(model.certainty) }),
      curves, marks, labels, roundAxis(x, race, width, right, bottom, "round")));
}

function mark(kind, x, y, code) {
  const shape = kind === "out" ? "M-5 -5L5 5M-5 5L5 -5" : "M0 -6L5 0L0 6L-5 0Z";
  return svg("path", { class: `${kind} tinted`, d: shape, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, look: tint(code) },
    svg("title", {}, model.algorithms[code]));
}

function drawSettled(race, width) {
  const height = 170, bottom = height - 44, right = width >= 640 ? 170 : 14;
  const x = roundScale(race, width, right), y = scaleOf(0, 1, bottom, 10, false);
  const points = race.rounds.share.map((share, r) => [x(r + 1), y(share)]);
  const now = race.rounds.share.at(-1), question = html("strong", {}, "Decided pairs. ");
  // A sentence replaces a figure of a constant.
  if (race.rounds.share.every((share) => share === now)) {
    const after = `after ${plural(points.length, "round")}`;
    const said = now === 0 ? `No pair is decided ${after}.` : `${(100 * now).toFixed(0)} % of pairs are decided ${after}, as after the first.`;
    return html("figure", { id: "settled" }, html("figcaption", {}, question, said));
  }
  return html("figure", {},
    html("figcaption", {}, question, "The share of pairs whose relation is certain."),
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${(100 * now).toFixed(0)} % of pairs are decided after ${plural(points.length, "round")}` },
      [0, 0.5, 1].map((tick) => [
        svg("line", { class: "grid", x1: 52, x2: width - right, y1: y(tick), y2: y(tick) }),
        svg("text", { class: "tick end", x: 45, y: y(tick) + 4 }, `${100 * tick} %`),
      ]).flat(),
      svg("path", { class: "curve plain", d: line(points) }),
      points.map(([px, py], r) => svg("circle", { class: "dot plain", cx: px, cy: py, r: points.length > 60 ? 1.5 : 3 },
        svg("title", {}, `round ${r + 1}: ${(100 * race.rounds.share[r]).toFixed(0)} % after ${plural(race.rounds.runs[r], "run")}`))),
      roundAxis(x, race, width, right, bottom, "round")));
}

const listedInstances = (names) => names.length ? `${plural(names.length, "instance")}: ${shortened(names.join(", "), 40)}` : "";

const scrolling = (label) => ({ class: "scroll", tabindex: 0, role: "region", "aria-label": label });

function drawOut(race) {
  if (!race.out.length) return html("p", {}, "No algorithm has been eliminated.");
  const hangs = race.out.some(({ decisive }) => decisive.length);
  const rows = race.out.map(({ round, algorithm, by, probability, decisive }) => html("tr", {},
    html("td", { class: "number" }, round),
    html("th", { scope: "row" }, labelled(algorithm)),
    html("td", {}, labelled(by)),
    html("td", { class: "number" }, probability === null ? "" : share(probability)),
    ...(hangs ? [html("td", { title: decisive.join(", ") }, listedInstances(decisive))] : [])));
  return html("figure", {}, html("figcaption", {}, html("strong", {}, "Eliminated algorithms."), " ",
      html("span", { class: "soft" }, hangs ? "Depends on: the fewest instances without which it would not be dominated." : "")),
    html("div", scrolling("Eliminated algorithms"), html("table", { id: "eliminated", class: "narrow" }, html("thead", {}, html("tr", {},
      ...[["round", "number"], ["eliminated", ""], ["by", ""], ["P", "number"], ...(hangs ? [["depends on", ""]] : [])].map(([text, look]) => html("th", { scope: "col", class: look }, text)))),
    html("tbody", {}, ...rows))));
}

function drawAllocation(race) {
  const most = Math.max(...race.allocation.map(({ time }) => time), 1e-300);
  const ordered = race.allocation.slice().sort((a, b) => b.time - a.time || a.algorithm - b.algorithm);
  const anyFailed = ordered.some(({ failed }) => failed);
  const rows = ordered.map(({ algorithm, runs, instances, time, failed }) => html("tr", {},
    html("th", { scope: "row" }, labelled(algorithm)),
    html("td", { class: "wide" }, svg("svg", { class: "share", width: 200, height: 12, viewBox: "0 0 200 12", "aria-hidden": "true" },
      svg("rect", { class: "tinted", width: Math.max((200 * time) / most, 1), height: 12, look: tint(algorithm) }))),
    html("td", { class: "number" }, short(rounded(time))),
    html("td", { class: "number" }, runs.toLocaleString("en-US")),
    html("td", { class: "number" }, instances.toLocaleString("en-US")),
    ...(anyFailed ? [html("td", { class: "number bad" }, failed ? failed.toLocaleString("en-US") : "")] : [])));
  const head = [["algorithm", ""], ["", ""], [model.clock === "time" ? "time" : model.clock, "number"], ["runs", "number"], ["instances", "number"],
    ...(anyFailed ? [["failed", "number"]] : [])];
  return html("figure", {}, html("figcaption", {}, html("strong", {}, "Cost by algorithm.")),
    html("div", scrolling("Cost by algorithm"), html("table", { class: "narrow" }, html("thead", {}, html("tr", {}, ...head.map(([text, look]) => html("th", { scope: "col", class: look }, text)))),
      html("tbody", {}, ...rows))));
}
