// A program that prints the prompt. It is told the variables and the provider as JSON in its last argument.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export default async function prompt({ vars, provider }) {
  const [program, ...args] = COMMAND;
  const { stdout } = await run(program, [...args, JSON.stringify({ vars, provider, config: {} })], { maxBuffer: 8 << 20 });
  return stdout.trim();
}
