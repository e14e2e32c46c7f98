// Text: facts, classes, losses, diagnostics and provenance.

function drawFacts(root, facts) {
  root.replaceChildren(...Object.entries(facts).flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]));
}

function drawHead() {
  document.title = model.title;
  const fact = ([text, tone], k, all) => html("span", {}, tone
    ? html("button", { type: "button", class: `quiet ${tone}`, on: { click: () => byId("table").scrollIntoView() } }, text) : text, k < all.length - 1 ? " · " : "");
  byId("facts").replaceChildren(html("strong", { id: "title" }, model.title), ...model.facts.flatMap((one, k, all) => [" ", fact(one, k, all)]));
  if (model.ratings) return;
  byId("choice").textContent = model.verdict.summary;
  byId("lead").replaceChildren();
  byId("cautions").hidden = true;
}

function drawInstances() {
  const lines = model.by_instance ?? [], { classes } = model, root = byId("class-ribbons"), width = byId("instances").parentElement.clientWidth - 28;
  byId("instances").hidden = !lines.length && !classes;
  byId("instances-title").textContent = classes ? "By class of instances" : "On instances of each kind";
  byId("instance-lines").replaceChildren(...lines.map((line) => html("li", {}, html("bdi", {}, unbroken(line)))));
  root.replaceChildren(...(classes?.each ?? []).map(({ name, instances, ribbons }, k, all) => html("figure", { class: "class" },
    html("figcaption", {}, html("strong", {}, html("bdi", {}, name)), ` (${plural(instances, "instance")})`),
    ribbonPicture(ribbonOf(ribbons), Math.min(width, byId("ribbon").clientWidth || width), margins(width), 26, k === all.length - 1 || ribbonOf(ribbons).leads.length > 1))));
}

// Losses over time: the median, and the mean of the worst tenth dashed.
function drawLosses() {
  const { losses } = model;
  byId("losses").hidden = !losses;
  if (!losses) return;
  byId("losses-what").textContent = `${losses.title}; lines are medians over instances, dashes the mean of the worst tenth`;
  const look = (k) => (k < 2 ? {} : { class: "number" });
  byId("losses-table").replaceChildren(html("table", { class: "narrow" },
    html("thead", {}, html("tr", {}, ...losses.head.map((text, k) => html("th", { scope: "col", ...look(k) }, text)))),
    html("tbody", {}, ...losses.rows.map((row) => html("tr", {}, ...row.map((cell, k) => html("td", look(k), html("bdi", {}, cell))))))));
  const root = byId("losses-plot"), width = byId("losses").clientWidth, known = [...losses.median, ...losses.worst].flat().filter((one) => one !== null);
  root.hidden = !width || losses.times.length < 2 || !known.length;
  if (root.hidden) return;
  const edges = margins(width), height = 220, most = Math.max(...known), least = Math.min(...known.filter((one) => one > 0));
  const log = most > 100 * least, x = scaleOf(losses.times[0], losses.times.at(-1), edges.left, width - edges.right, logTime() && losses.times[0] > 0);
  const y = log ? scaleOf(least, most, height - 26, 8, true) : scaleOf(Math.min(0, ...known), most, height - 26, 8, false);
  const curve = (values, code, kind) => svg("path", { class: `curve tinted ${kind}`, look: tint(code),
    d: line(values.flatMap((value, t) => (value === null || (log && value <= 0) ? [] : [[x(losses.times[t]), y(value)]]))) }, svg("title", {}, model.algorithms[code]));
  const ticks = log ? logTicks(least, most, 4) : evenTicks(0, most, 4);
  const shown = losses.algorithms.filter((code) => code >= 0);
  const ends = spread(shown.map((code) => y(Math.max(losses.median[losses.algorithms.indexOf(code)].at(-1) ?? most, log ? least : -Infinity))), 15, 10, height - 20);
  root.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": losses.title },
    ticks.map((tick) => [svg("line", { class: "grid", x1: edges.left, x2: width - edges.right, y1: y(tick), y2: y(tick) }), svg("text", { class: "tick end", x: edges.left - 6, y: y(tick) + 4 }, short(tick))]).flat(),
    losses.times.filter((_, t) => t % Math.ceil(losses.times.length / 6) === 0).map((time) => svg("text", { class: "tick middle", x: x(time), y: height - 6 }, roughly(time))),
    losses.algorithms.flatMap((code, k) => (code < 0 ? [] : [curve(losses.median[k], code, ""), curve(losses.worst[k], code, "worst")])),
    width >= 640 ? shown.map((code, k) => svg("text", { class: "label", x: width - edges.right + 8, y: ends[k] + 4 }, shortened(model.algorithms[code], 16))) : []));
}

function drawDiagnostics() {
  const { diagnostics } = model;
  byId("diagnostics").hidden = !diagnostics;
  const problems = diagnostics ? diagnostics.problems : [];
  byId("warning").hidden = !problems.length;
  byId("warning").textContent = problems.length ? `Do not trust these results: ${problems.join("; ")}.` : "";
  if (!diagnostics) return;
  byId("trusted").textContent = diagnostics.trusted
    ? "All numerical checks of the posterior passed."
    : `The posterior cannot be trusted: ${problems.join("; ")}.`;
  if (problems.length) byId("diagnostics").open = true;
  drawFacts(byId("measured"), diagnostics.measured);
  byId("notes").replaceChildren(...diagnostics.notes.map((note) => html("li", {}, note)));
}

function drawOrigin() {
  drawFacts(byId("origin"), { ...model.provenance, ...(model.made ? { made: model.made } : {}) });
}
