#!/usr/bin/env node
// Compares what Probity's import makes of promptfoo configs with what promptfoo itself does.
//
//   npm install --prefix /tmp/pf promptfoo@0.121.20 node@24
//   cargo build
//   /tmp/pf/node_modules/node/bin/node bench/referee/promptfoo.mjs --promptfoo /tmp/pf --probity target/debug/probity FOLDER
//
// FOLDER holds configs, each with the files that it names; folders at its top are taken as wholes.
// It is copied first, and nothing in it is changed. Each config is then written again so that every
// provider is `echo` and every grader is a server of this script, and run by both programs. Proxies
// point at a closed port, so nothing leaves the machine. The configs' own JavaScript and Python do run.
//
// Compared are the number of cases, the prompts (as multisets; chats by their messages), the outcome
// of every deterministic assertion, and the verdicts of cases that have no other assertions.
// Left out is what promptfoo cannot run here: it fails, or it cannot make the prompts of some cases and
// neither can Probity (a program or a package is missing, a prompt function insists on another provider). The
// report lists each with its reason; the last line counts them.
//
// --only TEXT      only configs whose path contains TEXT
// --work DIR       where to work; with what promptfoo said before, which is used again
// --json FILE      the whole report
// --jobs N         configs at the same time (2)
// --verbose        show the first differences of each config

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

const DETERMINISTIC = new Set([
  'bleu', 'contains', 'contains-all', 'contains-any', 'contains-html', 'contains-json', 'contains-sql',
  'contains-xml', 'equals', 'gleu', 'guardrails', 'icontains', 'icontains-all', 'icontains-any', 'is-html', 'is-json',
  'is-refusal', 'is-sql', 'is-valid-openai-tools-call', 'is-xml', 'javascript', 'levenshtein', 'meteor',
  'python', 'regex', 'rouge-n', 'starts-with', 'tool-call-f1', 'word-count',
]);
const TIME_LIMIT_MS = 120_000;
const CLOSED_PORT = 'http://127.0.0.1:9';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    promptfoo: { type: 'string', default: '.' },
    probity: { type: 'string', default: 'probity' },
    only: { type: 'string' },
    work: { type: 'string' },
    json: { type: 'string' },
    jobs: { type: 'string', default: '2' },
    verbose: { type: 'boolean', default: false },
  },
});
if (positionals.length !== 1) {
  console.error('usage: promptfoo.mjs --promptfoo DIR --probity FILE [--json FILE] FOLDER');
  process.exit(2);
}

const require = createRequire(path.resolve(options.promptfoo, 'node_modules', 'promptfoo', 'package.json'));
const yaml = require('js-yaml');
const promptfooProgram = path.resolve(options.promptfoo, 'node_modules', '.bin', 'promptfoo');
const probityProgram = path.resolve(options.probity);

/** A grader that is content with everything, and gives every text the same vector. */
function startGrader(port) {
  const opinion = JSON.stringify({ pass: true, score: 1, reason: 'the referee is content' });
  const answer = (url, usage) => {
    if (url.includes('embeddings')) return { data: [{ index: 0, embedding: [1, 0, 0] }], usage };
    if (url.includes('responses')) {
      const content = [{ type: 'output_text', text: opinion, annotations: [] }];
      const output = [{ type: 'message', id: 'message', role: 'assistant', status: 'completed', content }];
      return { id: 'response', model: 'referee', status: 'completed', output, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } };
    }
    const message = { role: 'assistant', content: opinion };
    return { model: 'referee', choices: [{ index: 0, message, finish_reason: 'stop' }], usage };
  };
  const server = http.createServer((request, response) => {
    request.resume().on('end', () => {
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(answer(request.url, usage)));
    });
  });
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)));
}

/** Writes a config; what promptfoo said of another one at its place is forgotten. */
function writeConfig(place, text) {
  if (fs.existsSync(place) && fs.readFileSync(place, 'utf8') !== text) fs.rmSync(`${place}.promptfoo.json`, { force: true });
  fs.writeFileSync(place, text);
}

function findConfigs(folder) {
  const found = [];
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules' || entry.name.startsWith('.')) continue;
    const place = path.join(folder, entry.name);
    if (entry.isDirectory()) found.push(...findConfigs(place));
    else if (/\.(ya?ml|json)$/.test(entry.name) && isConfig(place)) found.push(place);
  }
  return found.sort();
}

