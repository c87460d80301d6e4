// Runs JavaScript functions for Probity: a request on each line of standard input, an answer for
// each. Whatever functions print goes to standard error, so that it cannot be taken for an answer.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');
const { Console } = require('node:console');
const { Module, registerHooks } = require('node:module');
const { fileURLToPath, pathToFileURL } = require('node:url');

const answerPipe = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
globalThis.console = new Console(process.stderr, process.stderr);

// TypeScript names its modules without their endings, with the ending of what they are compiled to, or by the
// `paths` of its configuration. Node knows none of these, so they are looked for where Node finds nothing.
const ENDINGS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs', '/index.ts', '/index.js'];
const configured = new Map();

// The `paths` of the nearest configuration of TypeScript: the folder they start from, and the patterns.
function pathsOf(folder) {
  if (!configured.has(folder)) {
    let found = null;
    const file = path.join(folder, 'tsconfig.json');
    if (fs.existsSync(file)) {
      try {
        // Comments and commas at the end of lists are allowed there. Texts are kept as they are.
        const plain = fs
          .readFileSync(file, 'utf8')
          .replace(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g, (_, text) => text ?? '')
          .replace(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, text) => text ?? '');
        const { baseUrl, paths } = JSON.parse(plain).compilerOptions ?? {};
        if (paths) found = { base: path.resolve(folder, baseUrl ?? '.'), paths };
      } catch {
        // What cannot be read says nothing.
      }
    }
    const above = path.dirname(folder);
    configured.set(folder, found ?? (above === folder ? null : pathsOf(above)));
  }
  return configured.get(folder);
}

// Where a module might be that Node does not find.
function* elsewhere(specifier, parent) {
  const folder = path.dirname(fileURLToPath(parent));
  const bases = [];
  if (/^\.{0,2}\//.test(specifier)) {
    bases.push(path.resolve(folder, specifier));
  } else {
    const { base, paths } = pathsOf(folder) ?? { paths: {} };
    for (const [pattern, targets] of Object.entries(paths)) {
      const [before, after] = pattern.split('*');
      const fits = after === undefined ? specifier === pattern : specifier.startsWith(before) && specifier.endsWith(after);
      if (!fits || !Array.isArray(targets)) continue;
      const part = after === undefined ? '' : specifier.slice(before.length, specifier.length - after.length);
      bases.push(...targets.map((target) => path.resolve(base, `${target}`.replace('*', () => part))));
    }
  }
  for (const base of bases) {
    yield base;
    yield* ENDINGS.map((ending) => base + ending);
    yield base.replace(/\.([mc]?)js$/, '.$1ts');
  }
}

registerHooks?.({
  resolve(specifier, context, next) {
    try {
      return next(specifier, context);
    } catch (error) {
      const isMissing = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_UNSUPPORTED_DIR_IMPORT'].includes(error?.code);
      if (!isMissing || !context.parentURL?.startsWith('file:') || context.parentURL.includes('/node_modules/')) throw error;
      for (const file of elsewhere(specifier, context.parentURL)) {
        if (fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return next(pathToFileURL(file).href, context);
      }
      throw error;
    }
  },
});

// TypeScript for a Node that does not know it (before 22.18): translated by the esbuild of the user's project, if there
// is one. Packages stay where they are, and relative paths of the file as well.
function loadTypeScript(file) {
  const folder = path.dirname(file);
  let esbuild;
  try {
    esbuild = require(require.resolve('esbuild', { paths: [folder, process.cwd()] }));
  } catch {
    const which = `${path.basename(file)} is TypeScript, which Node runs from 22.18 on`;
    throw new Error(`${which}: this is ${process.version}, and there is no esbuild in the project`);
  }
  const { outputFiles } = esbuild.buildSync({
    entryPoints: [file],
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'cjs',
    target: `node${process.versions.node}`,
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(file).href) },
    write: false,
    logLevel: 'silent',
  });
  const module = new Module(file);
  module.filename = file;
  module.paths = Module._nodeModulePaths(folder);
  module._compile(outputFiles[0].text, file);
  return module.exports;
}

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
    const isUnknown = /\.[mc]?ts$/.test(file) && !process.features.typescript;
    const module = isUnknown ? loadTypeScript(file) : await import(pathToFileURL(file).href);
    const exported = name ? module[name] ?? module.default?.[name] : module.default ?? module;
    const found = callable(exported, method) ?? callable(exported?.default, method);
    if (!found) throw new Error(`${path.basename(file)} does not export a function${name ? ` \`${name}\`` : ''}`);
    loaded.set(key, found);
  }
  return loaded.get(key);
}

// Whether code is wrong, so that it would fail again. What cannot be parsed while it runs is the answer of a
// server, and a `TypeError` with a cause is one of the network.
function isFault(error) {
  const isMissing = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(error?.code);
  return isMissing || error instanceof ReferenceError || (error instanceof TypeError && !error.cause);
}

async function answer(request) {
  let isLoaded = false;
  try {
    const found = await load(request.run);
    isLoaded = true;
    const returned = request.args && (await found(...request.args));
    return JSON.stringify({ id: request.id, returned: returned ?? null });
  } catch (error) {
    const where = /\(?([^()\s]+):(\d+):\d+\)?/.exec(`${error?.stack ?? ''}`.split('\n').slice(1).join('\n'));
    const place = where ? ` (${path.basename(where[1])}, line ${where[2]})` : '';
    const cause = error?.cause?.message ? `: ${error.cause.message}` : '';
    const message = `${error?.name ?? 'Error'}: ${error?.message ?? error}${cause}${place}`;
    return JSON.stringify({ id: request.id, error: message.slice(0, 2000), fault: !isLoaded || isFault(error) });
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    answerPipe(`${await answer(JSON.parse(line))}\n`);
  }
})();
