// The budget of the reader: handles below the plot, and the same as numbers.

const KINDS = [
  ["uniform", "at any time in a range", "All times of the range are equally likely."],
  ["loguniform", "at any time in a range, on a log scale", "From 10 to 100 counts as much as from 100 to 1000."],
  ["triangular", "around a most likely time", "Times further away are less likely; times outside of the range are impossible."],
  ["fixed", "at a known time", ""],
];

const RISKS = [
  ["expected", "the best on average", "the highest expected value"],
  ["best", "the most probable best", "the highest probability that no other algorithm is better"],
  ["careful", "a choice with a certain rating", "the highest low quantile of the value"],
];

const ENDS = { low: "from", likely: "most likely", high: "to" };

const endsOf = (kind) => ({ fixed: ["likely"], triangular: ["low", "likely", "high"] })[kind] ?? ["low", "high"];

function setUpBudget() {
  const option = (group, [value, text]) => html("label", {},
    html("input", { type: "radio", name: group, value, checked: state[group] === value, on: { change: () => { state[group] = value; budgetChanged(); } } }), text);
  const number = (end) => html("label", { "data-end": end }, html("span", {}, ENDS[end]),
    html("input", { type: "number", step: "any", id: `${end}-input`, on: { change: (event) => typed(end, event.target) } }));
  byId("controls").replaceChildren(
    html("fieldset", { id: "when" }, html("legend", {}, "I will stop"), ...KINDS.map((kind) => option("kind", kind)),
      html("p", { class: "hint", id: "kind-hint" }),
      html("div", { class: "numbers" }, ...Object.keys(ENDS).map(number), html("span", { class: "soft", id: "unit" }))),
    html("fieldset", {}, html("legend", {}, "I want"), ...RISKS.map((risk) => option("risk", risk)),
      html("div", { class: "numbers" }, html("label", { id: "level" }, html("span", {}, "quantile"),
        html("input", { type: "number", id: "level-input", min: 0.005, max: 0.5, step: 0.005, on: { change: (event) => leveled(event.target) } }))),
      html("p", { class: "hint", id: "risk-hint" })));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("track").replaceChildren(html("div", { class: "rail" }), html("div", { class: "span", on: { pointerdown: dragSpan } }),
    ...Object.keys(ENDS).map((end) => html("div", {
      class: "handle", id: `${end}-handle`, role: "slider", tabindex: 0, "data-end": end,
      on: { pointerdown: (event) => dragEnd(event, end), keydown: (event) => pressed(event, end) },
    })));
}

function typed(end, input) {
  const value = turned(Number(input.value)), now = budget();
  if (input.value !== "" && Number.isFinite(value)) {
    // A reader may type either end of a range first: the other end moves along.
    if (end === "low" && value > now.high) state.high = value;
    if (end === "high" && value < now.low) state.low = value;
    moveEnd(end, value);
  } else placeBudget();
}

function leveled(input) {
  const value = Number(input.value);
  if (value > 0 && value < 1) state.level = value;
  budgetChanged();
}

// Move an end within the grid and up to the other ends.
function moveEnd(end, value) {
  const now = budget(), first = model.times[0], last = model.times[model.times.length - 1];
  const shown = endsOf(state.kind);
  const floor = end !== "low" && shown.includes("low") ? now.low : first;
  const ceiling = end !== "high" && shown.includes("high") ? now.high : last;
  state[end] = Math.min(Math.max(value, floor), ceiling);
  budgetChanged();
}

function budgetChanged() {
  placeBudget();
  drawChoice();
}

const follow = (event, move) => {
  const target = event.currentTarget;
  event.preventDefault();
  target.focus();
  target.setPointerCapture(event.pointerId);
  const left = byId("track").getBoundingClientRect().left;
  const go = (moved) => move(moved.clientX - left);
  const stop = () => { target.removeEventListener("pointermove", go); target.removeEventListener("pointerup", stop); };
  target.addEventListener("pointermove", go);
  target.addEventListener("pointerup", stop);
  target.addEventListener("pointercancel", stop, { once: true });
};

