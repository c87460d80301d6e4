//! Which keys promptfoo reads where. It ignores all others, so that leaving them out loses nothing.

use probity_core::located::Node;

use super::{Context, providers};
use crate::note::At;

/// A table of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Configuration,
    /// `evaluateOptions` and `commandLineOptions`.
    Options,
    Prompt,
    /// The `config` of a prompt, which goes over the `config` of the provider.
    PromptConfig,
    Provider,
    /// The `config` of a provider that is a server with an API of its own.
    ServerConfig,
    /// The `config` of an `http` provider.
    HttpConfig,
    Scenario,
    Test,
    /// `options` of a test. What is not known there goes over the `config` of the provider.
    TestOptions,
    Assertion,
    AssertSet,
}

impl Table {
    /// Whose keys they are, in notes.
    const fn owner(self) -> &'static str {
        match self {
            Self::Configuration => "the configuration",
            Self::Options => "the options",
            Self::Prompt => "a prompt",
            Self::PromptConfig => "the `config` of a prompt",
            Self::Provider => "a provider",
            Self::ServerConfig => "the `config` of a provider",
            Self::HttpConfig => "the `config` of an `http` provider",
            Self::Scenario => "a scenario",
            Self::Test => "a test",
            Self::TestOptions => "the options of a test",
            Self::Assertion => "an assertion",
            Self::AssertSet => "an `assert-set`",
        }
    }

    /// The keys that promptfoo reads there.
    const fn known(self) -> &'static [&'static str] {
        match self {
            Self::Configuration => CONFIGURATION,
            Self::Options => OPTIONS,
            Self::Prompt => &["id", "raw", "label", "display", "template", "function", "config"],
            Self::PromptConfig => &[],
            Self::Provider => {
                &["id", "label", "config", "prompts", "transform", "delay", "env", "inputs"]
            }
            Self::ServerConfig => providers::READ,
            Self::HttpConfig => HTTP,
            Self::Scenario => &["description", "config", "tests"],
            Self::Test => TEST,
            Self::TestOptions => TEST_OPTIONS,
            Self::Assertion => ASSERTION,
            Self::AssertSet => &["type", "assert", "threshold", "weight", "metric", "config"],
        }
    }

    /// Whether keys of its own go to the provider.
    const fn reaches_provider(self) -> bool {
        matches!(self, Self::PromptConfig | Self::TestOptions)
    }

    fn reads(self, key: &str) -> bool {
        self.known().contains(&key)
            || (self.reaches_provider() || self == Self::ServerConfig) && providers::is_setting(key)
    }
}

const CONFIGURATION: &[&str] = &[
    "description",
    "tags",
    "providers",
    "targets",
    "prompts",
    "tests",
    "scenarios",
    "defaultTest",
    "outputPath",
    "sharing",
    "nunjucksFilters",
    "env",
    "derivedMetrics",
    "extensions",
    "metadata",
    "redteam",
    "writeLatestResults",
    "tracing",
    "evaluateOptions",
    "commandLineOptions",
];
const OPTIONS: &[&str] = &[
    "assertions",
    "cache",
    "config",
    "delay",
    "description",
    "envPath",
    "extension",
    "generateSuggestions",
    "grader",
    "interactiveProviders",
    "isRedteam",
    "maxConcurrency",
    "maxEvalTimeMs",
    "modelOutputs",
    "noShare",
    "output",
    "progressBar",
    "promptPrefix",
    "promptSuffix",
    "prompts",
    "providers",
    "repeat",
    "retryErrors",
    "share",
    "showProgressBar",
    "silent",
    "suggestionsCount",
    "table",
    "tableCellMaxLength",
    "tags",
    "tests",
    "timeoutMs",
    "var",
    "vars",
    "verbose",
    "watch",
    "write",
];
const TEST: &[&str] = &[
    "description",
    "vars",
    "provider",
    "providers",
    "prompts",
    "providerOutput",
    "assert",
    "assertScoringFunction",
    "options",
    "threshold",
    "metadata",
];
const TEST_OPTIONS: &[&str] = &[
    "prefix",
    "suffix",
    "postprocess",
    "transform",
    "transformVars",
    "storeOutputAs",
    "rubricPrompt",
    "provider",
    "factuality",
    "disableVarExpansion",
    "disableConversationVar",
    "disableDefaultAsserts",
    "runSerially",
    "repeat",
];
const ASSERTION: &[&str] = &[
    "type",
    "value",
    "config",
    "threshold",
    "weight",
    "provider",
    "rubricPrompt",
    "metric",
    "transform",
    "contextTransform",
    "alpha",
    "beta",
    "gamma",
];
const HTTP: &[&str] = &[
    "url",
    "method",
    "headers",
    "body",
    "request",
    "queryParams",
    "multipart",
    "tools",
    "tool_choice",
    "transformToolsFormat",
    "useHttps",
    "session",
    "sessionParser",
    "sessionSource",
    "stateful",
    "transformRequest",
    "transformResponse",
    "responseParser",
    "validateStatus",
    "tokenEstimation",
    "maxRetries",
    "auth",
    "signatureAuth",
    "tls",
    "timeout",
    "inputs",
];

