// The data of the page, and the settings of its reader.

let model = null;

const state = {
  shown: new Set(),    // names of algorithms that the reader wants in colour
  find: "",            // a part of the names that the reader searches for
  view: "rating",      // or "best", "wins"
  scale: null,         // "log" or "linear"; null until the reader chooses
  kind: "any",         // or "upto", "exactly", "range", "deadline"
  low: null, high: null, at: null,   // null: what suits the kind
  risk: "expected",    // or "best", "careful"
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
  if (content.classes) {
    const each = content.classes.each.map((one) => ({ ...one, mean: curves(unpacked(one.mean), result.n) }));
    result.classes = { ...content.classes, each };
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

const canBeLog = () => model.times.length > 1 && model.times[0] > 0;
const logTime = () => canBeLog() && (state.scale ? state.scale === "log" : model.is_log);
const ribbonOf = (ribbons) => ribbons[logTime() ? "log" : "linear"];
const lastTime = () => model.times[model.times.length - 1];

// The budget of the reader, limited to the times of the data.
function budget() {
  const first = model.times[0], last = lastTime();
  const inside = (value) => Math.min(Math.max(value, first), last);
  const middle = rounded(logTime() ? Math.sqrt(first * last) : (first + last) / 2);
  const at = inside(state.at ?? last);
  if (state.kind === "any") return { low: first, high: last, at };
  const low = state.kind === "range" ? inside(state.low ?? first) : first;
  return { low, high: Math.max(inside(state.high ?? (state.kind === "upto" ? middle : last)), low), at };
}
