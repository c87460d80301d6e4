// Cases whose variables code makes: `transformVars`, and values that functions return.
import fs from 'node:fs';
import { call, load } from './support.mjs';

// The key of a value that a function makes.
const FUNCTION = 'probity:function';

export default async function cases({ cases: all, shared = {}, prompt = '', transform }) {
  const lines = fs.readFileSync(all, 'utf8').split('\n').filter((it) => it.trim() && !it.startsWith('#'));
  const made = [];
  for (const written of lines.map((it) => JSON.parse(it))) {
    let vars = { ...shared, ...written.prompt_vars };
    for (const [name, value] of Object.entries(vars)) {
      if (typeof value?.[FUNCTION] === 'string') vars[name] = await valued(value[FUNCTION], name, prompt, vars);
    }
    if (transform) vars = { ...vars, ...(await (await load(transform, ['vars', 'context']))(vars, { uuid: written.id, prompt: { raw: prompt } })) };
    made.push({ ...written, prompt_vars: vars });
  }
  return made;
}

// What a function in Python or JavaScript says that a variable is.
async function valued(named, name, prompt, vars) {
  const others = Object.fromEntries(Object.entries(vars).filter(([, it]) => typeof it?.[FUNCTION] !== 'string'));
  const made = await call(named, 'get_var', [name, prompt, others]);
  if (made?.error) throw new Error(`${named}: ${made.error}`);
  if (made?.output === undefined) throw new Error(`${named} returned no output`);
  return made.output;
}
