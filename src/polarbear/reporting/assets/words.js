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

// A time with two or three digits, for sentences; the exact one is shown at the pointer.
const roughly = (time) => timed(turned(rounded(turned(time))));
const about = (time) => roughly(time) + unit();

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

// A probability in percent, never as 0 or 100 %.
function share(p) {
  if (p > 0.99) return "> 99 %";
  return p < 0.01 ? "< 1 %" : `${Math.round(100 * p)} %`;
}

const shareRange = (low, high) => (share(low) === share(high) ? share(low) : `${share(low).replace(" %", "")} to ${share(high)}`);

// Lines do not break inside "> 99 %".
const unbroken = (text) => text.replace(/([=<>]) (?=\d)/g, "$1\u00a0").replace(/(\d) %/g, "$1\u00a0%");

const plural = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

const compare = new Intl.Collator("en", { numeric: true }).compare;
