// Draw everything; draw again when there is more room, or news.

function drawAll() {
  drawVerdict();
  byId("ratings").hidden = !model.ratings;
  if (model.ratings) {
    drawRatings();
    drawChoice();
    placeBudget();
  }
  drawPairs();
  drawRace();
  drawDiagnostics();
  drawOrigin();
}

function drawWidths() {
  if (model.ratings) drawPlot();
  drawRace();
}

setUpBudget();
model = opened(JSON.parse(byId("data").textContent));
drawAll();

byId("plot").addEventListener("keydown", plotKeys);
byId("plot").addEventListener("blur", () => pointAt(null));
byId("figures").addEventListener("toggle", drawFigures);

let width = document.documentElement.clientWidth;
new ResizeObserver(() => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  drawWidths();
}).observe(document.documentElement);

// A live page asks for news, and says when it heard of them last.
const EVERY = 2000;

async function listen() {
  const says = byId("live");
  says.hidden = false;
  try {
    const answer = await fetch("data.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const content = await answer.json();
    if (content.identity !== model.identity) {
      model = opened(content);
      drawAll();
    }
    says.textContent = `Live: as of ${content.made}.`;
    says.classList.remove("lost");
  } catch {
    says.textContent = `No answer from the server: this is as of ${model.made}.`;
    says.classList.add("lost");
  }
  setTimeout(listen, EVERY);
}

if (document.querySelector("main").dataset.mode === "live") listen();
