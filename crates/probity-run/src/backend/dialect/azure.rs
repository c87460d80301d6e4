//! Azure OpenAI: chat completions of a deployment, whose name stands in the address.

use super::{DialectSpec, KeyHeader, openai};

pub(super) const SPEC: DialectSpec = DialectSpec {
    key_header: KeyHeader::Named("api-key"),
    // The latest version that is no preview.
    parameter: Some(("api-version", "2024-10-21")),
    endpoint: |base, deployment| {
        format!("{}/openai/deployments/{deployment}/chat/completions", resource(base))
    },
    models: |base| format!("{}/openai/models", resource(base)),
    // It lists models, and a deployment has a name of its own.
    bare_model: |_| "",
    ..openai::SPEC
};

/// The address of a resource: people copy that of a deployment, too.
pub(super) fn resource(base: &str) -> &str {
    base.split("/openai/").next().unwrap_or(base).trim_end_matches("/openai")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::dialect::addresses;

    #[test]
    fn the_deployment_is_part_of_the_address() {
        let home = "https://me.openai.azure.com";
        let check = |base: &str, version: &str| {
            let (endpoint, models) = addresses(&SPEC, base, "mine");
            assert_eq!(
                endpoint,
                format!("{home}/openai/deployments/mine/chat/completions?api-version={version}")
            );
            assert_eq!(models, format!("{home}/openai/models?api-version={version}"));
        };
        check(home, "2024-10-21");
        check(&format!("{home}/openai"), "2024-10-21");
        check(&format!("{home}/?api-version=2025-01-01-preview"), "2025-01-01-preview");
        let copied = "openai/deployments/other/chat/completions?api-version=2024-06-01";
        check(&format!("{home}/{copied}"), "2024-06-01");
    }
}