function readConfig(place) {
  return yaml.load(fs.readFileSync(place, 'utf8'));
}

function isConfig(place) {
  try {
    const config = readConfig(place);
    return config !== null && typeof config === 'object' && !Array.isArray(config)
      && ('providers' in config || 'targets' in config)
      && ['prompts', 'tests', 'scenarios'].some((key) => key in config);
  } catch {
    return false;
  }
}

/** The same config with other providers and graders. */
function rewritten(config, folder, grader) {
  const judge = { id: 'openai:chat:judge', config: { apiBaseUrl: grader, apiKeyEnvar: 'OPENAI_API_KEY' } };
  const vectors = { id: 'openai:embedding:vectors', config: { apiBaseUrl: grader, apiKeyEnvar: 'OPENAI_API_KEY' } };
  const graderFor = (provider) => {
    if (provider === null || typeof provider !== 'object' || 'id' in provider) return judge;
    const kinds = Object.entries(provider).map(([kind]) => [kind, kind === 'embedding' ? vectors : judge]);
    return Object.fromEntries(kinds);
  };
  const assertion = (it) => {
    if (it === null || typeof it !== 'object') return it;
    const copy = { ...it };
    if ('provider' in copy) copy.provider = String(copy.type).includes('similar') ? vectors : graderFor(copy.provider);
    if (Array.isArray(copy.assert)) copy.assert = copy.assert.map(assertion);
    return copy;
  };
  const test = (it) => {
    if (it === null || typeof it !== 'object') return it;
    const copy = { ...it };
    if (copy.provider) copy.provider = 'echo';
    if (copy.options?.provider) copy.options = { ...copy.options, provider: graderFor(copy.options.provider) };
    if (Array.isArray(copy.assert)) copy.assert = copy.assert.map(assertion);
    return copy;
  };
  const tests = (it) => (Array.isArray(it) ? it.map(test) : it);
  const copy = { ...config };
  for (const key of ['outputPath', 'sharing', 'commandLineOptions', 'tracing', 'targets']) delete copy[key];
  // promptfoo asks providers of the same id and label only once.
  const seen = new Map();
  copy.providers = providers(config.providers ?? config.targets, folder).map(echo).map((it) => {
    const times = (seen.get(it.label) ?? 0) + 1;
    seen.set(it.label, times);
    return times === 1 ? it : { ...it, label: `${it.label} (${times})` };
  });
  if (copy.tests) copy.tests = tests(copy.tests);
  if (copy.defaultTest) copy.defaultTest = test(copy.defaultTest);
  if (Array.isArray(copy.scenarios)) {
    copy.scenarios = copy.scenarios.map((it) => (typeof it === 'object' ? { ...it, tests: tests(it.tests), config: tests(it.config) } : it));
  }
  return copy;
}

/** The providers that a config names, those in other files of settings included. */
function providers(written, folder) {
  const list = Array.isArray(written) ? written : [written];
  return list.flatMap((it) => {
    if (typeof it !== 'string' || !/^file:\/\/.*\.(ya?ml|json)$/.test(it)) return [it];
    const place = path.resolve(folder, it.slice('file://'.length));
    return providers(yaml.load(fs.readFileSync(place, 'utf8')), path.dirname(place));
  });
}

function echo(provider, index) {
  if (typeof provider === 'string' || provider === null) return { id: 'echo', label: provider ?? `provider ${index}` };
  const keys = Object.keys(provider);
  const nested = !('id' in provider) && keys.length === 1 ? { id: keys[0], ...provider[keys[0]] } : provider;
  return {
    id: 'echo',
    label: nested.label ?? nested.id ?? `provider ${index}`,
    ...(nested.prompts ? { prompts: nested.prompts } : {}),
  };
}

