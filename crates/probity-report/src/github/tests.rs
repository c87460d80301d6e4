use super::*;
use crate::sample::{Sample, hostile_run};

fn nowhere(_: &Lane, _: &str) -> Option<Place> {
    None
}

#[test]
fn a_small_run() {
    let sample = Sample::usual();
    let locate = |lane: &Lane, id: &str| {
        let line = (id == "list").then_some(7);
        Some(Place { file: lane.dataset[0].clone(), line })
    };
    let text = commands(&sample.view, &sample, &locate).unwrap();
    insta::assert_snapshot!(text, @r"
    ::error title=gate failed%3A commands on small::pass_rate at least 94.8 %25 (a warning to 90 %25): 33.3 %25 (1 of 3)
    ::error title=gate failed%3A commands on large::pass_rate at least 94.8 %25 (a warning to 90 %25): 75.0 %25 (3 of 4)
    ::warning file=cases.toml,line=7,title=fail%3A list::commands on small: `mv a b`: expected `cp`, found `mv`
    ::warning file=cases.toml,title=refusal%3A wipe::commands on small: the model declined: `I can't help with that`
    ::warning file=cases.toml,title=overloaded%3A move::commands on small: try later
    ::notice title=known to fail%2C and passed%3A commands on large::1 in all: list
    ");
}

#[test]
fn a_hostile_text_cannot_begin_a_command() {
    let sample = hostile_run();
    let text = commands(&sample.view, &sample, &nowhere).unwrap();
    assert!(text.lines().count() <= MOST_CASES + 5);
    for line in text.lines() {
        let (command, _) = line[2..].split_once(' ').unwrap();
        assert!(matches!(command, "error" | "warning" | "notice"), "{line}");
        let (properties, _) = line[2..].split_once("::").unwrap();
        assert_eq!(properties.matches('=').count() - properties.matches("title=").count(), {
            let title = properties.split_once("title=").unwrap().1;
            title.matches('=').count()
        });
        assert!(!line.contains(['\r', '\x1b', '\0', '\u{202e}', '\u{2028}']), "{line}");
        assert!(line.len() < 4_000);
    }
}

#[test]
fn values_are_escaped_as_the_runner_reads_them() {
    assert_eq!(Data("a%b\r\nc:d,e").to_string(), "a%25b%0D%0Ac:d,e");
    assert_eq!(Property("a%b\r\nc:d,e").to_string(), "a%25b%0D%0Ac%3Ad%2Ce");
}
