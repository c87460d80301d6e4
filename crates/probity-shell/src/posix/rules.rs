//! The rules and their texts, from `data/posix/rules.toml`.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

/// What a rule says to people, and the texts that test it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleText {
    pub(super) layer: Layer,
    pub(super) says: String,
    pub(super) instead: Option<String>,
    pub(super) example: Option<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests run it"))]
    pub(super) compliant: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests run it"))]
    pub(super) edition: Option<String>,
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Layer {
    Syntax,
    Expansion,
    Builtin,
    Utility,
}

impl Layer {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Expansion => "expansion",
            Self::Builtin => "builtin",
            Self::Utility => "utility",
        }
    }
}

macro_rules! rules {
    ($($name:ident = $id:literal,)*) => {
        /// A rule; its text is in the data file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Rule {
            $($name,)*
        }

        impl Rule {
            /// All of them, by layer.
            pub(super) const ALL: &'static [Rule] = &[$(Rule::$name,)*];

            /// The id that users see.
            pub(super) fn id(self) -> &'static str {
                match self {
                    $(Rule::$name => $id,)*
                }
            }
        }
    };
}

rules! {
    DoubleBracket = "double-bracket",
    ArithmeticCommand = "arithmetic-command",
    ArithmeticFor = "arithmetic-for",
    ForBraces = "for-braces",
    Select = "select",
    FunctionKeyword = "function-keyword",
    FunctionName = "function-name",
    Array = "array",
    ArrayElement = "array-element",
    AppendAssignment = "append-assignment",
    ProcessSubstitution = "process-substitution",
    HereString = "here-string",
    BothRedirect = "both-redirect",
    NamedDescriptor = "named-descriptor",
    DescriptorRange = "descriptor-range",
    DescriptorMove = "descriptor-move",
    RedirectGlob = "redirect-glob",
    NetworkFile = "network-file",
    PipeBoth = "pipe-both",
    CaseFallThrough = "case-fall-through",
    CaseContinue = "case-continue",
    LocaleQuote = "locale-quote",
    DollarSingleQuote = "dollar-single-quote",
    AnsiEscape = "ansi-escape",
    Coproc = "coproc",
    TimeCompound = "time-compound",
    ForeignSyntax = "foreign-syntax",
    BraceExpansion = "brace-expansion",
    ExtendedGlob = "extended-glob",
    GlobNegation = "glob-negation",
    Substring = "substring",
    Replacement = "replacement",
    CaseChange = "case-change",
    Indirection = "indirection",
    VariableNames = "variable-names",
    Transformation = "transformation",
    PositionalOperation = "positional-operation",
    FileSubstitution = "file-substitution",
    CommandExpansion = "command-expansion",
    LegacyArithmetic = "legacy-arithmetic",
    ArithmeticIncrement = "arithmetic-increment",
    ArithmeticPower = "arithmetic-power",
    ArithmeticComma = "arithmetic-comma",
    ArithmeticBase = "arithmetic-base",
    Tilde = "tilde",
    Variable = "variable",
    Setting = "setting",
    Local = "local",
    Declare = "declare",
    Let = "let",
    Source = "source",
    Builtin = "builtin",
    EchoOption = "echo-option",
    EchoEscape = "echo-escape",
    ReadName = "read-name",
    TestOperator = "test-operator",
    TestAndOr = "test-and-or",
    TrapCondition = "trap-condition",
    SignalName = "signal-name",
    ShellOption = "shell-option",
    ExitStatus = "exit-status",
    DotArguments = "dot-arguments",
    PrintfFormat = "printf-format",
    PrintfEscape = "printf-escape",
    Option = "option",
    LongOption = "long-option",
    OptionArgument = "option-argument",
    Operand = "operand",
    FindPrimary = "find-primary",
    FindPath = "find-path",
    SedScript = "sed-script",
    AwkProgram = "awk-program",
    RegularExpression = "regular-expression",
}

static TEXTS: LazyLock<BTreeMap<String, RuleText>> = LazyLock::new(|| table!("posix-rules"));

impl Rule {
    /// What the rule says.
    pub(super) fn text(self) -> &'static RuleText {
        TEXTS.get(self.id()).expect("a test finds a text for every rule")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_text_and_every_text_a_rule() {
        let mut ids: Vec<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        ids.sort_unstable();
        assert_eq!(ids, TEXTS.keys().collect::<Vec<_>>());
    }

    #[test]
    fn rules_are_listed_by_layer() {
        let layers: Vec<_> = Rule::ALL.iter().map(|rule| rule.text().layer as u8).collect();
        assert!(layers.is_sorted());
    }
}
