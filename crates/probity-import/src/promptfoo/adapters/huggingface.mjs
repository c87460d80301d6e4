// Rows of a dataset of Hugging Face as tests, from the hub's public API. HF_TOKEN is sent if it is set.
import { bearer, wait } from './support.mjs';

const SERVER = 'https://datasets-server.huggingface.co';
const LONGEST_PAGE = 100;
const MOST_TRIES = 5;

export default async function tests({ dataset, split = 'test', config = 'default', limit, server = SERVER }) {
  const rows = [];
  let page = LONGEST_PAGE;
  let total = Infinity;
  while (rows.length < Math.min(limit ?? Infinity, total)) {
    const length = Math.min(page, (limit ?? Infinity) - rows.length, total - rows.length);
    const query = new URLSearchParams({ dataset, config, split, offset: rows.length, length });
    const { status, answer } = await fetched(`${server}/rows?${query}`);
    // Rows may be too large to come in one page.
    if (status === 422 && page > 1) {
      page = Math.floor(page / 2);
      continue;
    }
    if (status !== 200) throw new Error(`HTTP ${status}: ${answer?.error ?? 'no rows'} (${dataset}, ${config}, ${split})`);
    total = answer.num_rows_total ?? rows.length + answer.rows.length;
    if (!answer.rows.length && rows.length < total) throw new Error(`there are no rows from ${rows.length} on`);
    rows.push(...answer.rows.map((it) => it.row));
  }
  return rows.map((row) => ({ vars: row, options: { disableVarExpansion: true } }));
}

async function fetched(url) {
  const token = process.env.HF_TOKEN ?? process.env.HF_API_TOKEN ?? process.env.HUGGING_FACE_HUB_TOKEN;
  for (let left = MOST_TRIES; ; left -= 1) {
    const response = await fetch(url, { headers: bearer(token) });
    const isBusy = response.status === 429 || response.status >= 500;
    if (isBusy && left > 1) {
      await wait(Number(response.headers.get('retry-after') ?? 1) * 1000);
      continue;
    }
    return { status: response.status, answer: await response.json().catch(() => null) };
  }
}
