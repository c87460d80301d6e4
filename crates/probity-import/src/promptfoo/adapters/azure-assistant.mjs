// An assistant of Azure OpenAI: a thread of its own for each question, functions answered as `functionToolCallbacks` say.
import { fetchJson, load, wait } from './support.mjs';

const RUN_FIELDS = ['temperature', 'top_p', 'tool_resources', 'tool_choice', 'tools', 'instructions'];
const LONGEST_MS = 300_000;

export default async function ask(prompt, context, { config }) {
  const host = config.apiBaseUrl ?? `https://${config.apiHost ?? process.env.AZURE_API_HOST}`;
  const version = config.apiVersion ?? '2024-04-01-preview';
  const key = config.apiKey ?? process.env.AZURE_API_KEY ?? process.env.AZURE_OPENAI_API_KEY;
  if (!key) throw new Error('401: there is no key in AZURE_API_KEY');
  const call = (place, body) =>
    fetchJson(`${host.replace(/\/$/, '')}/openai/threads${place}?api-version=${version}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'api-key': key },
      body,
    });
  const thread = await call('', {});
  await call(`/${thread.id}/messages`, { role: 'user', content: prompt });
  const fields = RUN_FIELDS.filter((it) => config[it] !== undefined).map((it) => [it, config[it]]);
  if (config.modelName) fields.push(['model', config.modelName]);
  const begun = await call(`/${thread.id}/runs`, { assistant_id: config.assistant, ...Object.fromEntries(fields) });
  const place = `/${thread.id}/runs/${begun.id}`;
  const until = Date.now() + (config.maxPollTimeMs ?? LONGEST_MS);
  let run = begun;
  while (['queued', 'in_progress', 'cancelling', 'requires_action'].includes(run.status)) {
    if (Date.now() > until) return { error: `timeout: the run is still ${run.status}` };
    if (run.status === 'requires_action') {
      const calls = run.required_action?.submit_tool_outputs?.tool_calls ?? [];
      await call(`${place}/submit_tool_outputs`, { tool_outputs: await Promise.all(calls.map((it) => output(it, config))) });
    } else {
      await wait(config.pollMs ?? 1000);
    }
    run = await call(place);
  }
  if (run.status !== 'completed') {
    const { code = '', message = '' } = run.last_error ?? {};
    return { error: `the run is ${run.status}: ${code} ${message}`.trim() };
  }
  const messages = (await call(`/${thread.id}/messages`)).data;
  const steps = (await call(`${place}/steps`)).data;
  return { output: told(messages, steps) };
}

async function output({ id, function: { name, arguments: args } = {} }, config) {
  const code = config.functionToolCallbacks?.[name];
  if (!code) return { tool_call_id: id, output: JSON.stringify({ message: `No callback registered for function ${name}` }) };
  const made = await (await load(code, ['args']))(args);
  return { tool_call_id: id, output: typeof made === 'string' ? made : JSON.stringify(made ?? null) };
}

// The thread as a text, with what tools did before the first answer.
function told(messages, steps) {
  const inOrder = [...(messages ?? [])].sort((one, other) => one.created_at - other.created_at);
  const text = ({ content }) =>
    content.map((it) => (it.type === 'text' ? it.text.value : `<${it.type} output>`)).join('\n');
  const asked = inOrder.find((it) => it.role === 'user');
  const calls = (steps ?? []).flatMap((it) => it.step_details?.tool_calls ?? []).flatMap(done);
  const answers = inOrder.filter((it) => it.role === 'assistant').map((it) => `[Assistant] ${text(it)}`);
  return [...(asked ? [`[User] ${text(asked)}`] : []), ...calls, ...answers].join('\n\n').trim();
}

function done(call) {
  switch (call.type) {
    case 'function': {
      const { name, arguments: args, output: made } = call.function;
      return [`[Call function ${name} with arguments ${args}]`, ...(made ? [`[Function output: ${made}]`] : [])];
    }
    case 'code_interpreter': {
      const logs = (call.code_interpreter.outputs ?? []).map((it) => (it.type === 'logs' ? it.logs : `<${it.type} output>`));
      return ['[Code interpreter input]', call.code_interpreter.input || '[No input]', '[Code interpreter output]', logs.join('\n') || '[No output]'];
    }
    case 'file_search':
      return ['[Ran file search]', `[File search details: ${JSON.stringify(call.file_search)}]`];
    default:
      return [`[Unknown tool call type: ${call.type}]`];
  }
}
