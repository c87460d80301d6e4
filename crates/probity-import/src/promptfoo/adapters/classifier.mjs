// How sure a classifier is of a label, or of any.
import { bearer, fetchJson, load } from './support.mjs';

export default async function score(output, { config }) {
  const labels = await classified(String(output), config);
  const all = Object.values(labels);
  const sure = config.label === undefined ? Math.max(0, ...all) : (labels[config.label] ?? 0);
  const least = config.threshold ?? 1;
  const what = config.label ?? 'the most likely label';
  return { pass: sure >= least - Number.EPSILON, score: sure, reason: `${what} has ${sure.toFixed(2)}, and ${least} is asked for` };
}

async function classified(text, { provider, options = {} }) {
  if (provider.startsWith('file://')) {
    const made = await load(provider);
    const own = made.prototype?.callClassificationApi ? new made({ config: options }) : { callClassificationApi: made };
    const { classification, error } = await own.callClassificationApi(text);
    if (!classification) throw new Error(error ?? 'there is no classification');
    return classification;
  }
  const [, task, ...model] = provider.split(':');
  const isOfTokens = task.startsWith('token');
  const { apiEndpoint, aggregation_strategy: strategy = 'simple', use_cache = true, wait_for_model = false } = options;
  const answer = await fetchJson(apiEndpoint ?? `https://router.huggingface.co/hf-inference/models/${model.join(':')}`, {
    headers: bearer(process.env.HF_TOKEN ?? process.env.HF_API_TOKEN),
    body: isOfTokens
      ? { inputs: text, parameters: { aggregation_strategy: strategy }, options: { use_cache, wait_for_model } }
      : { inputs: text, parameters: {} },
  });
  if (answer.error) throw new Error(answer.error);
  const labels = {};
  for (const it of answer.flat()) {
    const label = it.entity_group ?? it.label;
    labels[label] = Math.max(labels[label] ?? 0, it.score);
  }
  return labels;
}
