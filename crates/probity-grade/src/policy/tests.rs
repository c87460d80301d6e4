//! What suites can say, and what no text may do.

use std::fmt::Write as _;

use probity_core::judging::{PolicyConfig, PolicySeverity};
use proptest::prelude::*;

use super::*;

fn policy(name: &str) -> PolicyConfig {
    PolicyConfig { name: name.to_owned(), ..PolicyConfig::default() }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

fn compiled(configs: &[PolicyConfig]) -> Policies {
    let mut problems = Vec::new();
    Policies::compile(configs, &mut problems).unwrap_or_else(|| panic!("{problems:?}"))
}

fn both() -> Policies {
    let builtin = |name: &str| PolicyConfig { builtin: Some(name.to_owned()), ..policy(name) };
    compiled(&[builtin("secrets"), builtin("pii")])
}

/// The hits as `policy/rule: text`.
fn told(policies: &Policies, text: &str) -> Vec<String> {
    let tell = |it: PolicyHit| format!("{}/{}: {}", it.policy, it.rule, &text[it.span]);
    policies.scan(text).into_iter().map(tell).collect()
}

#[test]
fn words_are_whole_and_their_case_does_not_matter() {
    let words = texts(&["straße", "C++", "cat"]);
    let policies = compiled(&[PolicyConfig { words, ..policy("names") }]);
    assert_eq!(
        told(&policies, "STRASSE, Straße; catalog CAT concat, C++ c++11 écat"),
        ["names/word:straße: Straße", "names/word:cat: CAT", "names/word:c++: C++"]
    );
}

#[test]
fn substrings_are_found_to_the_letter_even_where_they_overlap() {
    let policies = compiled(&[PolicyConfig { substrings: texts(&["aba", "b"]), ..policy("x") }]);
    assert_eq!(
        told(&policies, "ababA B"),
        ["x/substring:aba: aba", "x/substring:b: b", "x/substring:b: b"]
    );
}

#[test]
fn hits_stand_in_text_order_and_policies_in_file_order() {
    let first = PolicyConfig {
        severity: PolicySeverity::Low,
        regexes: texts(&["z+", "a*"]),
        words: texts(&["word"]),
        ..policy("first")
    };
    let second = PolicyConfig { substrings: texts(&["a"]), ..policy("second") };
    let policies = compiled(&[first, second]);
    assert_eq!(
        told(&policies, "aa word zz"),
        [
            "first/regex:a*: aa",
            "first/word:word: word",
            "first/regex:z+: zz",
            "second/substring:a: a",
            "second/substring:a: a"
        ]
    );
    let severities: Vec<_> = policies.scan("aa").into_iter().map(|it| it.severity).collect();
    let some = |it: &str| Some(it.to_owned());
    assert_eq!(severities, [some("low"), some("high"), some("high")]);
}

#[test]
fn everything_wrong_with_policies_is_said_at_once() {
    let mut problems = Vec::new();
    let wrong = PolicyConfig {
        regexes: texts(&["ok", "(", r"\w{1000}{1000}"]),
        words: texts(&[" "]),
        builtin: Some("secret".to_owned()),
        ..policy("wrong")
    };
    let unknown = PolicyConfig { builtin: Some("dangerous_shell".to_owned()), ..policy("later") };
    assert!(Policies::compile(&[policy("fine"), wrong, unknown], &mut problems).is_none());
    let mut said = String::new();
    for CriteriaProblem { path, code, message, help } in problems {
        let help = help.unwrap_or_default();
        writeln!(said, "{path:?} {code}: {message} ({help})").expect("a string takes anything");
    }
    insta::assert_snapshot!(said, @r#"
    [Key("policies"), Index(1), Key("builtin")] unknown-policy: there is no built-in policy `secret` (did you mean `secrets`? built-in policies are `secrets`, `pii`, `dangerous_shell`)
    [Key("policies"), Index(1), Key("words"), Index(0)] empty-pattern: an empty text is found everywhere ()
    [Key("policies"), Index(1), Key("regexes"), Index(1)] bad-regex: the regular expression does not compile: unclosed group ()
    [Key("policies"), Index(1), Key("regexes"), Index(2)] bad-regex: the regular expression is larger than 4 MiB ()
    "#);
}

#[test]
fn a_text_full_of_hits_is_not_repeated_in_the_report() {
    let policies = compiled(&[PolicyConfig { substrings: texts(&["a"]), ..policy("x") }]);
    assert_eq!(policies.scan(&"a".repeat(5000)).len(), MOST_HITS);
    assert!(both().scan(&"password='hunter22' 10.0.0.1 ".repeat(5000)).len() <= 2 * MOST_HITS);
}

#[test]
fn an_empty_policy_list_finds_nothing() {
    assert!(compiled(&[]).scan("password = 'hunter22'").is_empty());
    assert_eq!(Policies::secrets().scan("password = 'hunter22'").len(), 1);
}

/// Each would take minutes if any rule were quadratic.
#[test]
fn hostile_texts_take_linear_time() {
    let policies = both();
    let pieces = [
        "a@",
        "1.2.3.",
        "password=",
        "password = \"",
        "\"x\"==password",
        "AKIA",
        "0123456789",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9.",
        "QUJD",
        "://a:",
        "://",
        "glagent-",
        "sk-",
        "T3BlbkFJ",
        ":",
        "::",
        "1:",
        "a:b",
        "aa-",
        "aaaa.",
        "+1 ",
        "(1",
        "1 ",
        "1-",
        "GB82",
        "GB82 ",
        "bc1q",
        "1A1z",
        "secret",
        "\"",
        "${",
        "token is ",
        "<password>",
        "0",
        "é",
        "@é",
        "-us1",
        ":AA",
        "MT",
        "ghp_",
        "pypi-AgEIcHlwaS5vcmc",
        "phone 0",
        "nhs 1 ",
    ];
    for piece in pieces {
        policies.scan(&piece.repeat((64 << 10) / piece.len()));
    }
}

#[test]
fn bounds_may_fall_inside_of_a_character() {
    let policies = both();
    for shift in 0..4 {
        for length in [40, 64, 200, 256, 512, 600] {
            let (shift, long) = ("x".repeat(shift), "é€𝄞".repeat(length / 3));
            for frame in [
                "://L:L@h",
                "password = 'L",
                "password=L",
                "'L' == password",
                "L@L.de",
                "phone L 0",
                "L.abcd.ef01",
                "L:1::L",
            ] {
                policies.scan(&frame.replace('L', &format!("{shift}{long}")));
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_can_be_scanned_and_hits_are_in_order(text in any_text()) {
        let policies = both();
        let hits = policies.scan(&text);
        for hit in &hits {
            prop_assert!(text.get(hit.span.clone()).is_some_and(|it| !it.is_empty()), "{:?}", hit);
        }
        for policy in BUILTIN_POLICIES {
            let starts: Vec<usize> =
                hits.iter().filter(|it| it.policy == *policy).map(|it| it.span.start).collect();
            prop_assert!(starts.is_sorted());
        }
        prop_assert_eq!(&policies.scan(&text), &hits);
    }

    #[test]
    fn what_stands_around_an_address_does_not_hide_it(before in "[ ,;(\n]{0,3}", after in "[ ,;)\n]{0,3}") {
        let text = format!("{before}203.0.113.7{after}");
        prop_assert_eq!(both().scan(&text).len(), 1);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        ".{0,12}",
        "[0-9a-fA-F:. +()@-]{0,24}",
        "(password|secret|api_key|token|PWD)['\"`]? ?(=|:=|:|=>|==|\\(| is |>)? ?['\"`@]?",
        "(AKIA|ghp_|eyJ|sk-|xoxb-|://|-----BEGIN |PRIVATE KEY-----|T3BlbkFJ|GB82|bc1|phone |nhs )",
        "[é€𝄞ñ]{0,3}",
        "[A-Za-z0-9_=/-]{0,60}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|it| it.concat())
}

#[test]
fn dangerous_commands_that_a_reply_offers_are_found() {
    let policy = PolicyConfig {
        name: "shell".to_owned(),
        builtin: Some("dangerous_shell".to_owned()),
        ..PolicyConfig::default()
    };
    let policies = Policies::compile(&[policy], &mut Vec::new()).expect("it is built in");
    let hits = |text: &str| -> Vec<String> {
        policies
            .scan(text)
            .iter()
            .map(|hit| format!("{}: {}", hit.rule, &text[hit.span.clone()]))
            .collect()
    };
    assert_eq!(hits("First `ls`, then:\n```sh\ncd /; rm -rf /etc\n```\n"), ["rm-root: /etc"]);
    assert_eq!(hits("Never run `rm -rf /` on it."), ["rm-root: /"]);
    assert_eq!(hits("```sh\nrm -rf / \"\n```\n"), ["rm-root: /"]);
    assert_eq!(hits("Try `echo 'rm -rf /'` or `ls`."), Vec::<String>::new());
    assert_eq!(hits("We talked about rm -rf and its dangers."), Vec::<String>::new());
}
