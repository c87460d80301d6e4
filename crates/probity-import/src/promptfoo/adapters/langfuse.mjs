// A prompt that is kept at Langfuse.
import { fetchJson, fill } from './support.mjs';

let kept;

export default async function prompt({ vars }) {
  kept ??= fetched();
  const said = await kept;
  if (typeof said === 'string') return fill(said, vars);
  return said.filter((it) => it.role).map(({ role, content }) => ({ role, content: fill(content, vars) }));
}

async function fetched() {
  const { LANGFUSE_PUBLIC_KEY: open, LANGFUSE_SECRET_KEY: secret, LANGFUSE_HOST: host } = process.env;
  if (!open || !secret) throw new Error('there are no keys in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY');
  const { name, ...which } = PROMPT;
  const query = new URLSearchParams(which);
  const base = (host ?? 'https://cloud.langfuse.com').replace(/\/$/, '');
  const found = await fetchJson(`${base}/api/public/v2/prompts/${encodeURIComponent(name)}?${query}`, {
    method: 'GET',
    headers: { authorization: `Basic ${Buffer.from(`${open}:${secret}`).toString('base64')}` },
  });
  return found.prompt;
}
