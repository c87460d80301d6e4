// How near a reply is to a text, for those whom no backend can ask: Hugging Face's sentence similarity, SageMaker, models
// within Node, and providers of your own.
import { bearer, fetchJson, fill, installed, load } from './support.mjs';

export default async function score(output, { vars, prompt, config }) {
  const values = { ...vars, prompt: vars.prompt ?? '' };
  const expected = [config.expected].flat().map((it) => fill(it, values));
  const near = [];
  for (const text of expected) near.push(await nearness(text, String(output), config, prompt));
  const best = Math.max(...near);
  const least = config.threshold ?? 0.75;
  return { pass: best >= least - Number.EPSILON, score: best, reason: `similarity ${best.toFixed(2)}, and ${least} is asked for` };
}

async function nearness(expected, output, { provider, options = {} }) {
  const [service, task, ...model] = provider.split(':');
  const name = model.join(':');
  if (service === 'huggingface' && task === 'sentence-similarity') return byHuggingFace(name, expected, output, options);
  const embed =
    service === 'sagemaker' ? await bySageMaker(name, options)
    : service === 'transformers' ? await byTransformers(name, options)
    : await byOwn(provider, options);
  return cosine(await embed(expected), await embed(output));
}

async function byHuggingFace(model, expected, output, { apiEndpoint, use_cache, wait_for_model }) {
  const answer = await fetchJson(apiEndpoint ?? `https://router.huggingface.co/hf-inference/models/${model}`, {
    headers: bearer(process.env.HF_TOKEN ?? process.env.HF_API_TOKEN),
    body: { inputs: { source_sentence: expected, sentences: [output] }, options: { use_cache, wait_for_model } },
  });
  if (!Array.isArray(answer)) throw new Error(answer.error ?? 'there is no similarity');
  return answer[0];
}

// Needs the package @aws-sdk/client-sagemaker-runtime, which finds the credentials.
async function bySageMaker(endpoint, { region = process.env.AWS_REGION ?? 'us-east-1', transform, responseFormat, contentType, acceptType }) {
  const { InvokeEndpointCommand, SageMakerRuntimeClient } = await installed('@aws-sdk/client-sagemaker-runtime');
  const client = new SageMakerRuntimeClient({ region });
  const change = transform ? await load(transform, ['prompt', 'context']) : (text) => text;
  const find = responseFormat?.path ? await load(responseFormat.path, ['json']) : (json) => json.embedding ?? json[0] ?? json.data?.[0]?.embedding ?? json;
  return async (text) => {
    const made = await client.send(new InvokeEndpointCommand({
      EndpointName: endpoint,
      ContentType: contentType ?? 'application/json',
      Accept: acceptType ?? 'application/json',
      Body: JSON.stringify({ input: await change(text, {}) }),
    }));
    return find(JSON.parse(Buffer.from(made.Body).toString())).flat(Infinity);
  };
}

const pipelines = new Map();

// Needs the package @huggingface/transformers.
async function byTransformers(model, { pooling = 'mean', normalize = true, prefix = '', ...options }) {
  if (!pipelines.has(model)) {
    const { pipeline } = await installed('@huggingface/transformers');
    pipelines.set(model, pipeline('feature-extraction', model, options));
  }
  const made = await pipelines.get(model);
  return async (text) => Array.from((await made(`${prefix}${text}`, { pooling, normalize })).data);
}

async function byOwn(file, options) {
  const made = await load(file);
  const own = made.prototype?.callEmbeddingApi ? new made({ config: options }) : made;
  return async (text) => {
    const { embedding, error } = await own.callEmbeddingApi(text);
    if (!embedding) throw new Error(error ?? 'there is no embedding');
    return embedding;
  };
}

function cosine(one, other) {
  if (one.length !== other.length) throw new Error('the embeddings have different lengths');
  const dot = (a, b) => a.reduce((sum, it, at) => sum + it * b[at], 0);
  return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other)) || 0;
}
