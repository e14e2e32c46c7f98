// The data of the page, and the settings of its reader.

let model = null;

const state = {
  hidden: new Set(),   // names of algorithms that are not drawn
  find: "",            // a part of the names that the reader searches for
  view: "rating",      // or "best"
  scale: null,         // "log" or "linear"; null until the reader chooses
  kind: "uniform",     // or "loguniform", "fixed", "triangular"
  low: null, high: null, likely: null,   // null: the ends of the grid, and its middle
  risk: "expected",    // or "best", "careful"
  level: 0.05,
  pairs: null,         // the algorithms whose pairs are shown; null until the reader chooses
  sort: { column: "relation", up: true },
  open: new Set(),     // lists that are shown in full
};

const byId = (id) => document.getElementById(id);

function unpacked({ kind, base64 }) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  if (kind === "u1") return bytes;
  return kind === "u2" ? new Uint16Array(bytes.buffer) : new Float32Array(bytes.buffer);
}

// Unpack shares between 0 and 1 from two bytes each.
function shares(packed) {
  const result = new Float64Array(unpacked(packed));
  for (let i = 0; i < result.length; i++) result[i] /= 65535;
  return result;
}

// Split an array of shape (times, algorithms) into a curve for each algorithm.
function curves(values, n) {
  const result = Array.from({ length: n }, () => new Float64Array(values.length / n));
  values.forEach((value, i) => { result[i % n][Math.floor(i / n)] = value; });
  return result;
}

// Unpack the draws of ratings: for each algorithm that may be chosen, for each time, an array.
function drawsOf(packed, n) {
  const [offset, step, levels] = [packed.offset, packed.step, packed.levels].map(unpacked);
  const [, times, count] = packed.levels.shape;
  const result = Array(n).fill(null);
  packed.algorithms.forEach((code, row) => {
    result[code] = Array.from({ length: times }, (_, t) => {
      const at = row * times + t, start = at * count, draws = new Float64Array(count);
      for (let d = 0; d < count; d++) draws[d] = offset[at] + step[at] * levels[start + d];
      return draws;
    });
  });
  return result;
}

function opened(content) {
  const result = { ...content, times: [], n: 0 };
  if (content.ratings) {
    const { times, mean, lower, upper, best } = content.ratings;
    const n = mean.shape[1];
    Object.assign(result, {
      times, n,
      mean: curves(unpacked(mean), n),
      lower: curves(unpacked(lower), n),
      upper: curves(unpacked(upper), n),
      best: curves(shares(best), n),
      draws: drawsOf(content.draws, n),
      drawn: content.draws.levels.shape[2],
    });
  }
  if (content.pairs) {
    const { everywhere, reversed, ahead } = content.pairs;
    result.pairs = {
      ...content.pairs,
      everywhere: shares(everywhere),
      reversed: shares(reversed),
      ahead: shares(ahead),
    };
  }
  return result;
}

const inSet = (code) => model.pareto.includes(code);

function logTime() {
  if (!(model.times[0] > 0)) return false;
  if (state.scale) return state.scale === "log";
  return model.times[model.times.length - 1] >= 20 * model.times[0];
}

// The budget of the reader, limited to the times of the data.
function budget() {
  const first = model.times[0], last = model.times[model.times.length - 1];
  const inside = (value) => Math.min(Math.max(value, first), last);
  const low = inside(state.low ?? first);
  const high = Math.max(inside(state.high ?? last), low);
  const middle = logTime() && low > 0 ? Math.sqrt(low * high) : (low + high) / 2;
  const peak = state.likely ?? rounded(middle);
  const likely = state.kind === "fixed" ? inside(peak) : Math.min(Math.max(peak, low), high);
  return { low, high, likely };
}
