#!/usr/bin/env node
// Starts the program, which is in the package of this platform.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { optionalDependencies } = require("../package.json");

const wanted = `probity-${process.platform}-${process.arch}`;

function refuse(reason, remedy) {
  process.stderr.write(`error: ${reason}\nhint: ${remedy}\n`);
  process.exit(2);
}

function find() {
  if (!(wanted in optionalDependencies)) {
    const there = Object.keys(optionalDependencies).map((it) => it.replace("probity-", "")).join(", ");
    refuse(`there is no package of Probity for ${process.platform}-${process.arch}`, `there are packages for ${there}`);
  }
  try {
    return require.resolve(`${wanted}/bin/probity`);
  } catch {
    return refuse(
      `the package ${wanted} is not installed`,
      "install again without `--omit=optional` (or `--no-optional`), on the platform that it is to run on",
    );
  }
}

const program = find();
const words = process.argv.slice(2);

// Newer versions of Node can become the program: signals, terminal and exit code are then its own.
if (typeof process.execve === "function") {
  try {
    process.execve(program, [program, ...words], process.env);
  } catch (error) {
    if (error.code !== "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM" && error.code !== "ERR_WORKER_UNSUPPORTED_OPERATION") {
      refuse(`${program} cannot be started: ${error.message}`, "install the package again");
    }
  }
}

const child = spawn(program, words, { stdio: "inherit" });
child.on("error", (error) => refuse(`${program} cannot be started: ${error.message}`, "install the package again"));

// A terminal sends Ctrl-C to the program as well. Sent on, it would be a second one, which ends a run without care.
const isFromTerminal = [0, 1, 2].some((it) => require("node:tty").isatty(it));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {
    if (signal === "SIGTERM" || !isFromTerminal) child.kill(signal);
  });
}
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