function execute(program, args, { cwd, grader, state }) {
  const env = {
    ...process.env,
    // Functions are run by the Node that runs this script: TypeScript needs version 22.18 or later.
    PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env.PATH}`,
    HTTP_PROXY: CLOSED_PORT, HTTPS_PROXY: CLOSED_PORT, http_proxy: CLOSED_PORT, https_proxy: CLOSED_PORT,
    NO_PROXY: '127.0.0.1,localhost', no_proxy: '127.0.0.1,localhost',
    OPENAI_API_KEY: 'referee', OPENAI_BASE_URL: grader, OPENAI_API_BASE_URL: grader,
    PROMPTFOO_CONFIG_DIR: state ?? cwd,
    PROMPTFOO_DISABLE_TELEMETRY: '1', PROMPTFOO_DISABLE_UPDATE: '1', PROMPTFOO_DISABLE_REMOTE_GENERATION: '1',
    PROMPTFOO_DISABLE_SHARING: '1', PROMPTFOO_SELF_HOSTED: '0',
  };
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (data) => (output += data));
    child.stderr.on('data', (data) => (output += data));
    const timer = setTimeout(() => child.kill('SIGKILL'), TIME_LIMIT_MS);
    child.on('error', (error) => resolve({ code: -1, output: String(error) }));
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}

/** What promptfoo does with a config; kept beside it for the next time. */
async function runPromptfoo(config, grader) {
  const cwd = path.dirname(config);
  const kept = `${config}.promptfoo.json`;
  if (!fs.existsSync(kept)) {
    const args = ['eval', '-c', config, '--no-cache', '--no-table', '--no-progress-bar', '--no-share', '-o', kept];
    // Two programs must not set up the same database at once.
    const state = `${config}.state`;
    const { output } = await execute(promptfooProgram, args, { cwd, grader, state });
    fs.rmSync(state, { recursive: true, force: true });
    if (!fs.existsSync(kept)) fs.writeFileSync(kept, JSON.stringify({ failed: lastLine(output) }));
  }
  const { failed, results } = JSON.parse(fs.readFileSync(kept, 'utf8'));
  if (failed) return { failed };
  return { cases: results.results.map(promptfooCase) };
}

function promptfooCase(row) {
  const asserted = row.testCase?.assert ?? [];
  const components = (row.gradingResult?.componentResults ?? []).slice(0, asserted.length);
  const output = row.response?.output;
  return {
    prompt: canonical(chat(row.prompt.raw) ?? [['user', row.prompt.raw]]),
    isChat: chat(row.prompt.raw) !== undefined,
    output: typeof output === 'string' ? output : JSON.stringify(output),
    // A case that could not be asked has no verdict.
    verdict: row.failureReason === 2 ? 'error' : row.success ? 'pass' : 'fail',
    unasked: row.failureReason === 2 && !row.response ? firstLine(row.error ?? '') : undefined,
    types: asserted.map((it) => it.type),
    assertions: components.filter(Boolean).map((it, at) => [spelled(asserted[at].type), it.pass ? 'pass' : 'fail']),
  };
}

/** What Probity does with it: imported, then run. */
async function runProbity(config, grader) {
  const cwd = path.dirname(config);
  const out = `${config}.probity`;
  fs.rmSync(out, { recursive: true, force: true });
  const imported = await execute(probityProgram, ['import', config, '-o', out], { cwd, grader });
  const suite = ['probity.toml', 'probity.yaml'].map((it) => path.join(out, it)).find((it) => fs.existsSync(it));
  if (!suite) return { failed: lastLine(imported.output), lost: imported.output.trim() };
  const lost = imported.output.trim();
  const whole = imported.code === 0;
  const results = path.join(out, 'results.jsonl');
  // Scripts of a suite are in its folder or in the working directory.
  const ran = await execute(probityProgram, ['run', suite, '-o', results], { cwd, grader });
  if (!fs.existsSync(results)) return { failed: lastLine(ran.output), lost, whole };
  const lines = fs.readFileSync(results, 'utf8').split('\n').filter(Boolean);
  return { cases: lines.flatMap((it) => turns(JSON.parse(it))), lost, whole };
}

/** A conversation is one case here, and a case for each of its turns in promptfoo. */
function turns(row) {
  const asked = (row.asked ?? []).filter((it) => it.turn);
  if (asked.length === 0) return [probityCase(row)];
  const turn = (it) => ({ ...row, system: it.system, prompt: it.prompt, messages: it.messages, raw_response: it.reply });
  return asked.map((it) => probityCase(turn(it)));
}

function probityCase(row) {
  const before = row.system ? [['system', row.system]] : [];
  const messages = row.messages?.map((it) => [it.role, contentText(it.content)]);
  const sent = messages ?? [...before, ['user', row.prompt]];
  return {
    prompt: canonical(sent),
    isChat: sent.length > 1 || sent[0][0] !== 'user',
    output: row.raw_response,
    verdict: row.verdict,
    // What has no weight is reported and cannot fail; promptfoo calls that passed.
    assertions: (row.classification?.scores ?? []).map((it) => [spelled(it.type ?? ''), it.passed || it.weight === 0 ? 'pass' : 'fail']),
  };
}

/** Types have other names in places. */
function spelled(type) {
  const theirs = { 'rouge-1': 'rouge-n', scorer: 'javascript', 'valid-tool-calls': 'is-valid-openai-tools-call' };
  const plain = type.replace(/^not-/, '');
  return plain in theirs ? type.replace(plain, theirs[plain]) : type;
}

/** The messages of a prompt that promptfoo's chat providers read as a conversation. */
function chat(raw) {
  const text = raw.trim();
  let value;
  try {
    if (text.startsWith('[')) value = JSON.parse(text);
    else if (text.startsWith('- role:')) value = yaml.load(text);
  } catch {
    return undefined;
  }
  const isChat = Array.isArray(value) && value.length > 0 && value.every((it) => it !== null && typeof it === 'object' && 'role' in it);
  return isChat ? value.map((it) => [it.role, contentText(it.content)]) : undefined;
}

function contentText(content) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return JSON.stringify(content ?? '');
  const part = (it) => it.text ?? (it.image_url || it.image || it.source ? '[image]' : JSON.stringify(it));
  return content.map(part).join('\n');
}

/** Messages as a text to compare; JSON within them without its blanks. */
function canonical(messages) {
  const tidy = (text) => {
    try {
      const value = JSON.parse(text);
      return value !== null && typeof value === 'object' ? JSON.stringify(value) : text;
    } catch {
      return text;
    }
  };
  return JSON.stringify(messages.map(([role, text]) => [role === 'developer' ? 'system' : role, tidy(text)]));
}

function firstLine(text) {
  return text.trim().split('\n')[0];
}

function lastLine(output) {
  const lines = output.split('\n').map((it) => it.trim()).filter(Boolean);
  return lines.find((it) => /error/i.test(it)) ?? lines.at(-1) ?? 'it said nothing';
}

/** How many of the first list are in the second, and those that are not. */
function shared(first, second) {
  const left = new Map();
  for (const it of second) left.set(it, (left.get(it) ?? 0) + 1);
  const missing = first.filter((it) => {
    const count = left.get(it) ?? 0;
    if (count > 0) left.set(it, count - 1);
    return count === 0;
  });
  return { same: first.length - missing.length, missing };
}

function compare(theirs, ours) {
  const prompted = theirs.filter((it) => it.unasked === undefined);
  const prompts = shared(prompted.map((it) => it.prompt), ours.map((it) => it.prompt));
  // The echo of a chat is not the same text in both programs.
  const comparable = (list) => list.filter((it) => !it.isChat);
  const isDeterministic = (type) => DETERMINISTIC.has(type.replace(/^not-/, ''));
  const asked = theirs.filter((it) => it.verdict !== 'error');
  const checks = (list) => comparable(list).flatMap((it) => it.assertions.filter(([type]) => isDeterministic(type)).map((check) => JSON.stringify([it.prompt, ...check])));
  const assertions = shared(checks(asked), checks(ours));
  const decided = comparable(asked).filter((it) => it.types.length > 0 && it.types.every(isDeterministic));
  const verdicts = shared(decided.map((it) => JSON.stringify([it.prompt, it.verdict])), ours.map((it) => JSON.stringify([it.prompt, it.verdict])));
  const literal = (it) => it.prompt.includes('file://') || it.prompt.includes('{{');
  return {
    cases: { theirs: theirs.length, ours: ours.length },
    prompts: { ...prompts, all: prompted.length },
    assertions: { ...assertions, all: checks(asked).length },
    verdicts: { ...verdicts, all: decided.length },
    literal: Math.max(0, ours.filter(literal).length - theirs.filter(literal).length),
  };
}

function label(row) {
  if (row.outside) return `promptfoo cannot run it: ${row.outside}`;
  if (row.failed) return `FAILED: ${row.failed}`;
  const share = (it) => `${it.same}/${it.all}`;
  return `cases ${row.cases.ours}/${row.cases.theirs}  prompts ${share(row.prompts)}  assertions ${share(row.assertions)}  verdicts ${share(row.verdicts)}`
    + (row.literal ? `  ${row.literal} LITERAL` : '');
}

async function examine(config, name, grader) {
  const copy = config.replace(/\.(ya?ml|json)$/, '.referee.yaml');
  try {
    writeConfig(copy, JSON.stringify(rewritten(readConfig(config), path.dirname(config), grader), null, 1));
  } catch (error) {
    return { name, outside: error.message.split('\n')[0] };
  }
  const theirs = await runPromptfoo(copy, grader);
  if (theirs.failed) return { name, outside: theirs.failed };
  const ours = await runProbity(copy, grader);
  const { lost, whole = false } = ours;
  // Functions make all prompts before the first call here, so what promptfoo cannot ask ends the run.
  const unasked = theirs.cases.filter((it) => it.unasked !== undefined);
  if (ours.failed && unasked.length > 0) {
    return { name, outside: `${unasked.length} of ${theirs.cases.length} cases cannot be asked: ${unasked[0].unasked}` };
  }
  if (ours.failed) return { name, whole, failed: ours.failed, lost, theirs: theirs.cases.length };
  return { name, whole, lost, ...compare(theirs.cases, ours.cases) };
}

/** The figures of all configs that promptfoo can run, and of those that were carried over whole. */
function summary(rows) {
  const compared = rows.filter((it) => !it.outside);
  const left_out = rows.length - compared.length;
  return { left_out, all: figures(rows.length, compared), whole: figures(rows.length, compared.filter((it) => it.whole)) };
}

function figures(all, compared) {
  const read = compared.filter((it) => !it.failed);
  const sum = (pick) => read.reduce((total, it) => total + pick(it), 0);
  const missed = compared.filter((it) => it.failed).reduce((total, it) => total + it.theirs, 0);
  const ratio = (same, all) => ({ same, all, share: all ? Math.round((10_000 * same) / all) / 100 : null });
  return {
    configs: { all, compared: compared.length, run_by_probity: read.length },
    same_number_of_cases: ratio(read.filter((it) => it.cases.ours === it.cases.theirs).length, compared.length),
    prompts: ratio(sum((it) => it.prompts.same), sum((it) => it.prompts.all) + missed),
    assertions: ratio(sum((it) => it.assertions.same), sum((it) => it.assertions.all)),
    verdicts: ratio(sum((it) => it.verdicts.same), sum((it) => it.verdicts.all)),
    literal_prompts: sum((it) => it.literal),
  };
}

const work = path.resolve(options.work ?? fs.mkdtempSync(path.join(os.tmpdir(), 'referee-')));
fs.mkdirSync(work, { recursive: true });
// Configs name the address of the grader, so it stays the same.
const portFile = path.join(work, 'port');
const server = await startGrader(fs.existsSync(portFile) ? Number(fs.readFileSync(portFile, 'utf8')) : 0);
fs.writeFileSync(portFile, String(server.address().port));
const grader = `http://127.0.0.1:${server.address().port}/v1`;
const folder = path.resolve(positionals[0]);
const copy = path.join(work, 'configs');
if (!fs.existsSync(copy)) {
  const isWanted = (place) => !place.includes(`${path.sep}node_modules`) && !place.includes(`${path.sep}.git${path.sep}`);
  fs.cpSync(folder, copy, { recursive: true, filter: isWanted });
}
const waiting = findConfigs(copy)
  .filter((it) => !it.endsWith('.referee.yaml') && !it.includes('.referee.yaml.'))
  .map((it) => [it, path.relative(copy, it)])
  .filter(([, name]) => !options.only || name.includes(options.only));
const rows = [];
await Promise.all(
  Array.from({ length: Number(options.jobs) }, async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const row = await examine(...next, grader);
      rows.push(row);
      console.log(`${row.name}: ${label(row)}`);
      if (options.verbose) {
        for (const key of ['prompts', 'assertions', 'verdicts']) {
          for (const it of row[key]?.missing.slice(0, 3) ?? []) console.log(`    ${key}: ${it.slice(0, 600)}`);
        }
        if (row.lost) console.log(row.lost.replace(/^/gm, '    | '));
      }
    }
  }),
);
server.close();
rows.sort((a, b) => (a.name < b.name ? -1 : 1));
const totals = summary(rows);
if (options.json) fs.writeFileSync(options.json, JSON.stringify({ summary: totals, configs: rows }, null, 1));
console.log(JSON.stringify(totals));
