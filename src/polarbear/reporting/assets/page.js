// Draw the page; draw it again when its width or its data change.

function drawAll() {
  drawHead();
  byId("ratings").hidden = !model.ratings;
  if (model.ratings) drawRatings();
  drawDiagnostics();
  drawOrigin();
  drawWidths(false);
}

function drawWidths(again = true) {
  if (model.ratings && again) drawRatings();
  drawInstances();
  drawLosses();
  drawPairs();
  drawRace();
}

setUpBudget();
model = opened(JSON.parse(byId("data").textContent));
drawAll();

byId("ribbon").addEventListener("keydown", ribbonKeys);
byId("ribbon").addEventListener("blur", () => showCell(null));
byId("plot").addEventListener("keydown", plotKeys);
byId("plot").addEventListener("blur", () => pointAt(null));
byId("figures").addEventListener("toggle", drawFigures);

let width = document.documentElement.clientWidth;
new ResizeObserver(() => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  drawWidths();
}).observe(document.documentElement);

// Keep the keyboard focus when the page is drawn again.
function keepingFocus(draw) {
  const held = document.activeElement, home = held?.closest("[id]")?.id, value = held?.dataset.value;
  draw();
  if (held && !held.isConnected && home && value !== undefined) {
    byId(home).querySelector(`[data-value="${CSS.escape(value)}"]`)?.focus();
  }
}
