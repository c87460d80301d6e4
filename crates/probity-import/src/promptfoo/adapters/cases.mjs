// Cases whose variables code makes: `transformVars`, and values that functions return.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { load } from './support.mjs';

const run = promisify(execFile);
const CALL = `import importlib.util, json, sys
file, name, args = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spec = importlib.util.spec_from_file_location("made", file)
module = importlib.util.module_from_spec(spec)
sys.path.insert(0, __import__("os").path.dirname(file))
spec.loader.exec_module(module)
print("\\n" + json.dumps(getattr(module, name)(*args)))`;

export default async function cases({ cases: all, shared = {}, prompt = '', transform, transforms = {} }) {
  const lines = fs.readFileSync(all, 'utf8').split('\n').filter((it) => it.trim() && !it.startsWith('#'));
  const made = [];
  for (const written of lines.map((it) => JSON.parse(it))) {
    let vars = { ...shared, ...written.prompt_vars };
    for (const [name, value] of Object.entries(vars)) {
      if (typeof value?.function === 'string') vars[name] = await valued(value.function, name, prompt, vars);
    }
    const code = transforms[written.id] ?? transform;
    if (code) vars = { ...vars, ...(await (await load(code, ['vars', 'context']))(vars, { uuid: written.id, prompt: { raw: prompt } })) };
    made.push({ ...written, prompt_vars: vars });
  }
  return made;
}

// What a function in Python or JavaScript says that a variable is.
async function valued(named, name, prompt, vars) {
  const [, file, called] = /^(.*\.\w+)(?::(\w+))?$/.exec(named);
  const others = Object.fromEntries(Object.entries(vars).filter(([, it]) => typeof it?.function !== 'string'));
  const args = [name, prompt, others];
  const made = file.endsWith('.py')
    ? JSON.parse((await run('python3', ['-c', CALL, path.resolve(file), called ?? 'get_var', JSON.stringify(args)])).stdout.trim().split('\n').pop())
    : await (await load(`file://${named}`))(...args);
  if (made?.error) throw new Error(`${named}: ${made.error}`);
  if (made?.output === undefined) throw new Error(`${named} returned no output`);
  return made.output;
}
