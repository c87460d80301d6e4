//! Any prompt, any expectation.

use super::KindSpec;

pub(super) const SPEC: KindSpec = KindSpec::PLAIN;
