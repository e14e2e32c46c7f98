// The choice: in words, as a table of all algorithms, and as a call in Python.

const FEW_CHOICES = 8;
const NEVER = "another algorithm is ahead at all times in every draw";

function drawChoice() {
  const now = budget();
  const ranking = selected(weightsOf(state.kind, now, model.times), state.risk, state.level);
  const first = ranking[0];
  byId("choice").replaceChildren("Run ", html("strong", {}, named(first.code)));
  byId("choice").dataset.code = first.code;
  byId("reasons").replaceChildren(...reasons(first, ranking[1], now));
  drawChoices(ranking);
  byId("code").textContent = code(now);
}

function stopping({ low, high, likely }) {
  if (model.times.length === 1) return `at ${moment(model.times[0])}`;
  if (state.kind === "fixed" || low === high) return `at ${moment(state.kind === "fixed" ? likely : low)}`;
  if (state.kind === "triangular") return `from ${range(low, high)}, most likely at ${timed(likely)}`;
  return `somewhere from ${range(low, high)}`;
}

function reasons(first, second, now) {
  const { low, high, cautious } = first.shown;
  const said = [`If you stop ${stopping(now)}, its rating is ${figure(first.expected)} on average`,
    ` (${figure(low)} to ${figure(high)} with a probability of 95 %)`];
  if (state.risk === "careful") said.push(` and above ${figure(cautious)} in ${plain(100 * (1 - state.level))} of 100 cases`);
  said.push(`. It is the best choice with ${saying(first.best)}. `);
  said.push(first.regret < 5e-6 ? "More certain ratings would not change the choice."
    : `Its expected regret, because ratings are uncertain, is ${figure(first.regret)}: ${worth(first)}.`);
  if (second && second.shown) said.push(" Next comes ", named(second.code), ".");
  return said.map((part) => (typeof part === "string" ? unbroken(part) : part));
}

// The regret in words: the most that more experiments could gain.
function worth({ regret, expected }) {
  const share = regret / expected;
  if (share < 0.005) return "more experiments would gain little";
  return `${share < 0.05 ? "a small" : "a considerable"} part (${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %) of the rating`;
}

function drawChoices(ranking) {
  const careful = state.risk === "careful";
  const columns = ["algorithm", "value, 95 %", "expected", ...(careful ? [`${plain(100 * state.level)} % quantile`] : []), "P(best)", "regret"];
  const few = shortList(byId("all-choices"), "choices", ranking.length, FEW_CHOICES, "algorithms", drawChoice);
  const most = Math.max(...ranking.map((one) => (one.shown ? one.shown.high : one.expected)));
  const rows = ranking.slice(0, few).map((one, k) => html("tr", { class: k ? "" : "chosen", "data-code": one.code },
    html("th", { scope: "row" }, labelled(one.code)),
    html("td", {}, interval(one, most)),
    html("td", { class: "number" }, figure(one.expected)),
    careful && html("td", { class: "number", title: one.shown ? "" : NEVER }, one.shown ? figure(one.shown.cautious) : "–"),
    html("td", { class: "number" }, chance(one.best)),
    html("td", { class: "number" }, figure(one.regret))));
  byId("choices").replaceChildren(
    html("caption", { class: "hidden" }, "All algorithms under this preference, best first"),
    html("thead", {}, html("tr", {}, ...columns.map((text, k) => html("th", { scope: "col", class: k > 1 ? "number" : "" }, text)))),
    html("tbody", {}, ...rows));
}

function interval(one, most) {
  const x = scaleOf(0, most || 1, 4, 136, false);
  const says = one.shown ? `${figure(one.shown.low)} to ${figure(one.shown.high)}` : NEVER;
  return svg("svg", { class: "interval", width: 140, height: 16, viewBox: "0 0 140 16", role: "img", "aria-label": says },
    svg("title", {}, says),
    svg("line", { class: "grid", x1: 4, x2: 136, y1: 8, y2: 8 }),
    one.shown && svg("line", { class: "whisker tinted", x1: x(one.shown.low), x2: x(one.shown.high), y1: 8, y2: 8, look: tint(one.code) }),
    svg("circle", { class: "dot tinted", cx: x(one.expected), cy: 8, r: 4.5, look: tint(one.code) }));
}

function code({ low, high, likely }) {
  const risk = { expected: "", best: ', risk="best"', careful: `, risk=${state.level}` }[state.risk];
  const first = model.times[0], last = model.times[model.times.length - 1];
  const whole = low === first && high === last;
  const ends = whole ? "" : `${low}, ${high}`;
  const preference = {
    uniform: whole ? "" : `, pb.preferences.between(${ends})`,
    loguniform: `, pb.preferences.between(${ends}${whole ? "" : ", "}scale="log")`,
    triangular: `, pb.preferences.distribution(scipy.stats.triang(${rounded6((likely - low) / (high - low))}, ${low}, ${rounded6(high - low)}))`,
    fixed: `, pb.preferences.at(${likely})`,
  };
  const kind = model.times.length === 1 ? "uniform" : state.kind === "triangular" && low === high ? "fixed" : state.kind;
  return `pb.select(posterior${preference[kind]}${risk})`;
}

const rounded6 = (value) => Number(value.toPrecision(10));
