/** The cluster, as its panel shows it. */
import assert from "node:assert/strict";
import test from "node:test";
import { ClusterModel, deviceText, lostText, pageOf, summaryText, waitRow, workerRows } from "../src/model/cluster.js";
import { taskText } from "../src/model/devices.js";
import type { Cluster, ClusterStatus, WaitStatus, WorkerStatus } from "../src/wire/messages.js";

const task = (n: number): string => `/job:worker/replica:0/task:${n}`;
const WORKER: WorkerStatus = {
  task: task(0), worker: "alice", incarnation: "5f", host: "127.0.0.1", pid: 4711, devices: [`${task(0)}/device:CPU:0`, `${task(0)}/device:GPU:0`],
  health: "ok", reason: "", silent_s: 0.1, memory_bytes: 3e8, memory_limit: 4e8, held_bytes: 1_234_567, steps: 12, running: 1,
  sent_bytes: 2e6, received_bytes: 500, clock_ahead_s: -0.0012, clock_error_s: 41e-6, round_trip_s: 82e-6, bytes_per_s: 1.9e9, queues: [{ name: "jobs", size: 3, capacity: 8, enqueues: 0, dequeues: 0, stamp: null, dropped: 0 }], lost: [], transport: "sockets", is_encrypted: false,
};
const CLIENT: WorkerStatus = { ...WORKER, task: "/job:client/replica:0/task:0", worker: "", devices: [], memory_limit: null, clock_ahead_s: null, clock_error_s: null, queues: [], running: 0 };
const WAIT: WaitStatus = { client: "c", step: 7, device: `${task(0)}/device:CPU:0`, peer: `${task(1)}/device:GPU:1`, what: "loop/h:0", kind: "value", seconds: 2.1 };
const STATUS: ClusterStatus = { target: "fs://7", scheduler: "tcp://a", dashboard: "http://a/status", workers: [CLIENT, WORKER, { ...WORKER, task: task(1), health: "hung", reason: "its process is stopped" }], waits: [WAIT], findings: [] };
const told = (request_id: number, status: ClusterStatus | null = STATUS, error = ""): Cluster => ({ request_id, error, status, view: 7, kind: "cluster" });

test("a worker is a row: who, where, how full, and what it waits for since when", () => {
  const [client, row, hung] = workerRows(STATUS);
  assert.deepEqual([client?.name, client?.fill, client?.clock], ["this notebook", null, ""]);
  assert.match(client?.memory ?? "", /^300\sMB$/);
  assert.deepEqual([row?.name, row?.dask, row?.host, row?.process], ["worker 0", "alice in Dask", "127.0.0.1", "process 4711"]);
  assert.deepEqual(row?.devices.map(({ short }) => short), ["CPU:0", "GPU:0"]);
  assert.deepEqual(row?.fill, { share: 0.75, level: "high" });
  assert.match(`${row?.clock} ${row?.clockError}`, /^\u22121\.20\sms \u00b1 41\.0\s\u00b5s$/);
  assert.deepEqual([row?.steps, row?.running, client?.running], ["12", "1 running", ""]);
  assert.match(`${row?.sent}, ${row?.received}`, /^2\.00\sMB sent, 500\sB received$/);
  assert.deepEqual(row?.queues, ["jobs: 3 of 8"]);
  assert.deepEqual(row?.waits.map(({ text, op }) => [text, op]), [["loop/h:0 of GPU:1 of worker 1", "loop/h"]]);
  assert.match(row?.waits[0]?.since ?? "", /^for 2\.10\ss$/);
  assert.deepEqual([hung?.health, hung?.waits.length], ["hung", 0]);
});

test("a worker that was started again says what it has lost, until it is there again", () => {
  const lost = [{ kind: "variable", name: "w" }, { kind: "queue", name: "jobs" }, { kind: "variable", name: "b" }] as const;
  const status = { ...STATUS, workers: [CLIENT, WORKER, { ...WORKER, task: task(1), lost: [...lost] }] };
  const [, well, without] = workerRows(status);
  assert.deepEqual([well?.lost, well?.lostNames], ["", ""]);
  assert.deepEqual([without?.health, without?.lost, without?.lostNames], ["ok", "2\u00a0variables and 1\u00a0queue", "variable w, queue jobs, variable b"]);
  assert.match(without?.title ?? "", /^lost 2\svariables and 1\squeue: variable w, queue jobs, variable b$/m);
  assert.doesNotMatch(well?.title ?? "", /lost/);
  assert.match(summaryText(status), /^2\sworkers: 1 ok, 1 without its state$/);
  assert.equal(lostText({ ...WORKER, lost: [...lost, { kind: "lock", name: "turns" }] }), "2\u00a0variables, 1\u00a0queue and 1\u00a0lock");
});

