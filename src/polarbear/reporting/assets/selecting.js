// Selection as in polarbear.selection: rank algorithms by ratings, a preference and a risk.

// Distribute masses at points over a grid: each goes to its two neighbours, by linear interpolation.
function sharedOut(points, mass, grid) {
  const weights = new Float64Array(grid.length);
  if (grid.length === 1) return weights.fill(1);
  const total = mass.reduce((sum, one) => sum + one, 0);
  points.forEach((point, i) => {
    let right = grid.findIndex((time) => time >= point);
    right = Math.min(Math.max(right < 0 ? grid.length : right, 1), grid.length - 1);
    const share = (point - grid[right - 1]) / (grid[right] - grid[right - 1]);
    weights[right] += (mass[i] / total) * share;
    weights[right - 1] += (mass[i] / total) * (1 - share);
  });
  return weights;
}

const gaps = (edges) => edges.slice(1).map((edge, i) => edge - edges[i]);
const middles = (edges) => edges.slice(1).map((edge, i) => (edge + edges[i]) / 2);

// preferences.between(low, high, scale=...)
function between(low, high, times, log) {
  if (low === high || times.length === 1) return sharedOut([low], [1], times);
  const place = log ? Math.log : (time) => time;
  const edges = [low, ...times.filter((time) => time > low && time < high), high].map(place);
  const first = !log || times[0] > 0 ? times[0] : Math.min(low, times[1] / 2);
  const grid = [first, ...times.slice(1)].map(place);
  return sharedOut(middles(edges), gaps(edges), grid);
}

const PIECES = 64;

// preferences.distribution(triangular): the mass of each piece of time is at its midpoint.
function triangular(low, likely, high, times) {
  if (low === high || times.length === 1) return sharedOut([low], [1], times);
  const below = (time) => {
    if (time <= low) return 0;
    if (time >= high) return 1;
    if (time < likely) return (time - low) ** 2 / ((high - low) * (likely - low));
    return 1 - (high - time) ** 2 / ((high - low) * (high - likely));
  };
  const edges = [times[0]];
  for (let k = 1; k < times.length; k++) {
    for (let piece = 1; piece <= PIECES; piece++) {
      edges.push(times[k - 1] + (times[k] - times[k - 1]) * (piece / PIECES));
    }
  }
  return sharedOut(middles(edges), gaps(edges.map(below)), times);
}

// Of a deadline, later times are more likely: the density rises up to it.
function weightsOf(kind, { low, high, at }, times, log) {
  if (kind === "exactly") return sharedOut([at], [1], times);
  if (kind === "deadline") return triangular(low, high, high, times);
  return between(low, high, times, log);
}

// A quantile by linear interpolation, as numpy computes it.
function quantile(sorted, level) {
  const place = level * (sorted.length - 1);
  const left = Math.floor(place), right = Math.min(left + 1, sorted.length - 1);
  return sorted[left] + (sorted[right] - sorted[left]) * (place - left);
}

const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;

// The value of an algorithm in each draw.
function valuesOf(draws, weights, count) {
  const values = new Float64Array(count);
  weights.forEach((weight, t) => {
    if (weight) for (let d = 0; d < count; d++) values[d] += weight * draws[t][d];
  });
  return values;
}

// All algorithms, best first: code, score, expected, best, regret, low and high of the value.
// Algorithms behind another one in every draw have no draws and come last.
const QUANTILE = 0.05;

function selected(weights, risk, level = QUANTILE) {
  const codes = Array.from({ length: model.n }, (_, code) => code);
  const values = codes.map((code) => {
    return model.draws[code] && valuesOf(model.draws[code], weights, model.drawn);
  });
  const top = new Float64Array(model.drawn).fill(-Infinity);
  values.forEach((some) => some && some.forEach((one, d) => { if (one > top[d]) top[d] = one; }));
  const highest = mean(top);
  const ranking = codes.map((code) => {
    const some = values[code];
    const expected = weights.reduce((sum, weight, t) => sum + weight * model.mean[code][t], 0);
    if (!some) {
      const regret = Math.max(highest - expected, 0);
      return { code, expected, best: 0, regret, score: -Infinity, shown: null };
    }
    const sorted = some.slice().sort();
    const best = mean(some.map((one, d) => Number(one >= top[d] - 1e-9 * Math.abs(top[d]))));
    const cautious = quantile(sorted, level);
    return {
      code, expected, best,
      regret: Math.max(mean(top.map((one, d) => one - some[d])), 0),
      score: { expected, best, careful: cautious }[risk],
      shown: { low: quantile(sorted, 0.025), high: quantile(sorted, 0.975), cautious },
    };
  });
  return ranking.sort((a, b) => b.score - a.score || b.expected - a.expected);
}
