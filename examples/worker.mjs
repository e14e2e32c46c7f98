// A worker for `polarbear serve --workers`, written from docs/reference/workers.md alone.
// node worker.mjs https://races.example.org TOKEN solvers.mjs
// solvers.mjs exports `solvers`: {name: {digest, run(job)}}; run returns {time, value, until, status}.
import { pathToFileURL } from "node:url";

const [, , address, token, file] = process.argv;
const url = new URL(address);
if (url.protocol !== "https:" && !["127.0.0.1", "localhost"].includes(url.hostname)) {
  throw new Error("a token is sent only over https");
}
const { solvers } = await import(pathToFileURL(file).href);
const sleep = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
const jitter = () => 0.5 + Math.random();

async function attempt(operation, body) {
  return fetch(new URL(`api/v1/${operation}`, url), {
    method: "POST",
    redirect: "error",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(60_000),
  });
}

async function call(operation, body) {
  for (let delay = 1; ; delay = Math.min(2 * delay, 900)) {
    try {
      const answer = await attempt(operation, body);
      if (answer.ok) return await answer.json();
      if (![408, 429, 500, 502, 503, 504].includes(answer.status)) {
        console.error(`${operation}: ${answer.status} ${(await answer.json()).message}`);
        process.exit(1);
      }
    } catch (error) {
      if (error instanceof SyntaxError) throw error;
    }
    await sleep(delay * jitter());
  }
}

// JSON has no infinities.
const plain = (value) => (Number.isFinite(value) ? value : value > 0 ? "inf" : "-inf");

function makeRun(job) {
  const start = process.hrtime.bigint();
  const own = { id: job.id, lease: job.lease };
  const solver = solvers[job.algorithm];
  if (!solver || solver.digest !== job.digest) return { ...own, why: "another solver" };
  try {
    const run = solver.run(job);
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    return { ...own, ...run, value: run.value.map(plain), seconds };
  } catch (error) {
    return { ...own, time: [], value: [], until: 0, status: "crashed", why: String(error) };
  }
}

let { race } = await call("status", {});
while (!Object.keys(race).length) {
  await sleep(2 * jitter());
  ({ race } = await call("status", {}));
}
for (const [name, solver] of Object.entries(solvers)) solver.digest ??= race.solvers[name];
const algorithms = Object.fromEntries(
  Object.entries(solvers).map(([name, solver]) => [name, solver.digest ?? ""]),
);
const joined = await call("join", { protocol: 1, algorithms, slots: 1, about: { node: process.version } });
const { worker } = joined;
let held = [];
let interval = joined.heartbeat_seconds;
let timer;
async function beat() {
  const jobs = held.map(({ id, lease }) => ({ id, lease }));
  try {
    const answer = await attempt("heartbeat", { worker, jobs });
    if (answer.ok) {
      const told = await answer.json();
      const drop = new Set(told.drop);
      interval = told.heartbeat_seconds;
      held = held.filter((job) => !drop.has(job.id));
    }
  } catch {
    // the next heartbeat may succeed
  }
  timer = setTimeout(beat, 1000 * interval);
}
timer = setTimeout(beat, 1000 * interval);

let made = 0;
while (true) {
  const answer = await call("lease", { worker });
  held = [...answer.jobs];
  const items = [];
  for (const job of answer.jobs) {
    items.push(makeRun(job));
    await sleep(0); // so that heartbeats are sent between runs
  }
  const failed = items.filter((item) => !item.status);
  const results = items.filter((item) => item.status);
  if (failed.length) await call("fail", { worker, results: failed });
  if (results.length) await call("results", { worker, results });
  made += results.length;
  held = [];
  if (!answer.jobs.length) {
    if (answer.ended) break;
    await sleep(answer.wait * jitter());
  }
}
clearTimeout(timer);
await call("leave", { worker });
console.log(`${made} runs made`);
