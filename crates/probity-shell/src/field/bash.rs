//! bash as referee: what our tree says a word is, a shell must make of it too.
//!
//! Nothing is run but `printf` on words that cannot name a file; the generator writes no substitutions.

use std::{
    fmt::Write as _,
    io::Write as _,
    process::{Command, Stdio},
};

use proptest::prelude::*;

use super::{Expand, Field, push_fields};
use crate::{
    Script,
    tree::{Command as Node, Part},
};

/// Expansions are not part of this test.
struct None_;

impl Expand for None_ {
    fn expand(&mut self, part: &Part, _: &mut String) {
        panic!("the generator writes no expansion, but the tree has {part:?}");
    }
}

/// The arguments that our tree sees, if it can tell.
fn ours(command: &str) -> Option<Vec<String>> {
    let script = Script::parse(command).ok()?;
    let [stmt] = &*script.body else { return None };
    let Node::Simple(simple) = &stmt.command else { return None };
    let mut fields: Vec<Field> = Vec::new();
    for word in &simple.words {
        push_fields(word, &mut None_, &mut fields);
    }
    fields[1..].iter().map(|it| it.literal().map(str::to_owned)).collect()
}

/// The arguments that bash sees, for each command; `None` where it refuses the text.
fn bash(commands: &[String]) -> Vec<Option<Vec<String>>> {
    let mut shell = Command::new("bash")
        .args(["--noprofile", "--norc", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .spawn()
        .expect("bash is on every machine that runs these tests");
    let mut script = String::from("set -f\nHOME=/h\nset -- \n");
    for command in commands {
        let quoted = command.replace('\'', r"'\''");
        let _ = writeln!(
            script,
            "if (eval '{quoted}') 2>/dev/null; then :; else printf 'REFUSED\\0'; fi; printf '\\1'"
        );
    }
    shell.stdin.take().expect("it is piped").write_all(script.as_bytes()).expect("bash reads it");
    let output = shell.wait_with_output().expect("bash ends").stdout;
    let mut answers: Vec<_> = output
        .split(|byte| *byte == 1)
        .map(|answer| {
            let mut words: Vec<String> = answer
                .split(|byte| *byte == 0)
                .map(|it| String::from_utf8_lossy(it).into_owned())
                .collect();
            words.pop();
            (words != ["REFUSED"]).then_some(words)
        })
        .collect();
    answers.pop();
    assert_eq!(answers.len(), commands.len());
    answers
}

/// Words in every kind of quotes, joined and escaped.
fn word() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z0-9._/=,:@%+-]{1,4}",
        "'[a-z *?$\"\\\\;|&<>(){}~#!]{0,5}'",
        "\"([a-z *?';|&<>(){}~#]|\\\\[$\"\\\\a]){0,5}\"",
        "\\\\[a-z *?$'\"\\\\;|&<>(){}~#]",
        "[$]'([a-z \"$]|\\\\[nt\\\\']|\\\\x4[1-9]){0,4}'",
        Just("{a,b}".to_owned()),
        Just("x{1..3}".to_owned()),
    ];
    prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn words_come_out_as_bash_makes_them(
        commands in prop::collection::vec(prop::collection::vec(word(), 1..3), 40)
    ) {
        let commands: Vec<String> =
            commands.into_iter().map(|words| format!("printf '%s\\0' {}", words.join(" "))).collect();
        for (command, theirs) in commands.iter().zip(bash(&commands)) {
            // The first argument is the format.
            let mine = ours(command).map(|words| words[1..].to_vec());
            if let Some(mine) = mine {
                prop_assert_eq!(Some(mine), theirs, "{}", command);
            }
        }
    }
}

#[test]
fn commands_that_bash_refuses_do_not_parse() {
    for text in [
        "ls |",
        "ls &&",
        "if true; then",
        "echo 'a",
        "echo \"a",
        "echo $(ls",
        "( ls",
        "{ ls",
        "ls )",
        "echo ${x",
        "case x in",
        "; ls",
        "do ls",
    ] {
        let refused = !Command::new("bash")
            .args(["-n", "-c", text])
            .stderr(Stdio::null())
            .status()
            .expect("bash runs")
            .success();
        assert!(refused, "bash takes `{text}`");
        assert!(Script::parse(text).is_err(), "we take `{text}`");
    }
}
