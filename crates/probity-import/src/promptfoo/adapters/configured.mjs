// A provider of your own whose settings are made by functions.
import { call, load } from './support.mjs';

// The key of a value that a function makes.
const FUNCTION = 'probity:function';

let made = null;

export default async function ask(prompt, context, { id, config }) {
  made ??= valued(config.config);
  const options = { id, config: await made };
  if (/\.py(:\w+)?$/.test(config.provider)) return call(config.provider, 'call_api', [prompt, options, context]);
  const provider = await load(`file://${config.provider}`);
  return provider.prototype?.callApi ? new provider(options).callApi(prompt, context) : provider(prompt, context, options);
}

// A value with what its functions return in their places.
async function valued(value) {
  if (Array.isArray(value)) return Promise.all(value.map(valued));
  if (value === null || typeof value !== 'object') return value;
  if (typeof value[FUNCTION] === 'string') return call(value[FUNCTION], 'get_config', []);
  const pairs = await Promise.all(Object.entries(value).map(async ([key, it]) => [key, await valued(it)]));
  return Object.fromEntries(pairs);
}
