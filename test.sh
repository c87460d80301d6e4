#!/usr/bin/env bash
# Installs what the tests need, then runs everything that has to pass:
# format, lints, all tests, doc tests, docs, and a real model. On a fresh machine it needs Rust only.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$1"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

if ! command -v cc >/dev/null; then
  step 'installing a linker'
  as_root apt-get update -qq
  as_root apt-get install -y -qq gcc libc6-dev
fi
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  step 'installing Python'
  as_root apt-get update -qq
  as_root apt-get install -y -qq python3 python3-venv
fi
if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
  step 'installing rustfmt and clippy'
  rustup component add rustfmt clippy
fi
if ! cargo nextest --version >/dev/null 2>&1; then
  step 'installing cargo-nextest'
  cargo install cargo-nextest --locked
fi

step 'format'
cargo fmt --all --check
step 'lints'
cargo clippy --workspace --all-targets --locked -- -D warnings
step 'docs'
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked --quiet
step 'doc tests'
cargo test --workspace --doc --locked --quiet
step 'real model'
scripts/real-model-test
step 'report in a browser'
scripts/report-browser-test
step 'tests'
cargo nextest run --workspace --locked --profile ci
