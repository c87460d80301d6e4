// A prompt with filters of your own.
import { load, valueOf, written } from './support.mjs';

export default async function prompt({ vars }) {
  const filters = {};
  for (const [name, file] of Object.entries(PROMPT.filters)) filters[name] = await load(file);
  return PROMPT.template.replace(/\{\{-?\s*([\w.$]+)\s*((?:\|\s*\w+\s*)*)-?\}\}/g, (_, name, chain) => {
    const names = chain.split('|').map((it) => it.trim()).filter(Boolean);
    return written(names.reduce((value, it) => filters[it](value), valueOf(name, vars) ?? ''));
  });
}
