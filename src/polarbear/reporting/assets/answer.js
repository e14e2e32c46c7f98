// The answer: what to run for the budget, how certain that is, and when to run something else.

const CLEAR = 0.6;
const MAX_NAMED = 3, MAX_EXCEPTIONS = 2;

let choice = null;   // the code of the algorithm that is recommended

const said = (code) => shortened(model.algorithms[code], 32);
const inBold = (look) => (code) => html("b", { class: `${look} tinted`, look: tint(code), title: model.algorithms[code] }, html("bdi", {}, said(code)));
const coloured = inBold("answer"), marked = inBold("marked");

function drawAnswer() {
  const now = budget(), weights = weightsOf(state.kind, now, model.times, logTime());
  const ranking = selected(weights, state.risk), first = ranking[0];
  choice = first.code;
  const classes = classChoices(weights);
  byId("choice").dataset.code = first.code;
  byId("choice").replaceChildren(...(classes ? ["It depends on the class."] : headline(ranking)));
  byId("class-chips").hidden = !classes;
  byId("class-chips").replaceChildren(...(classes ?? []).map(({ name, code }) => html("button", {
    type: "button", class: "chip", "data-value": name, on: { click: () => byId("instances").scrollIntoView() },
  }, html("bdi", {}, `${shortened(name, 30)}: `), marked(code))));
  byId("lead").replaceChildren(
    html("p", {}, ...(classes ? ["Over all instances together: ", ...headline(ranking, "run ", marked), " "] : []), ...certainty(ranking, now), ...exceptions(first.code, now)),
    ...hangsOnScale(ranking, now),
    ...(model.verdict.more_time ? [html("p", { class: "soft" }, unbroken(model.verdict.more_time))] : []));
  drawCautions(first.code);
  drawTable(ranking);
  if (state.view === "wins") drawPlot();
  byId("code").textContent = code(now);
}

const isClear = (ranking) => state.risk === "careful" || ranking[0].best >= CLEAR || ranking.length === 1;

// Those among which the choice is open, the most probable first.
function contenders(ranking) {
  const ordered = ranking.filter(({ best }) => best >= 0.05).sort((a, b) => b.best - a.best);
  return { some: ordered.slice(0, MAX_NAMED), more: Math.max(ordered.length - MAX_NAMED, 0) };
}

function headline(ranking, verb = "Run ", look = coloured) {
  if (isClear(ranking)) return [verb, look(ranking[0].code), "."];
  const { some, more } = contenders(ranking);
  const names = some.map(({ code }) => look(code));
  if (more) names.push(`${more} more`);
  return [...names.slice(0, -1).flatMap((name, k) => (k ? [", ", name] : [name])), " or ", names.at(-1), "."];
}

function assumed({ low, high, at }) {
  const scale = canBeLog() ? ` on a ${logTime() ? "log" : "linear"} scale` : "";
  const word = model.digits === "reciprocal" ? "target" : "budget";
  if (model.times.length === 1) return `at ${about(model.times[0])}`;
  if (state.kind === "exactly" || low === high) return `if you stop at ${about(state.kind === "exactly" ? at : low)}`;
  if (state.kind === "deadline") return `if you stop before ${about(high)}, most likely near that`;
  return `if every ${word} from ${roughly(low)} to ${about(high)} is as likely${scale}`;
}

const odds = (ranking) => contenders(ranking).some.map(({ code, best }) => `${said(code)} ${share(best)}`).join(", ");

function certainty(ranking, now) {
  const how = isClear(ranking) ? `Best choice with ${share(ranking[0].best)} ${assumed(now)}.` : `It is close ${assumed(now)}: ${odds(ranking)}.`;
  const low = state.risk === "careful" ? ` Chosen by the 5 % quantile of its rating, ${share(ranking[0].shown.cautious)}: the least that is likely.` : "";
  return [unbroken(how + low)];
}

