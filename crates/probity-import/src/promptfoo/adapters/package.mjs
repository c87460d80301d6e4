// A provider in a package that is installed for the suite.
import { installed } from './support.mjs';

let provider = null;

export default async function ask(prompt, context, { id, config }) {
  provider ??= await made(id, config);
  return typeof provider === 'function' ? provider(prompt, context) : provider.callApi(prompt, context);
}

async function made(id, { package: name, export: path, config }) {
  const module = await installed(name);
  const found = path.split('.').reduce((table, key) => table?.[key], { ...module.default, ...module });
  if (typeof found !== 'function') throw new Error(`${name} exports no ${path}`);
  return found.prototype?.callApi ? new found({ id, config: config ?? {} }) : found;
}
