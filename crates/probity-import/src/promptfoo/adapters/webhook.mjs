// What a service of your own says of a reply.
import { fetchJson, fill } from './support.mjs';

export default async function score(output, { prompt, vars, config }) {
  const made = await fetchJson(fill(config.url, { ...vars, env: process.env }), { body: { output, context: { prompt, vars } } });
  return { pass: made.pass, score: made.score, reason: made.reason };
}
