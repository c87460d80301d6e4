// People in a channel of Slack: the prompt is posted, and the answer is what is written after it.
import { bearer, wait } from './support.mjs';

export default async function ask(prompt, context, { config }) {
  const token = config.token ?? process.env.SLACK_BOT_TOKEN;
  if (!token) throw new Error('401: there is no token in SLACK_BOT_TOKEN');
  const call = (method, fields) => slack(config.apiBaseUrl ?? 'https://slack.com/api', method, fields, token);
  const { channel } = config;
  const posted = await call('chat.postMessage', { channel, text: prompt, ...(config.threadTs ? { thread_ts: config.threadTs } : {}) });
  const until = Date.now() + (config.timeout ?? 60_000);
  const strategy = config.responseStrategy ?? 'first';
  const isAnswer = ({ ts, type, bot_id: bot, user }) =>
    ts !== posted.ts && type === 'message' && (strategy === 'user' ? user === config.waitForUser : !bot);
  let answers = [];
  while (Date.now() < until) {
    const { messages = [] } = await call('conversations.history', { channel, oldest: posted.ts, limit: 50 });
    answers = messages.filter(isAnswer).sort((one, other) => Number(one.ts) - Number(other.ts)).map((it) => it.text);
    if (strategy !== 'timeout' && answers.length) return { output: answers[0] };
    await wait(Math.min(1000, config.timeout ?? 1000));
  }
  return answers.length ? { output: answers.join('\n\n') } : { error: 'timeout: nobody has answered' };
}

async function slack(base, method, fields, token) {
  const response = await fetch(`${base}/${method}`, { method: 'POST', headers: bearer(token), body: new URLSearchParams(fields) });
  const answer = await response.json();
  if (!answer.ok) throw new Error(`${response.status}: ${answer.error}`);
  return answer;
}
