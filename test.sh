#!/usr/bin/env bash
# Runs what has to pass, the cheap checks first, and installs what that needs.
#
#   ./test.sh          everything: format, lints, all tests, docs, a browser, a real model
#   ./test.sh quick    format, lints and all tests: minutes, for the time between two changes
#
# On a fresh Debian-like machine it needs Rust only. What cannot be installed is a failure.
set -euo pipefail
cd "$(dirname "$0")"

usage() { printf 'usage: ./test.sh [quick]\n' >&2; exit 2; }
case $# in
  0) quick=false ;;
  1) [ "$1" = quick ] || usage; quick=true ;;
  *) usage ;;
esac

# Minutes and seconds since the beginning say which step takes long.
step() { printf '\n== %s (after %d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

if ! command -v cc >/dev/null; then
  step 'installing a linker'
  as_root apt-get update -qq
  as_root apt-get install -y -qq gcc libc6-dev
fi
if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
  step 'installing rustfmt and clippy'
  rustup component add rustfmt clippy
fi
if ! cargo nextest --version >/dev/null 2>&1; then
  step 'installing cargo-nextest'
  cargo install cargo-nextest --locked
fi
# Scorers are tested in both.
if ! command -v python3 >/dev/null || ! command -v node >/dev/null; then
  step 'installing Python and Node'
  as_root apt-get update -qq
  as_root apt-get install -y -qq python3 nodejs
fi
# A campaign lets the clock jump.
if [ $quick = false ] && ! command -v faketime >/dev/null; then
  step 'installing a clock that jumps'
  as_root apt-get update -qq
  as_root apt-get install -y -qq faketime
fi
# Workers are tested with a real NATS server.
if ! command -v nats-server >/dev/null; then
  step 'installing a NATS server'
  as_root apt-get update -qq
  as_root apt-get install -y -qq nats-server
fi
# What the browser checks pages with comes from npm.
if [ $quick = false ] && ! command -v npm >/dev/null; then
  step 'installing npm'
  as_root apt-get update -qq
  as_root apt-get install -y -qq npm
fi
# The browser and the model are driven by Python.
if [ $quick = false ] && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  step 'installing Python'
  as_root apt-get update -qq
  as_root apt-get install -y -qq python3 python3-venv
fi

step 'format'
cargo fmt --all --check
step 'lock file of the fuzz targets'
cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
step 'lints'
cargo clippy --workspace --all-targets --locked --features probity/parquet -- -D warnings
step 'tests'
if [ $quick = true ]; then
  exec cargo nextest run --workspace --locked --features probity/parquet --profile ci
fi
mkdir -p target
summary=$(mktemp target/tests.XXXXXX)
trap 'rm -f "$summary"' EXIT
# Without colours, so that the summary can be found again.
cargo nextest run --workspace --locked --features probity/parquet --profile ci --color never 2>&1 | tee "$summary"
step 'campaigns, a few shots of each'
probity=$(scripts/debug-build)
"${probity%/*}/probity-bench" campaign all --short
step 'doc tests'
cargo test --workspace --doc --locked --quiet --features probity/parquet
step 'docs'
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked --quiet
step 'report in a browser'
scripts/report-browser-test
step 'site in a browser'
scripts/view-browser-test
step 'documentation in a browser'
scripts/docs-site
step 'packages, installed and used'
scripts/package-test quick
step 'hooks and editors'
scripts/integrations-test
step 'answers to programs'
scripts/view-api-test
step 'tables in other programs'
scripts/tables-test
step 'Python package'
scripts/python-test
step 'spans and metrics in other programs'
scripts/otlp-test
step 'real model'
scripts/real-model-test
step 'Claude Code with a real model, in the sandbox'
scripts/real-model-test --claude
step 'real model in the process'
scripts/embedded-test

# Once more at the end, where people and machines look for it.
step 'all of it passed; the tests were'
sed -n '/^ *Summary \[/,$p' "$summary" | grep .
