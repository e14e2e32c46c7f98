// Text: the verdict, diagnostics and provenance.

const FEW_SENTENCES = 12;

function drawFacts(root, facts) {
  root.replaceChildren(...Object.entries(facts).flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]));
}

function drawVerdict() {
  const { verdict } = model;
  byId("title").textContent = model.title;
  document.title = model.title;
  byId("about").textContent = model.about;
  byId("cautions").hidden = !verdict.cautions.length;
  byId("cautions").replaceChildren(...verdict.cautions.map((text) => html("li", {}, html("bdi", {}, unbroken(text)))));
  byId("summary").textContent = unbroken(verdict.summary);
  byId("close").textContent = unbroken(verdict.close.join(" "));
  drawFields();
  const said = verdict.sentences.filter(({ algorithm }) => !state.find || isSearched(algorithm));
  const few = shortList(byId("all-sentences"), "verdict", said.length, FEW_SENTENCES, "algorithms", drawVerdict);
  byId("sentences").replaceChildren(...said.slice(0, few).map(({ algorithm, status, text }) => html("li", {},
    swatch(algorithm), html("span", { class: `status ${status.replace(" ", "-")}` }, status), html("bdi", {}, unbroken(text)))));
}

function drawInstances() {
  const lines = model.by_instance ?? [];
  byId("instances").hidden = !lines.length;
  byId("instance-lines").replaceChildren(...lines.map((line) => html("li", {}, html("bdi", {}, line))));
}

function drawLosses() {
  const { losses } = model;
  byId("losses").hidden = !losses;
  if (!losses) return;
  byId("losses-what").textContent = losses.title;
  const look = (k) => (k < 2 ? {} : { class: "number" });
  byId("losses-table").replaceChildren(html("table", { class: "narrow" },
    html("thead", {}, html("tr", {}, ...losses.head.map((text, k) => html("th", { scope: "col", ...look(k) }, text)))),
    html("tbody", {}, ...losses.rows.map((row) => html("tr", {}, ...row.map((cell, k) => html("td", look(k), html("bdi", {}, cell))))))));
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
  drawFacts(byId("measured"), diagnostics.measured);
  byId("notes").replaceChildren(...diagnostics.notes.map((note) => html("li", {}, note)));
}

function drawOrigin() {
  drawFacts(byId("origin"), { ...model.provenance, ...(model.made ? { made: model.made } : {}) });
}
