// A reply that the test brings, so that nobody is asked.
export default async function given(prompt, { vars }) {
  return { output: vars.provider_output };
}
