// A race under way: a strip that ticks every second, the runs of the first round, past rounds.

const TICK_MILLISECONDS = 1000, NEW_REPORT_MILLISECONDS = 2000, SAME_STAGE_MILLISECONDS = 20000;

document.querySelector("header").prepend(html("div", { id: "live", hidden: true },
  html("span", { id: "pulse", "aria-hidden": "true" }), html("strong", { id: "state", role: "status" }), html("span", { id: "strip" })));
document.querySelector("header").after(html("figure", { id: "grid", hidden: true }));
byId("ribbon-title").after(html("label", { id: "past", hidden: true }, html("span"),
  html("input", { type: "range", id: "round", min: 0, on: { input: (event) => goTo(Number(event.target.value)) } })));

async function loaded(name) {
  try {
    const answer = await fetch(name, { cache: "no-store" });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

let lastLoad = -Infinity, waits = false;

async function tick() {
  const now = await loaded("status.json");
  drawStrip(now);
  if (now) {
    drawGrid(now);
    const wait = String(now.stage) === String(model.stage) ? SAME_STAGE_MILLISECONDS : NEW_REPORT_MILLISECONDS;
    if (performance.now() - lastLoad >= wait && !waits) loadReport();
  }
  setTimeout(tick, TICK_MILLISECONDS);
}

// A large report does not hold up the strip.
async function loadReport() {
  waits = true;
  const content = await loaded("data.json");
  lastLoad = performance.now();
  waits = false;
  if (!content || content.identity === model.identity) { model.stage = content?.stage ?? model.stage; return; }
  model = opened(content);
  keepingFocus(drawAll);
  drawPast();
}

function drawStrip(now) {
  const ended = now?.ended, dot = byId("pulse");
  byId("live").hidden = false;
  byId("live").className = now ? (ended ? "ended" : "") : "lost";
  const said = now ? (ended ? `Ended: ${ended}` : "Live") : `No answer from the server: this is as of ${model.made}.`;
  if (byId("state").textContent !== said) byId("state").textContent = said;
  if (!now) return;
  if (!ended && !matchMedia("(prefers-reduced-motion)").matches) dot.animate([{ transform: "scale(1.7)" }, { transform: "none" }], 500);
  const part = (...content) => html("span", {}, ...content), many = (count) => html("b", {}, count.toLocaleString("en-US"));
  const speed = now.per_minute === null ? null : Number(now.per_minute.toPrecision(2));
  byId("strip").replaceChildren(...[
    !ended && part("round ", many(now.stage[0] + 1)),
    part(many(now.runs), now.runs === 1 ? " run" : " runs"),
    !ended && speed !== null && part(many(speed), " a minute"),
    part(bar(now), many(now.settled), " of ", many(now.pairs), " pairs settled"),
    now.to_go && part(now.to_go),
    now.failed > 0 && html("span", { class: "failing" }, many(now.failed), ` failed: ${now.who_failed}`),
    now.quiet !== null && part(`last event ${now.quiet} ago`),
  ].filter(Boolean));
}

const bar = ({ settled, pairs }) => svg("svg", { class: "progress", width: 80, height: 8, viewBox: "0 0 80 8", "aria-hidden": "true" },
  svg("rect", { class: "empty", width: 80, height: 8 }), svg("rect", { class: "done", width: pairs ? (80 * settled) / pairs : 80, height: 8 }));

// Before the first round there are no ratings: show which runs are in.
function drawGrid({ algorithms, cells }) {
  const root = byId("grid"), width = byId("live").clientWidth, columns = cells?.[0]?.length ?? 0;
  root.hidden = !columns || Boolean(model.ratings);
  if (root.hidden) return;
  const left = Math.min(200, 0.36 * width), row = algorithms.length > 30 ? 13 : 20;
  const size = Math.min(26, (width - left) / columns), all = cells.join("");
  const made = all.replace(/[.o]/g, "").length, asked = all.replace(/\./g, "").length;
  const height = algorithms.length * row, mark = { x: 1, y: 1, width: size - 2, height: row - 2 };
  const cell = (letter, code, x, y) => svg("g", { transform: `translate(${x} ${y})` },
    svg("rect", { ...mark, class: { "#": "cell tinted", x: "ill", o: "wanted" }[letter] ?? "empty", look: letter === "#" && code >= 0 ? tint(code) : {} }),
    letter === "x" && svg("path", { class: "crossed", d: `M3 3L${size - 3} ${row - 3}M3 ${row - 3}L${size - 3} 3` }));
  const said = `First round: ${made.toLocaleString("en-US")} of ${plural(asked, "run")} are in`;
  root.replaceChildren(html("figcaption", {}, html("strong", {}, `${said}. `), html("span", { class: "soft" }, "A column is an instance; filled: made, outlined: under way, crossed: failed.")),
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
      algorithms.map((name, k) => [
        svg("text", { class: "label", x: 0, y: k * row + row / 2 + 4 }, shortened(name, Math.floor(left / 8)), svg("title", {}, name)),
        [...cells[k]].map((letter, i) => cell(letter, model.algorithms.indexOf(name), left + i * size, k * row)),
      ]).flat(2)));
}

// Past rounds: the ribbon as it was, if the server has seen the round.
let pastRound = null;   // its number; null: the last one

function goTo(k) {
  pastRound = k === model.rounds.length - 1 ? null : model.rounds[k].round;
  drawPast();
  drawRibbon();
}

function drawPast() {
  const { rounds } = model, at = rounds.findIndex(({ round }) => round === pastRound), k = at < 0 ? rounds.length - 1 : at;
  byId("past").hidden = rounds.length < 2;
  if (byId("past").hidden) return;
  const said = `after round ${rounds[k].round} of ${rounds.at(-1).round}, ${plural(rounds[k].runs, "run")}`;
  Object.assign(byId("round"), { max: rounds.length - 1, value: k });
  byId("round").setAttribute("aria-valuetext", said);
  byId("past").firstChild.textContent = said;
}

pastRibbon = () => {
  const past = model.rounds.find(({ round }) => round === pastRound);
  if (!past) return null;
  const { edges } = ribbonOf(model.ribbons), leads = [];
  past.leader.forEach((algorithm, t) => {
    if (leads.at(-1)?.algorithm === algorithm) leads.at(-1).last = t;
    else leads.push({ algorithm, first: t, last: t, start: turned(Number(turned(edges[t]).toPrecision(2))) });
  });
  const says = `after round ${past.round}: ${leads.map(({ algorithm, start }) => `${model.algorithms[algorithm]} from ${timed(start)}`).join(", ")}`;
  return { edges, leads, says, top: past.leader.map((code) => [code]), probability: past.probability.map((p) => [p]) };
};

drawPast();
tick();
