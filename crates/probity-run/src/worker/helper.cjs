// Runs JavaScript functions for Probity: a request on each line of standard input, an answer for
// each. Whatever functions print goes to standard error, so that it cannot be taken for an answer.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');
const { Console } = require('node:console');
const { pathToFileURL } = require('node:url');

const answerPipe = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
globalThis.console = new Console(process.stderr, process.stderr);

const loaded = new Map();

// A function, or the method of an object or of an instance of a class, if one is asked for.
// A list stands for a function that returns it.
function callable(exported, method) {
  if (Array.isArray(exported)) return () => exported;
  const isClass = method && typeof exported?.prototype?.[method.name] === 'function';
  const owner = isClass ? new exported(method.options) : exported;
  if (method && typeof owner?.[method.name] === 'function') return owner[method.name].bind(owner);
  return typeof exported === 'function' ? exported : undefined;
}

async function load({ file, function: name, method }) {
  const key = `${file}:${name ?? ''}`;
  if (!loaded.has(key)) {
    if (!fs.existsSync(file)) throw new Error(`there is no file ${file}`);
    const module = await import(pathToFileURL(file).href);
    const exported = name ? module[name] ?? module.default?.[name] : module.default ?? module;
    const found = callable(exported, method) ?? callable(exported?.default, method);
    if (!found) throw new Error(`${path.basename(file)} does not export a function${name ? ` \`${name}\`` : ''}`);
    loaded.set(key, found);
  }
  return loaded.get(key);
}

async function answer(request) {
  try {
    const found = await load(request.run);
    const returned = request.args && (await found(...request.args));
    return JSON.stringify({ id: request.id, returned: returned ?? null });
  } catch (error) {
    const where = /\(?([^()\s]+):(\d+):\d+\)?/.exec(`${error?.stack ?? ''}`.split('\n').slice(1).join('\n'));
    const place = where ? ` (${path.basename(where[1])}, line ${where[2]})` : '';
    const cause = error?.cause?.message ? `: ${error.cause.message}` : '';
    const message = `${error?.name ?? 'Error'}: ${error?.message ?? error}${cause}${place}`;
    return JSON.stringify({ id: request.id, error: message.slice(0, 2000) });
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    answerPipe(`${await answer(JSON.parse(line))}\n`);
  }
})();