test("a worker whose number begins like another's has its own waits", () => {
  const status = { ...STATUS, workers: [{ ...WORKER, task: task(1) }], waits: [{ ...WAIT, device: `${task(11)}/device:CPU:0` }] };
  assert.equal(workerRows(status)[0]?.waits.length, 0);
});

test("a row says by what its worker is reached, and a sentence the same", () => {
  const said = (transport: string, is_encrypted: boolean): unknown => {
    const [row] = workerRows({ ...STATUS, workers: [{ ...WORKER, transport, is_encrypted }] });
    return [row?.transport, row?.transportTitle];
  };
  const begin = "This worker exchanges messages and values with other processes over";
  assert.deepEqual(said("sockets", false), ["sockets, no TLS", `${begin} sockets of flowscope's own, not encrypted.`]);
  assert.deepEqual(said("dask", true), ["Dask's ports, TLS", `${begin} Dask's ports (distributed.comm), encrypted by TLS.`]);
  assert.deepEqual(said("dask and sockets", true), ["Dask's ports and sockets, TLS", `${begin} Dask's ports (distributed.comm) with some processes, and with others over sockets of flowscope's own, encrypted by TLS.`]);
  assert.deepEqual(said("", true), ["", ""]);
  assert.match(workerRows(STATUS)[0]?.transportTitle ?? "", /^This notebook exchanges/);
});

test("a row's title has what the table has no room for", () => {
  const title = workerRows(STATUS)[1]?.title ?? "";
  for (const part of ["worker 0, alice in Dask", "127.0.0.1, process 4711", "devices CPU:0 GPU:0", "steps 12, 1 running", "jobs: 3 of 8", "there and back", "sockets, no TLS"]) assert.ok(title.includes(part), part);
  assert.doesNotMatch(workerRows({ ...STATUS, workers: [{ ...CLIENT, transport: "", sent_bytes: null, received_bytes: null }] })[0]?.title ?? "", /^$|clock|sent/m);
});

test("memory is full where Dask would pause the worker", () => {
  const row = (memory_bytes: number): unknown => workerRows({ ...STATUS, workers: [{ ...WORKER, memory_bytes }] })[0]?.fill?.level;
  assert.deepEqual([1e8, 2.5e8, 3.3e8, 9e8].map(row), ["well", "high", "critical", "critical"]);
});

test("who waits for a reader or for a queue says so", () => {
  assert.equal(waitRow({ ...WAIT, kind: "credit" }).text, "GPU:1 of worker 1 to read loop/h:0");
  assert.deepEqual([waitRow({ ...WAIT, kind: "queue", peer: "", what: "jobs" })].map(({ text, op }) => [text, op]), [["queue jobs", null]]);
});

test("workers are counted, and those that are not well", () => {
  assert.match(summaryText(STATUS), /^2\sworkers: 1 ok, 1 hung$/);
  assert.match(summaryText({ ...STATUS, workers: [CLIENT, WORKER] }), /^1\sworker$/);
  assert.match(summaryText({ ...STATUS, workers: [{ ...WORKER, health: "lost" }] }), /^1\sworker: 1 lost$/);
});

test("tasks and devices have short names", () => {
  assert.deepEqual([taskText("/job:ps/replica:0/task:1"), taskText(CLIENT.task), taskText("odd")], ["ps 1", "this notebook", "odd"]);
  assert.equal(deviceText(`${task(3)}/device:CPU:0`), "worker 3");
});

test("nothing but a page is linked to", () => {
  assert.equal(pageOf("http://a/status"), "http://a/status");
  assert.equal(pageOf("javascript:alert(1)"), null);
});

test("the newest answer counts, and it is known that one is under way", () => {
  const model = new ClusterModel();
  let changes = 0;
  model.changed.connect(() => changes++, new AbortController().signal);
  assert.deepEqual([model.isKnown, model.isAsked], [false, false]);
  const [first, second] = [model.ask().request_id, model.ask().request_id];
  model.take(told(second), 3);
  model.take(told(first, null), 3);
  assert.deepEqual([model.status, model.isAsked, changes], [STATUS, false, 1]);
  model.take(told(model.ask().request_id, null, "the scheduler is gone"), 5);
  assert.deepEqual([model.status, model.problem], [null, "the scheduler is gone"]);
});

test("what was told when a step ran is kept: the last look before its end", () => {
  const model = new ClusterModel();
  const at = (text: string): ClusterStatus => ({ ...STATUS, dashboard: text });
  for (const [text, steps] of [["a", 3], ["b", 3], ["c", 9]] as const) model.take(told(model.ask().request_id, at(text)), steps);
  assert.deepEqual([2, 3, 8, 9, 90].map((step) => model.statusAt(step)?.dashboard), [undefined, "b", "b", "c", "c"]);
});
