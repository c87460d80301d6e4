// Text generation of IBM watsonx.ai, with an API key or a token.
import { bearer, fetchJson } from './support.mjs';

const PARAMETERS = {
  minNewTokens: 'min_new_tokens',
  decodingMethod: 'decoding_method',
  randomSeed: 'random_seed',
  stopSequences: 'stop_sequences',
  temperature: 'temperature',
  timeLimit: 'time_limit',
  topK: 'top_k',
  topP: 'top_p',
  repetitionPenalty: 'repetition_penalty',
  truncateInputTokens: 'truncate_input_tokens',
};

let known = null;

export default async function ask(prompt, context, { config }) {
  const parameters = { max_new_tokens: config.maxNewTokens ?? 100 };
  for (const [ours, theirs] of Object.entries(PARAMETERS)) {
    if (config[ours] !== undefined) parameters[theirs] = config[ours];
  }
  const service = config.serviceUrl ?? 'https://us-south.ml.cloud.ibm.com';
  const answer = await fetchJson(`${service}/ml/v1/text/generation?version=${config.version ?? '2023-05-29'}`, {
    headers: bearer(await token(config)),
    body: {
      input: prompt,
      model_id: config.model,
      project_id: config.projectId ?? process.env.WATSONX_AI_PROJECT_ID,
      parameters,
    },
  });
  const [made] = answer.results ?? [];
  if (!made) return { error: `no results: ${JSON.stringify(answer).slice(0, 500)}` };
  return {
    output: made.generated_text,
    finishReason: made.stop_reason,
    tokenUsage: { prompt: made.input_token_count, completion: made.generated_token_count },
  };
}

// A token, which an API key is exchanged for. It is kept until a minute before it ends.
async function token(config) {
  const key = config.apiKey ?? process.env.WATSONX_AI_APIKEY;
  const own = config.apiBearerToken ?? process.env.WATSONX_AI_BEARER_TOKEN;
  if (!key || (process.env.WATSONX_AI_AUTH_TYPE === 'bearertoken' && own)) return own;
  if (!known || known.until < Date.now()) {
    const response = await fetch(`${config.iamUrl ?? 'https://iam.cloud.ibm.com'}/identity/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'urn:ibm:params:oauth:grant-type:apikey', apikey: key }),
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}: the key gives no token`);
    const { access_token: text, expires_in: seconds } = await response.json();
    known = { text, until: Date.now() + (seconds - 60) * 1000 };
  }
  return known.text;
}