// Where on the ribbon another algorithm leads: from its first stretch to its last one.
function exceptions(chosen, { low, high }) {
  if (state.kind === "exactly" || model.times.length === 1) return [];
  const { leads } = ribbonOf(model.ribbons), x = scaleOf(model.times[0], lastTime(), 0, 1, logTime());
  const others = leads.map((lead, k) => ({ ...lead, k })).filter(({ algorithm, start, stop }) => algorithm !== chosen && start < high && stop > low);
  const wide = (from, to) => x(to.stop) - x(from.start);
  const spans = [...new Set(others.map((lead) => lead.algorithm))].map((algorithm) => {
    const all = others.filter((lead) => lead.algorithm === algorithm), isAround = all[0].k === 0 && all.at(-1).k === leads.length - 1;
    const own = isAround ? [all.reduce((a, b) => (wide(b, b) > wide(a, a) ? b : a))] : all;
    return { algorithm, own, from: own[0], to: own.at(-1), least: Math.min(...own.map((lead) => lead.least)), most: Math.max(...own.map((lead) => lead.most)) };
  });
  const few = spans.slice().sort((a, b) => wide(b.from, b.to) - wide(a.from, a.to)).slice(0, MAX_EXCEPTIONS);
  return spans.filter((span) => few.includes(span)).flatMap(({ algorithm, own, from, to, least, most }) => {
    const where = from.k === 0 ? `Below ${timed(to.stop)} ` : to.k === leads.length - 1 ? `Above ${timed(from.start)} ` : `From ${timed(from.start)} to ${timed(to.stop)} `;
    const sure = unbroken(`(${shareRange(least, most)})`), mostly = own.length > 1 ? "mostly " : "";
    return most >= CERTAIN ? [" ", where, `${mostly}run `, marked(algorithm), ` ${sure}.`] : [" ", where, marked(algorithm), ` ${mostly}leads, not yet certain ${sure}.`];
  });
}

// Say it if the choice hangs on how budgets are weighted.
function hangsOnScale(ranking, now) {
  if (!canBeLog() || !["any", "upto", "range"].includes(state.kind) || now.low === now.high) return [];
  const other = selected(between(now.low, now.high, model.times, !logTime()), state.risk);
  if (other[0].code === ranking[0].code && isClear(other) === isClear(ranking)) return [];
  const scale = `if all budgets are equally likely on a ${logTime() ? "linear" : "log"} scale`;
  const then = isClear(other) ? `run ${said(other[0].code)} (${share(other[0].best)})` : `it is close: ${odds(other)}`;
  return [html("p", { class: "soft", id: "hangs" }, unbroken(`This hangs on the scale: ${scale}, ${then}.`))];
}

// The choice in each class, by its mean rating, if classes differ and so do the choices.
function classChoices(weights) {
  const { classes } = model;
  if (!classes || !(classes.differ > CERTAIN)) return null;
  const chosen = classes.each.map(({ name, mean }) => {
    const values = mean.map((curve) => weights.reduce((sum, weight, t) => sum + weight * curve[t], 0));
    return { name, code: values.indexOf(Math.max(...values)) };
  });
  return new Set(chosen.map(({ code }) => code)).size > 1 ? chosen : null;
}

function drawCautions(chosen) {
  const texts = [...model.verdict.cautions, ...(model.rows[chosen].warning ? [model.rows[chosen].warning] : [])];
  byId("cautions").hidden = !texts.length;
  byId("cautions").replaceChildren(...texts.map((text) => html("li", {}, html("bdi", {}, unbroken(text)))));
}

function code({ low, high, at }) {
  const risk = { expected: "", best: ', risk="best"', careful: `, risk=${QUANTILE}` }[state.risk];
  const scale = canBeLog() ? `scale="${logTime() ? "log" : "linear"}"` : "";
  const whole = low === model.times[0] && high === lastTime();
  const range = [...(whole ? [] : [low, high]), ...(scale ? [scale] : [])].join(", ");
  const preference = {
    exactly: `, pb.preferences.at(${at})`,
    deadline: `, pb.preferences.distribution(scipy.stats.triang(1, ${low}, ${Number((high - low).toPrecision(10))}))`,
  }[state.kind] ?? (range ? `, pb.preferences.between(${range})` : "");
  return `pb.select(posterior${model.times.length === 1 ? "" : preference}${risk})`;
}
