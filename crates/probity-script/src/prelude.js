// Runs once in a new context, before any script. It takes away what could make two runs differ
// or hold state between two scripts, bounds what the engine does not interrupt, and freezes the
// rest. Its value is an object of functions for the host.
(() => {
  'use strict';
  const { apply, construct, ownKeys, getPrototypeOf, defineProperty, deleteProperty } = Reflect;
  const { freeze, getOwnPropertyDescriptor, isExtensible } = Object;
  const world = globalThis;
  const objectPrototype = Object.prototype;
  const hide = (target, name, value) =>
    defineProperty(target, name, { value, writable: true, enumerable: false, configurable: true });

  // Nothing that reads a clock, waits, or tells when memory is freed.
  for (const name of ['performance', 'Atomics', 'SharedArrayBuffer', 'WeakRef', 'FinalizationRegistry']) {
    delete world[name];
  }
  // Setters that change the engine, not the object.
  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;

  const refuse = (what, instead) => () => {
    throw new Error(`scripts have no ${what}, so that the same reply always gets the same score: ${instead}`);
  };
  hide(Math, 'random', refuse('random numbers', 'choose in the dataset'));
  const noClock = refuse('clock', 'give the time as a variable of the case');

  // Dates without the machine's time or zone: local time is UTC.
  const RealDate = Date;
  const dates = RealDate.prototype;
  const realParse = RealDate.parse;
  // The engine takes other texts apart word by word: a zone that follows replaces the first.
  const iso = /^(?:\d{4}|[+-]\d{6})(?:-(?!00)\d\d){0,2}(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/;
  const parse = (text) => {
    text = `${text}`;
    const [found, time, zone] = iso.exec(text) ?? [];
    if (found === undefined) return realParse(`UTC ${text}`);
    return realParse(time && !zone ? `${text}Z` : text);
  };
  const primitive = (value) => {
    if (value === null || typeof value !== 'object') return value;
    const convert = value[Symbol.toPrimitive];
    if (convert) return apply(convert, value, ['default']);
    const plain = value.valueOf();
    return plain === null || typeof plain !== 'object' ? plain : `${value}`;
  };
  function UtcDate(...parts) {
    if (new.target === undefined || parts.length === 0) return noClock();
    let time;
    if (parts.length > 1) time = RealDate.UTC(...parts);
    else if (parts[0] instanceof RealDate) time = apply(dates.getTime, parts[0], []);
    else {
      const value = primitive(parts[0]);
      time = typeof value === 'string' ? parse(value) : Number(value);
    }
    return construct(RealDate, [time], new.target);
  }
  defineProperty(UtcDate, 'name', { value: 'Date', configurable: true });
  defineProperty(UtcDate, 'length', { value: 7, configurable: true });
  defineProperty(UtcDate, 'prototype', { value: dates, writable: false });
  hide(UtcDate, 'UTC', RealDate.UTC);
  hide(UtcDate, 'parse', parse);
  hide(UtcDate, 'now', noClock);
  hide(dates, 'constructor', UtcDate);
  hide(world, 'Date', UtcDate);
  for (const part of ['FullYear', 'Month', 'Date', 'Hours', 'Minutes', 'Seconds', 'Milliseconds']) {
    hide(dates, `get${part}`, dates[`getUTC${part}`]);
    hide(dates, `set${part}`, dates[`setUTC${part}`]);
  }
  hide(dates, 'getDay', dates.getUTCDay);
  hide(dates, 'getYear', { getYear() { return this.getUTCFullYear() - 1900; } }.getYear);
  hide(dates, 'setYear', { setYear(year) {
    const whole = Math.trunc(year);
    return this.setUTCFullYear(whole >= 0 && whole < 100 ? 1900 + whole : whole);
  } }.setYear);
  hide(dates, 'getTimezoneOffset', function getTimezoneOffset() { return this.getTime() * 0; });
  const two = (number) => `${number}`.padStart(2, '0');
  const shown = (name, show) => hide(dates, name, { [name]() {
    return this.getTime() !== this.getTime() ? 'Invalid Date' : show(this);
  } }[name]);
  const day = (it) => {
    const [weekday, date, month, year] = it.toUTCString().replace(',', '').split(' ');
    return `${weekday} ${month} ${date} ${year}`;
  };
  const clock = (it) => `${two(it.getUTCHours())}:${two(it.getUTCMinutes())}:${two(it.getUTCSeconds())}`;
  const time = (it) => `${clock(it)} GMT+0000 (UTC)`;
  const localDay = (it) => `${it.getUTCMonth() + 1}/${it.getUTCDate()}/${it.getUTCFullYear()}`;
  const localTime = (it) => {
    const hour = it.getUTCHours();
    return `${hour % 12 || 12}${clock(it).slice(2)} ${hour < 12 ? 'AM' : 'PM'}`;
  };
  shown('toString', (it) => `${day(it)} ${time(it)}`);
  shown('toDateString', day);
  shown('toTimeString', time);
  shown('toLocaleString', (it) => `${localDay(it)}, ${localTime(it)}`);
  shown('toLocaleDateString', localDay);
  shown('toLocaleTimeString', localTime);

  // The engine looks for its limits at calls and jumps, not within these.
  const mostItems = 5_000_000;
  const mostComparisons = 200_000_000;
  const tooMuch = (what) => { throw new RangeError(`too much work for one call: ${what}`); };
  const checked = (target, name, check) => {
    const real = target[name];
    hide(target, name, { [name]() {
      check(this, arguments);
      return apply(real, this, arguments);
    } }[name]);
    defineProperty(target[name], 'length', { value: real.length, configurable: true });
  };
  const checkLength = (it) => {
    if (it !== null && it !== undefined && it.length > mostItems) tooMuch(`${it.length} items`);
  };
  const arrays = Array.prototype;
  for (const name of ['join', 'toLocaleString', 'sort', 'toSorted', 'reverse', 'toReversed', 'slice', 'splice',
    'toSpliced', 'shift', 'unshift', 'copyWithin', 'fill', 'with']) {
    checked(arrays, name, checkLength);
  }
  checked(arrays, 'concat', (it, others) => {
    checkLength(it);
    for (let at = 0; at < others.length; at++) if (typeof others[at] === 'object') checkLength(others[at]);
  });
  const { isArray } = Array;
  const push = arrays.push;
  const flatten = (into, from, depth) => {
    checkLength(from);
    for (let at = 0; at < from.length; at++) {
      if (!(at in from)) continue;
      const item = from[at];
      if (depth >= 1 && isArray(item)) flatten(into, item, depth - 1);
      else apply(push, into, [item]);
    }
    return into;
  };
  hide(arrays, 'flat', { flat(depth = 1) { return flatten([], this, Number(depth) || 0); } }.flat);
  const map = arrays.map;
  hide(arrays, 'flatMap', { flatMap(each, self) { return flatten([], apply(map, this, [each, self]), 1); } }.flatMap);
  const raw = String.raw;
  hide(String, 'raw', { raw(strings, ...values) {
    checkLength(strings.raw);
    return apply(raw, String, [strings, ...values]);
  } }.raw);
  const texts = String.prototype;
  const checkSearch = (it, given) => {
    const sought = given[0];
    if (typeof sought !== 'string' || sought.length < 64 || it === null || it === undefined) return;
    const work = sought.length * it.length;
    if (work > mostComparisons) tooMuch(`looking for ${sought.length} characters in ${it.length}`);
  };
  for (const name of ['indexOf', 'lastIndexOf', 'includes', 'split', 'replace', 'replaceAll']) {
    checked(texts, name, checkSearch);
  }

  // What scripts print goes nowhere.
  const silent = {};
  for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace', 'table', 'dir', 'assert']) {
    hide(silent, name, { [name]() {} }[name]);
  }
  hide(world, 'console', silent);

  // A frozen prototype would keep objects from having such a property of their own by assignment.
  const assignable = (target, names) => {
    for (const name of names) {
      const found = getOwnPropertyDescriptor(target, name);
      if (!found || !('value' in found) || !found.configurable) continue;
      const { value } = found;
      defineProperty(target, name, {
        get() { return value; },
        set(own) {
          if (this === target) throw new TypeError(`\`${name}\` of a builtin cannot be changed`);
          defineProperty(this, name, { value: own, writable: true, enumerable: true, configurable: true });
        },
        enumerable: false,
        configurable: false,
      });
    }
  };
  assignable(objectPrototype, ['constructor', 'toString', 'toLocaleString', 'valueOf', 'hasOwnProperty',
    'isPrototypeOf', 'propertyIsEnumerable']);
  assignable(Function.prototype, ['toString', 'bind', 'call', 'apply']);
  assignable(arrays, ['toString', 'constructor']);
  for (const kind of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError]) {
    assignable(kind.prototype, ['name', 'message', 'toString', 'constructor']);
  }

  const seen = new Set();
  const freezeAll = (value) => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return;
    seen.add(value);
    if (value !== world) freeze(value);
    freezeAll(getPrototypeOf(value));
    for (const key of ownKeys(value)) {
      const found = getOwnPropertyDescriptor(value, key);
      if (value === world && key !== 'globalThis') defineProperty(world, key, { ...found, ...('value' in found && { writable: false }), configurable: false });
      freezeAll(found.value);
      freezeAll(found.get);
      freezeAll(found.set);
    }
  };
  freezeAll(world);
  defineProperty(world, 'globalThis', { writable: false, configurable: false });
  // What only syntax leads to.
  const iterators = [[][Symbol.iterator](), ''[Symbol.iterator](), new Map().keys(), new Set().keys(),
    'a'.matchAll(/a/g), Iterator.from({ next() {} }), [].values().map((it) => it)];
  for (const it of [function* () {}, async function () {}, async function* () {}, ...iterators]) {
    freezeAll(getPrototypeOf(it));
  }
  freezeAll(getPrototypeOf((async function* () {})()));
  freezeAll(getPrototypeOf((function* () {})()));

  const builtin = new Set(ownKeys(world));
  return {
    // Takes away the globals that a script made; false if the world is no longer as it was.
    clean() {
      if (!isExtensible(world) || getPrototypeOf(world) !== objectPrototype) return false;
      const all = ownKeys(world);
      if (all.length === builtin.size) return true;
      return all.every((name) => builtin.has(name) || deleteProperty(world, name));
    },
    // Runs the files of a script afresh and gives the function that the first of them exports.
    load(factories, entry, wanted) {
      const modules = { __proto__: null };
      const require = (from) => (name) => {
        const path = `${name}`;
        if (!/^\.\.?\//.test(path)) {
          throw new Error(`cannot load \`${path}\`: scripts run without packages; use a scorer that runs in Node`);
        }
        const folder = from.split('/').slice(0, -1);
        for (const part of path.split('/')) {
          if (part === '..') {
            if (folder.length === 0) throw new Error(`cannot load \`${path}\`: it is outside the folder of the script`);
            folder.pop();
          } else if (part !== '.' && part !== '') folder.push(part);
        }
        const joined = folder.join('/');
        const found = [joined, `${joined}.js`, `${joined}.cjs`, `${joined}.mjs`, `${joined}.json`, `${joined}/index.js`]
          .find((it) => it in factories);
        if (found === undefined) throw new Error(`cannot load \`${path}\`: there is no such file in the folder of the script`);
        return run(found);
      };
      const run = (name) => {
        if (name in modules) return modules[name].exports;
        const module = { exports: {} };
        modules[name] = module;
        apply(factories[name], undefined, [module, module.exports, require(name)]);
        return module.exports;
      };
      const exported = run(entry);
      const chosen = wanted !== undefined ? exported?.[wanted] : typeof exported === 'function' ? exported : exported?.default;
      if (typeof chosen === 'function') return chosen;
      const what = wanted === undefined ? 'a function as `module.exports` or by default' : `a function \`${wanted}\``;
      throw new TypeError(`the file does not export ${what}`);
    },
  };
})()
