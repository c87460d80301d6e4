// A model that Transformers.js runs. Needs the package @huggingface/transformers.
import { installed } from './support.mjs';

const GENERATION = {
  maxNewTokens: 'max_new_tokens',
  temperature: 'temperature',
  topK: 'top_k',
  topP: 'top_p',
  doSample: 'do_sample',
  repetitionPenalty: 'repetition_penalty',
  noRepeatNgramSize: 'no_repeat_ngram_size',
  numBeams: 'num_beams',
};

let loaded = null;

export default async function ask(prompt, context, { config }) {
  const { task, model, returnFullText = false, device, dtype, cacheDir, localFilesOnly } = config;
  const { pipeline, env } = await installed('@huggingface/transformers');
  if (cacheDir) env.cacheDir = cacheDir;
  loaded ??= pipeline(task, model, { device, dtype, local_files_only: localFilesOnly });
  const settings = Object.entries(GENERATION).filter(([ours]) => config[ours] !== undefined).map(([ours, theirs]) => [theirs, config[ours]]);
  const made = await (await loaded)(chat(prompt), { return_full_text: returnFullText, ...Object.fromEntries(settings) });
  const text = [made].flat()[0]?.generated_text;
  return { output: Array.isArray(text) ? text.at(-1).content : text };
}

// Messages, if the prompt is a list of them.
function chat(prompt) {
  try {
    const messages = JSON.parse(prompt);
    if (Array.isArray(messages) && messages.every((it) => it.role)) return messages;
  } catch {
    // It is a text.
  }
  return prompt;
}
