// BullMQ on Node. Called and answering as the Rust programs (common/src/args.rs, common/src/loads.rs).
// Flows for chains and fans, as its documentation has them.

import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const QUEUE = 'bench';
const BULK = 1000;
const LIMIT = 600_000;
const WARM_UP = 1000;
const MEASURED = 8000;
const TASKS = { single: 1, chain: 3, fan: 11 };

const args = parse(process.argv.slice(2));
const tasks = args.count * TASKS[args.shape];
const ran = new Uint8Array(tasks);
const began = new Float64Array(tasks);
let total = 0;

const url = new URL(args.url);
// What BullMQ asks of connections of workers.
const connection = { host: url.hostname, port: Number(url.port), maxRetriesPerRequest: null };
const queue = new Queue(QUEUE, { connection });
const flows = new FlowProducer({ connection });
const redis = new Redis(connection);

function parse([load, ...words]) {
  const args = { load, shape: 'single', count: 1000, slots: 200, tuned: false, hold: false };
  while (words.length) {
    const name = words.shift().replace(/^--/, '');
    if (!(name in args) && name !== 'url') throw new Error(`unknown option --${name}`);
    if (typeof args[name] === 'boolean') args[name] = true;
    else args[name] = typeof args[name] === 'number' ? Number(words.shift()) : words.shift();
  }
  return args;
}

const payload = (job) => String(job).padStart(8, '0') + 'x'.repeat(92);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function flow(job) {
  const node = (task, children) => ({ name: String(task), queueName: QUEUE, data: payload(job), children });
  if (args.shape === 'chain') return node(2, [node(1, [node(0)])]);
  return node(10, Array.from({ length: 10 }, (_, task) => node(task)));
}

async function enqueue(count) {
  for (let from = 0; from < count; from += BULK) {
    const jobs = Array.from({ length: Math.min(BULK, count - from) }, (_, n) => from + n);
    if (args.shape === 'single') await queue.addBulk(jobs.map((job) => ({ name: '0', data: payload(job) })));
    else await flows.addBulk(jobs.map(flow));
  }
}

async function handler(job) {
  const number = Number(job.data.slice(0, 8));
  const index = number * TASKS[args.shape] + Number(job.name);
  if (ran[index]++ === 0) {
    began[index] = performance.now();
    total += 1;
  }
  if (args.load === 'worker') process.stdout.write(`begin ${number}\n`);
  if (args.hold) await new Promise(() => {});
  return job.data;
}

async function work() {
  const tuned = args.tuned ? { lockDuration: 3000, stalledInterval: 1000 } : {};
  const worker = new Worker(QUEUE, handler, { connection, concurrency: args.slots, ...tuned });
  worker.on('error', fail);
  await worker.waitUntilReady();
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

async function until(what, holds) {
  const deadline = performance.now() + LIMIT;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what} took longer than ${LIMIT} ms`);
    await sleep(1);
  }
}

const bytes = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))[1]);
const completed = () => queue.getCompletedCount();

async function committed() {
  await until('storing', async () => (await completed()) >= tasks);
  const stored = await completed();
  if (stored !== tasks) throw new Error(`${stored} completed, not ${tasks}`);
}

// How many tasks ran more than once. None may never have run.
function repeated() {
  const never = ran.filter((times) => times === 0).length;
  if (never) throw new Error(`${never} tasks never ran`);
  return ran.filter((times) => times > 1).length;
}

async function throughput() {
  const empty = await bytes();
  let from = performance.now();
  await enqueue(args.count);
  const enqueued = performance.now() - from;
  const full = await bytes();
  from = performance.now();
  await work();
  await until('running', () => total >= tasks);
  await committed();
  const drained = performance.now() - from;
  return {
    enqueue: (args.count / enqueued) * 1000,
    drain: (tasks / drained) * 1000,
    bytes: (full - empty) / args.count,
    jobs: args.count,
    tasks,
    repeated: repeated(),
  };
}

async function idle() {
  const events = new QueueEvents(QUEUE, { connection });
  await events.waitUntilReady();
  await work();
  await sleep(1000);
  const toHandler = [];
  const toResult = [];
  for (let job = 0; job < args.count; job++) {
    await sleep(10 + ((job * 7919) % 5));
    const from = performance.now();
    const added = await queue.add('0', payload(job));
    await added.waitUntilFinished(events);
    toResult.push(performance.now() - from);
    toHandler.push(began[job] - from);
  }
  await committed();
  return {
    handler_p50: percentile(toHandler, 0.5),
    handler_p99: percentile(toHandler, 0.99),
    result_p50: percentile(toResult, 0.5),
    result_p99: percentile(toResult, 0.99),
    repeated: repeated(),
  };
}

function percentile(times, share) {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.round((sorted.length - 1) * share)];
}

async function depth() {
  await enqueue(args.count);
  await work();
  await until('warming up', () => total >= WARM_UP);
  const from = performance.now();
  const first = total;
  await until('running', () => total >= first + MEASURED);
  return { depth: args.count, drain: ((total - first) / (performance.now() - from)) * 1000 };
}

async function worker() {
  await work();
  process.stdout.write('ready\n');
  await sleep(LIMIT);
  throw new Error('nobody ended this worker');
}

const loads = {
  throughput,
  idle,
  depth,
  worker,
  enqueue: async () => {
    await enqueue(args.count);
    return { enqueued: args.count };
  },
};

try {
  const line = await loads[args.load]();
  process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(0));
} catch (error) {
  fail(error);
}