/// Keys that are often written, and what was probably meant.
const MEANT: &[(Table, &str, &str)] = &[
    (Table::Configuration, "output", "`outputPath`"),
    (Table::Configuration, "envPath", "`commandLineOptions.envPath`"),
    (Table::Options, "timeout", "`timeoutMs`"),
    (Table::Options, "concurrency", "`maxConcurrency`"),
    (Table::Test, "assertions", "`assert`"),
    (Table::Test, "name", "`description`"),
    (Table::Test, "expected", "an assertion `equals`"),
    (Table::Test, "ideal", "an assertion `equals`"),
    (Table::Test, "tags", "`metadata`"),
    (Table::Assertion, "schema", "`value`"),
    (Table::Assertion, "name", "`metric`"),
    (Table::Assertion, "ignoreCase", "the type `icontains`"),
    (Table::ServerConfig, "apiKeyEnv", "`apiKeyEnvar`"),
    (Table::ServerConfig, "api_key_env", "`apiKeyEnvar`"),
    (Table::ServerConfig, "project", "`projectId`"),
    (Table::ServerConfig, "location", "`region`"),
];

impl Context<'_> {
    /// Notes the keys of a table that are not used: those that promptfoo reads are lost.
    pub(super) fn unused_keys(&mut self, node: &Node, table: Table, used: &[&str]) {
        for entry in node.entries().iter().filter(|it| !used.contains(&it.key.as_str())) {
            let at = self.source.at(&entry.key_span);
            self.unused_key(at, &entry.key, table);
        }
    }

    /// Notes one such key.
    pub(super) fn unused_key(&mut self, at: At, key: &str, table: Table) {
        let owner = table.owner();
        if table.reads(key) {
            let what = format!("`{key}` of {owner} has no counterpart");
            self.notes.lost(at, what, "leave it out if it does not matter");
            return;
        }
        let meant = meant(key, table).map(|it| format!("did you mean {it}?")).unwrap_or_default();
        self.ignored_key(at, key, table, meant);
    }

    /// Notes a key that promptfoo does not read.
    pub(super) fn ignored_key(&mut self, at: At, key: &str, table: Table, advice: String) {
        let what = format!("promptfoo ignores `{key}` of {}, too", table.owner());
        self.notes.assumed(at, what, advice);
    }
}

/// What was probably meant by a key that promptfoo does not know there.
fn meant(key: &str, table: Table) -> Option<String> {
    let stated = MEANT.iter().find(|(at, written, _)| *at == table && *written == key);
    if let Some((_, _, meant)) = stated {
        return Some((*meant).to_owned());
    }
    if let Some(alike) = table.known().iter().find(|it| plain(it) == plain(key)) {
        return Some(format!("`{alike}`"));
    }
    let elsewhere: &[(Table, &str)] = match table {
        Table::Configuration => &[
            (Table::Test, "defaultTest"),
            (Table::Options, "evaluateOptions"),
            (Table::TestOptions, "defaultTest.options"),
        ],
        Table::Options => &[(Table::TestOptions, "defaultTest.options")],
        Table::Test => &[(Table::TestOptions, "options"), (Table::Assertion, "assert")],
        Table::Provider if providers::is_setting(key) => return Some(format!("`config.{key}`")),
        Table::Prompt
        | Table::PromptConfig
        | Table::Provider
        | Table::ServerConfig
        | Table::HttpConfig
        | Table::Scenario
        | Table::TestOptions
        | Table::Assertion
        | Table::AssertSet => &[],
    };
    let there = elsewhere.iter().find(|(other, _)| other.known().contains(&key));
    there.map(|(_, path)| format!("`{path}.{key}`"))
}

/// A name without what is easily confused: case, separators, the plural.
fn plain(name: &str) -> String {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    name.strip_suffix('s').map(ToOwned::to_owned).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_often_confused_are_named() {
        let said = |key, table| meant(key, table).unwrap_or_default();
        assert_eq!(said("asserts", Table::Test), "`assert`");
        assert_eq!(said("output", Table::Configuration), "`outputPath`");
        assert_eq!(
            said("maxConcurrency", Table::Configuration),
            "`evaluateOptions.maxConcurrency`"
        );
        assert_eq!(said("vars", Table::Configuration), "`defaultTest.vars`");
        assert_eq!(said("runSerially", Table::Options), "`defaultTest.options.runSerially`");
        assert_eq!(said("temperature", Table::Provider), "`config.temperature`");
        assert_eq!(said("nonsense", Table::Test), "");
    }

    #[test]
    fn a_setting_of_a_provider_is_read_wherever_it_reaches_one() {
        assert!(Table::TestOptions.reads("temperature") && Table::PromptConfig.reads("tools"));
        assert!(!Table::TestOptions.reads("timeoutSeconds") && !Table::Test.reads("temperature"));
    }
}
