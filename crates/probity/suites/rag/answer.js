// SPDX-License-Identifier: MIT OR Apache-2.0
// What the judge gets to see: the answer without its tags and citations.
module.exports = (output) =>
  (/<answer>([\s\S]*)<\/answer>/.exec(output)?.[1] ?? output).replace(/\s*\[[\d,\s]+\]/g, "").trim();
