// One table of all algorithms: verdict, when each is the best, its value, and how its runs ended.

const FEW_ROWS = 8;
const STRIP = 150;

// By the first time at which an algorithm leads, then by the probability that it is worth running.
function rowOrder() {
  const { leads } = ribbonOf(model.ribbons);
  const first = (code) => { const at = leads.findIndex(({ algorithm }) => algorithm === code); return at < 0 ? Infinity : at; };
  const sure = (code) => model.rows[code].probability ?? -1;
  return model.algorithms.map((_, code) => code).sort((a, b) => (first(a) === first(b) ? 0 : first(a) - first(b)) || sure(b) - sure(a) || a - b);
}

const hasRuns = () => model.rows.some(({ runs }) => runs);
const isSearched = (code) => model.algorithms[code].toLowerCase().includes(state.find.toLowerCase());

function drawTable(ranking) {
  const values = new Map(ranking.map((one) => [one.code, one]));
  const most = Math.max(...ranking.map((one) => (one.shown ? one.shown.high : one.expected)));
  const rows = rowOrder().filter(isSearched), field = byId("find");
  field.hidden = model.algorithms.length <= 1.3 * FEW_ROWS;
  field.placeholder = `Find among ${model.algorithms.length.toLocaleString("en-US")} algorithms`;
  field.oninput = () => { state.find = field.value.trim(); drawTable(ranking); };
  const few = shortList(byId("all-rows"), "rows", rows.length, FEW_ROWS, "algorithms", () => drawTable(ranking));
  const head = [["algorithm", ""], ["", ""], ["P(best) over time", ""], ["when", ""], ["worth running", "number"], ["rating for this budget", "value"], ...(hasRuns() ? [["runs ended well", "number"]] : [])];
  const held = document.activeElement?.dataset?.value;
  const had = byId("table").contains(document.activeElement);
  byId("table").replaceChildren(
    html("caption", { class: "hidden" }, "All algorithms, in the order in which they lead"),
    html("thead", {}, html("tr", {}, ...head.map(([text, look]) => html("th", { scope: "col", class: look }, text)))),
    html("tbody", {}, ...rows.slice(0, few).map((code) => tableRow(code, values.get(code), most))));
  if (had) byId("table").querySelector(`[data-value="${held}"]`)?.focus();
}

function tableRow(code, value, most) {
  const row = model.rows[code];
  const lit = { pointerenter: () => emphasise(code), pointerleave: () => emphasise(null), focusin: () => emphasise(code), focusout: () => emphasise(null) };
  return html("tr", { class: code === choice ? "chosen" : "", "data-code": code, on: lit },
    html("th", { scope: "row" }, html("button", {
      type: "button", class: "algorithm", "data-value": `a${code}`, title: model.algorithms[code], "aria-pressed": String(isColoured(code)),
      on: { click: () => { toggled(state.shown, model.algorithms[code]); drawPlot(); drawAnswer(); } },
    }, html("span", { class: "dab tinted", look: shownTint(code) }), named(code))),
    html("td", { class: "said" }, html("span", { class: `badge ${row.tone}` }, unbroken(row.badge))),
    html("td", { class: canLead(code) ? "strip" : "strip never" }, strip(code)),
    html("td", { class: "when" }, unbroken(row.when), html("span", { class: "hidden" }, ` ${row.text}`)),
    html("td", { class: "number", "data-says": "worth running " }, row.probability === null ? "–" : unbroken(share(row.probability))),
    html("td", { class: "value", "data-says": "rating " }, value ? interval(value, most) : "–"),
    hasRuns() && html("td", { class: "number", "data-says": "runs ended well " }, ended(row)));
}

const MIN_DRAWN = 0.02;
const canLead = (code) => code < model.n && model.best[code].some((p) => p >= MIN_DRAWN);

function strip(code) {
  if (code >= model.n) return "";
  const x = scaleOf(model.times[0], lastTime(), 0, STRIP, logTime()), { edges } = ribbonOf(model.ribbons), single = model.times.length === 1;
  return svg("svg", { width: STRIP, height: 14, viewBox: `0 0 ${STRIP} 14`, "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("rect", { class: "empty", width: STRIP, height: 14 }),
    model.times.map((_, t) => {
      const p = model.best[code][t], from = single ? 0 : x(edges[t]), to = single ? STRIP : x(edges[t + 1]);
      return p >= MIN_DRAWN && svg("rect", { class: "cell tinted", x: from.toFixed(1), width: (to - from + 0.4).toFixed(1), height: 14, "fill-opacity": p.toFixed(2), look: tint(code) });
    }));
}

function interval(one, most) {
  const x = scaleOf(0, most || 1, 4, 86, false);
  const says = one.shown ? `${figure(one.expected)}, 95 % from ${figure(one.shown.low)} to ${figure(one.shown.high)}; P(best choice) ${share(one.best)}, regret ${figure(one.regret)}`
    : `${figure(one.expected)}: another algorithm is ahead at all times in every draw`;
  return html("span", { class: "measure", title: says }, svg("svg", { class: "interval", width: 90, height: 14, viewBox: "0 0 90 14", role: "img", "aria-label": says },
    svg("line", { class: "grid", x1: 4, x2: 86, y1: 7, y2: 7 }),
    one.shown && svg("line", { class: "whisker tinted", x1: x(one.shown.low), x2: x(one.shown.high), y1: 7, y2: 7, look: shownTint(one.code) }),
    svg("circle", { class: "dot tinted", cx: x(one.expected), cy: 7, r: 4, look: shownTint(one.code) })), html("span", {}, unbroken(share(one.expected))));
}

// "57 / 60", and a bar by status if some runs failed.
function ended({ runs, failed, counts }) {
  if (!runs) return "–";
  const said = Object.entries(counts).map(([status, n]) => `${n.toLocaleString("en-US")} ${status}`).join(", ");
  const text = `${(runs - failed).toLocaleString("en-US")} / ${runs.toLocaleString("en-US")}`;
  return html("span", { class: failed ? "failing" : "", title: said },
    failed ? svg("svg", { width: 40, height: 8, viewBox: "0 0 40 8", "aria-hidden": "true" },
      svg("rect", { class: "well", width: 40, height: 8 }), svg("rect", { class: "ill", x: 40 - (40 * failed) / runs, width: (40 * failed) / runs, height: 8 })) : "",
    ` ${text}`, failed ? html("span", { class: "hidden" }, `, ${said}`) : "");
}
