// What the adapters beside this file share. Paths start from the folder of the suite.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
// Calls a function of a file in Python. What else is printed stands before the last line.
const PYTHON = `import asyncio, importlib.util, inspect, json, os, sys
file, name, args = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
sys.path.insert(0, os.path.dirname(file))
spec = importlib.util.spec_from_file_location("called", file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
made = getattr(module, name)(*args)
if inspect.isawaitable(made):
    async def waited():
        return await made
    made = asyncio.run(waited())
print("\\n" + json.dumps(made))`;

// A text with `{{ name }}`, `{{ table.name }}` and `{{ name | dump }}` filled in. What is not there is empty.
export function fill(text, values) {
  return String(text).replace(/\{\{-?\s*([\w.$]+)\s*(?:\|\s*(\w+)\s*)?-?\}\}/g, (_, name, filter) => {
    const value = valueOf(name, values);
    return filter === 'dump' || filter === 'tojson' ? JSON.stringify(value ?? null) : written(value);
  });
}

export const valueOf = (name, values) => name.split('.').reduce((table, key) => table?.[key], values);

export function written(value) {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

// The same for all texts of a value.
export function fillAll(value, values) {
  if (typeof value === 'string') return fill(value, values);
  if (Array.isArray(value)) return value.map((it) => fillAll(it, values));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, fillAll(it, values)]));
}

// A function: `file://FILE` or `file://FILE:NAME`, a function that is written out, or what one does with these names.
export async function load(code, names = []) {
  if (typeof code !== 'string') throw new Error('there is no code');
  if (code.startsWith('file://')) {
    const [, file, name] = /^file:\/\/(.*\.[cm]?[jt]s)(?::(\w+))?$/.exec(code) ?? [];
    if (!file) throw new Error(`${code} is no file of JavaScript`);
    const module = await import(pathToFileURL(path.resolve(file)).href);
    const found = name ? (module[name] ?? module.default?.[name]) : (module.default?.default ?? module.default);
    if (typeof found !== 'function') throw new Error(`${file} exports no function${name ? ` ${name}` : ''}`);
    return found;
  }
  const text = code.trim().replace(/;$/, '');
  if (/^(async\s+)?(\([^)]*\)|\w+)\s*=>|^(async\s+)?function\b/.test(text)) {
    return new Function(`return (${text});`)();
  }
  return new Function(...names, /\breturn\b/.test(text) ? text : `return (${text});`);
}

// What a function in Python or JavaScript returns: `FILE` or `FILE:NAME`, else the usual name in Python.
export async function call(named, usual, args) {
  const [, file, name] = /^(.*\.\w+)(?::([\w.]+))?$/.exec(named) ?? [];
  if (!file?.endsWith('.py')) return (await load(`file://${named}`))(...args);
  const words = ['-c', PYTHON, path.resolve(file), name ?? usual, JSON.stringify(args)];
  const { stdout } = await run('python3', words, { maxBuffer: 64 << 20 });
  return JSON.parse(stdout.trim().split('\n').pop());
}

// A package that is installed for the suite.
export async function installed(name) {
  const required = createRequire(path.resolve('package.json'));
  let file;
  try {
    file = required.resolve(name);
  } catch {
    throw new Error(`the package ${name} is not there: npm install ${name}`);
  }
  return import(pathToFileURL(file).href);
}

// Asks a server and reads its JSON. An answer that says that something is wrong is an error.
export async function fetchJson(url, { method = 'POST', headers = {}, body } = {}) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(url, { method, headers: { 'content-type': 'application/json', ...headers }, ...sent });
  const text = await response.text();
  if (!response.ok) throw new Error(`HTTP ${response.status}: ${text.slice(0, 500)}`);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`no JSON: ${text.slice(0, 500)}`);
  }
}

export const bearer = (token) => (token ? { authorization: `Bearer ${token}` } : {});

export const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// What a transform has made, as an answer.
export function asAnswer(made) {
  const isAnswer = made !== null && typeof made === 'object' && ('output' in made || 'error' in made);
  return isAnswer ? made : { output: made };
}
