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

// A live page loads new data, and shows the time of the last ones.
const POLL_MILLISECONDS = 2000;

function heading(content) {
  const last = content.last_event ? ` The race last wrote an event at ${content.last_event}.` : "";
  return content.ended ? `The race has ended (${content.ended}): as of ${content.made}.${last}` : `Live: as of ${content.made}.${last}`;
}

async function listen() {
  const says = byId("live");
  const content = await news();
  says.hidden = false;
  says.classList.toggle("lost", !content);
  says.textContent = content ? heading(content) : `No answer from the server: this is as of ${model.made}.`;
  setTimeout(listen, POLL_MILLISECONDS);
  if (content && content.identity !== model.identity) {
    model = opened(content);
    keepingFocus(drawAll);
  }
}

async function news() {
  try {
    const answer = await fetch("data.json", { cache: "no-store" });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

if (document.querySelector("main").dataset.mode === "live") listen();
