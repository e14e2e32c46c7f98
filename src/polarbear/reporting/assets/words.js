// Format numbers and times as the Python package does.

// Six digits, with commas: 12,345.7
function plain(value) {
  if (value !== 0 && (Math.abs(value) >= 1e9 || Math.abs(value) < 1e-4)) {
    return String(Number(value.toPrecision(6)));
  }
  return Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 10 });
}

const unit = () => (model.clock === "time" ? "" : ` ${model.clock}`);

// A target of difficulty 1e8 is shown, and typed, as the precision 1e-8.
const turned = (time) => (model.digits === "reciprocal" ? Number((1 / time).toPrecision(12)) : time);

// A time with its significant digits, by the rule of _text.py.
function timed(time) {
  const whole = model.digits === "whole" ? Math.floor(time * (1 + 1e-9)) : Math.round(time);
  if (model.digits === "whole" || (model.digits === "seconds" && Math.abs(time) >= 100)) return whole.toLocaleString("en-US");
  return plain(model.digits === "seconds" ? Number(time.toPrecision(3)) : turned(time));
}

const moment = (time) => timed(time) + unit();
const range = (from, to) => (timed(from) === timed(to) ? moment(from) : `${timed(from)} to ${moment(to)}`);

// A time with four digits, for sentences.
const roughly = (time) => timed(Number(time.toPrecision(4)));

// For an axis: 20k, 3M
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return value.toExponential(0).replace("+", "");
  if (size >= 1e6) return `${plain(value / 1e6)}M`;
  return size >= 1e4 ? `${plain(value / 1e3)}k` : plain(value);
}

// Three digits, the precision of a pointer.
const rounded = (value) => Number(value.toPrecision(3));

function figure(value) {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  return Math.abs(value) < 0.001 ? String(Number(value.toPrecision(2))) : value.toFixed(3);
}

// A probability, never as exactly 0 or 1.
function chance(p) {
  if (p > 0.9995) return "> 0.999";
  return p < 0.0005 ? "< 0.001" : p.toFixed(3);
}

const saying = (p) => `P ${/^[<>]/.test(chance(p)) ? "" : "= "}${chance(p)}`;

// Lines do not break inside "P > 0.999" or before "%".
const unbroken = (text) => text.replace(/P ([=<>])/g, "P\u00a0$1").replace(/([=<>]) (?=\d)/g, "$1\u00a0").replace(/(\d) %/g, "$1\u00a0%");

const plural = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

const compare = new Intl.Collator("en", { numeric: true }).compare;