// The time at a pixel: exact at the ends of the grid, three digits in between.
function timeAt(pixel) {
  const [from, to] = frame.x.ends;
  if (pixel <= from) return model.times[0];
  return pixel >= to ? model.times[model.times.length - 1] : rounded(frame.x.back(pixel));
}

const dragEnd = (event, end) => follow(event, (pixel) => moveEnd(end, timeAt(pixel)));

function dragSpan(event) {
  const now = budget(), from = frame.x(now.low), to = frame.x(now.high), peak = frame.x(now.likely);
  const start = event.clientX - byId("track").getBoundingClientRect().left;
  follow(event, (pixel) => {
    const [first, last] = frame.x.ends;
    const by = Math.min(Math.max(pixel - start, first - from), last - to);
    Object.assign(state, { low: timeAt(from + by), high: timeAt(to + by) });
    state.likely = state.kind === "triangular" ? timeAt(peak + by) : null;
    budgetChanged();
  });
}

function pressed(event, end) {
  const [from, to] = frame.x.ends, now = frame.x(budget()[end]);
  const by = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1 }[event.key];
  const to_end = { Home: from, End: to }[event.key];
  if (by === undefined && to_end === undefined) return;
  event.preventDefault();
  moveEnd(end, timeAt(to_end ?? now + by * (to - from)));
}

// Place handles, numbers and the window of the plot at the budget.
function placeBudget() {
  const now = budget(), shown = endsOf(state.kind), single = model.times.length === 1;
  byId("track").hidden = single;
  byId("when").hidden = single;
  const hint = KINDS.find(([kind]) => kind === state.kind)[2];
  byId("kind-hint").textContent = hint;
  byId("kind-hint").hidden = !hint;
  byId("unit").textContent = unit().trim();
  const cautious = state.risk === "careful";
  byId("level").hidden = !cautious;
  byId("level-input").value = state.level;
  byId("risk-hint").textContent = cautious
    ? `The choice has the highest ${plain(100 * state.level)} % quantile of the value over posterior draws. This accounts for uncertain ratings, but not for bad runs: rankings do not show how bad a run is.`
    : `The choice has ${RISKS.find(([risk]) => risk === state.risk)[2]}.`;
  const logs = byId("controls").querySelector("[value=loguniform]");
  logs.disabled = !(now.low > 0);
  for (const end of Object.keys(ENDS)) {
    byId(`${end}-input`).parentElement.hidden = !shown.includes(end);
    if (document.activeElement !== byId(`${end}-input`)) byId(`${end}-input`).value = turned(now[end]);
    placeHandle(byId(`${end}-handle`), end, now, shown);
  }
  if (!frame) return;
  const [from, to] = state.kind === "fixed" ? [now.likely, now.likely] : [now.low, now.high];
  const left = frame.x(from), wide = Math.max(frame.x(to) - left, 1.5);
  const area = byId("window"), between = byId("track").querySelector(".span"), rail = byId("track").querySelector(".rail");
  // A window over the whole grid is not marked.
  area.classList.toggle("all", left <= frame.x.ends[0] && left + wide >= frame.x.ends[1] - 0.5);
  area.setAttribute("x", left);
  area.setAttribute("width", wide);
  Object.assign(between.style, { left: `${left}px`, width: `${wide}px` });
  Object.assign(rail.style, { left: `${frame.x.ends[0]}px`, width: `${frame.x.ends[1] - frame.x.ends[0]}px` });
}

function placeHandle(handle, end, now, shown) {
  handle.hidden = !shown.includes(end);
  const [floor, ceiling] = [end === "high" || (end === "likely" && shown.includes("low")) ? now.low : model.times[0],
    end === "low" || (end === "likely" && shown.includes("high")) ? now.high : model.times[model.times.length - 1]];
  const says = { "aria-label": end === "likely" && state.kind === "fixed" ? "time at which I stop" : `budget, ${ENDS[end]}`,
    "aria-valuemin": floor, "aria-valuemax": ceiling, "aria-valuenow": now[end], "aria-valuetext": moment(now[end]) };
  for (const [name, value] of Object.entries(says)) handle.setAttribute(name, value);
  if (frame) handle.style.left = `${frame.x(now[end])}px`;
}
