// A prompt that is kept at Langfuse.
import { fetchJson, fill } from './support.mjs';

export default async function prompt({ vars }) {
  const { LANGFUSE_PUBLIC_KEY: open, LANGFUSE_SECRET_KEY: secret, LANGFUSE_HOST: host } = process.env;
  if (!open || !secret) throw new Error('there are no keys in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY');
  const { name, ...which } = PROMPT;
  const query = new URLSearchParams(which);
  const base = (host ?? 'https://cloud.langfuse.com').replace(/\/$/, '');
  const found = await fetchJson(`${base}/api/public/v2/prompts/${encodeURIComponent(name)}?${query}`, {
    method: 'GET',
    headers: { authorization: `Basic ${Buffer.from(`${open}:${secret}`).toString('base64')}` },
  });
  if (typeof found.prompt === 'string') return fill(found.prompt, vars);
  return found.prompt.filter((it) => it.role).map(({ role, content }) => ({ role, content: fill(content, vars) }));
}
