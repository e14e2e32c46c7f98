// The budget of the reader: chips, numbers, handles below the ribbon; and the risk.

const KINDS = { any: "any budget", upto: "up to", exactly: "exactly", range: "from … to …", deadline: "I have a deadline" };
const RISKS = { expected: "best on average", best: "most probably the best", careful: "surest rating (5 % quantile)" };
const ENDS = { low: "from", high: "to", at: "at" };

const endsOf = (kind) => ({ any: [], exactly: ["at"], range: ["low", "high"] })[kind] ?? ["high"];

function setUpBudget() {
  const chip = ([kind, text]) => html("button", { type: "button", class: "chip", "data-value": kind, on: { click: () => choose(kind) } }, text);
  const number = (end) => html("label", { "data-end": end }, html("span", {}, ENDS[end]),
    html("input", { type: "number", step: "any", id: `${end}-input`, on: { change: (event) => typed(end, event.target) } }));
  const select = (id, label, options, act) => html("select", { id, "aria-label": label, on: { change: (event) => act(event.target.value) } },
    ...Object.entries(options).map(([value, text]) => html("option", { value }, text)));
  byId("controls").replaceChildren(
    html("div", { id: "kinds", role: "group", "aria-label": "I will stop" }, ...Object.entries(KINDS).map(chip)),
    html("div", { id: "numbers" }, ...Object.keys(ENDS).map(number), html("span", { class: "soft", id: "unit" })),
    html("div", { id: "criteria" },
      select("risk", "What I want", RISKS, (risk) => { state.risk = risk; budgetChanged(); }),
      select("scale", "Time scale, and how budgets are weighted", { log: "log scale", linear: "linear scale" }, (scale) => { state.scale = scale; drawRatings(); })));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("track").replaceChildren(html("span", { class: "soft", id: "track-name", title: "Which budgets are likely" }, "budget"), html("div", { class: "rail" }), html("div", { class: "span", on: { pointerdown: dragSpan } }),
    ...Object.keys(ENDS).map((end) => html("div", {
      class: "handle", id: `${end}-handle`, role: "slider", tabindex: 0, "data-end": end,
      on: { pointerdown: (event) => dragEnd(event, end), keydown: (event) => pressed(event, end) },
    })));
}

function choose(kind) {
  state.kind = kind;
  budgetChanged();
}

function typed(end, input) {
  const value = turned(Number(input.value)), now = budget();
  if (input.value === "" || !Number.isFinite(value)) return placeBudget();
  // A reader may type either end of a range first: the other end moves along.
  if (end === "low" && value > now.high) state.high = value;
  if (end === "high" && value < now.low) state.low = value;
  moveEnd(end, value);
}

// Move an end within the grid and up to the other end.
function moveEnd(end, value) {
  const now = budget(), both = state.kind === "range";
  const floor = both && end === "high" ? now.low : model.times[0];
  const ceiling = both && end === "low" ? now.high : lastTime();
  state[end] = Math.min(Math.max(value, floor), ceiling);
  budgetChanged();
}

function budgetChanged() {
  placeBudget();
  drawAnswer();
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

const trackScale = () => timeScale(byId("track").clientWidth, margins(byId("track").clientWidth));

// The time at a pixel: exact at the ends of the grid, three digits in between.
function timeAt(pixel) {
  const x = trackScale(), [from, to] = x.ends;
  if (pixel <= from) return model.times[0];
  return pixel >= to ? lastTime() : rounded(x.back(pixel));
}

const dragEnd = (event, end) => follow(event, (pixel) => moveEnd(end, timeAt(pixel)));

function dragSpan(event) {
  if (state.kind !== "range") return;
  const x = trackScale(), now = budget(), from = x(now.low), to = x(now.high);
  const start = event.clientX - byId("track").getBoundingClientRect().left;
  follow(event, (pixel) => {
    const by = Math.min(Math.max(pixel - start, x.ends[0] - from), x.ends[1] - to);
    Object.assign(state, { low: timeAt(from + by), high: timeAt(to + by) });
    budgetChanged();
  });
}

function pressed(event, end) {
  const x = trackScale(), [from, to] = x.ends, now = x(budget()[end]);
  const by = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1 }[event.key];
  const to_end = { Home: from, End: to }[event.key];
  if (by === undefined && to_end === undefined) return;
  event.preventDefault();
  moveEnd(end, timeAt(to_end ?? now + by * (to - from)));
}

// Place chips, numbers, handles and the density of the preference at the budget.
function placeBudget() {
  const now = budget(), shown = endsOf(state.kind), single = model.times.length === 1;
  byId("track").hidden = single;
  byId("kinds").hidden = single;
  byId("scale").hidden = !canBeLog();
  byId("scale").value = logTime() ? "log" : "linear";
  byId("risk").value = state.risk;
  byId("numbers").hidden = single || !shown.length;
  byId("unit").textContent = shown.length ? unit().trim() : "";
  for (const chip of byId("kinds").children) {
    const kind = chip.dataset.value, label = { upto: [KINDS.upto, now.high], exactly: [KINDS.exactly, now.at] }[kind];
    chip.setAttribute("aria-pressed", String(kind === state.kind));
    chip.textContent = label && kind === state.kind ? `${label[0]} ${roughly(label[1])}` : `${KINDS[kind]}${label ? " …" : ""}`;
  }
  for (const end of Object.keys(ENDS)) {
    byId(`${end}-input`).parentElement.hidden = single || !shown.includes(end);
    if (document.activeElement !== byId(`${end}-input`)) byId(`${end}-input`).value = turned(now[end]);
    placeHandle(byId(`${end}-handle`), end, now, shown);
  }
  const x = trackScale(), [from, to] = state.kind === "exactly" ? [now.at, now.at] : [now.low, now.high];
  const between = byId("track").querySelector(".span"), rail = byId("track").querySelector(".rail");
  between.className = `span ${state.kind}`;
  Object.assign(between.style, { left: `${x(from) - (state.kind === "exactly" ? 1.5 : 0)}px`, width: `${Math.max(x(to) - x(from), 3)}px` });
  Object.assign(rail.style, { left: `${x.ends[0]}px`, width: `${x.ends[1] - x.ends[0]}px` });
}

function placeHandle(handle, end, now, shown) {
  handle.hidden = !shown.includes(end);
  const both = state.kind === "range";
  const says = { "aria-label": end === "at" ? "time at which I stop" : `budget, ${ENDS[end]}`,
    "aria-valuemin": both && end === "high" ? now.low : model.times[0], "aria-valuemax": both && end === "low" ? now.high : lastTime(),
    "aria-valuenow": now[end], "aria-valuetext": moment(now[end]) };
  for (const [name, value] of Object.entries(says)) handle.setAttribute(name, value);
  handle.style.left = `${trackScale()(now[end])}px`;
}
