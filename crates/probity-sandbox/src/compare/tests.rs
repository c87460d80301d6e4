use super::*;
use crate::execution::{Change, Entry, EntryKind, Output};

const NOW: i64 = 1_000_000;

fn wrote(text: &str) -> Execution {
    let bytes = text.as_bytes().to_vec();
    let total = bytes.len() as u64;
    Execution {
        end: End::Exit(0),
        stdout: Output { bytes, total },
        stderr: Output::default(),
        changes: Vec::new(),
        ended: Vec::new(),
        refused: Vec::new(),
        began: NOW,
        took_us: 1,
    }
}

fn file(digest: &str, modified: i64) -> Entry {
    let kind = EntryKind::File { size: 3, digest: digest.to_owned() };
    Entry { kind, mode: 0o644, owner: (1000, 1000), links: 1, modified }
}

fn changed(path: &str, before: Option<Entry>, after: Option<Entry>) -> Execution {
    let changes = vec![Change { path: path.to_owned(), before, after }];
    Execution { changes, ..wrote("") }
}

const STRICT: Leniency =
    Leniency { order: false, blanks: false, processes: false, one: [One::Failed; 2] };

fn outcome(left: &Execution, right: &Execution) -> Outcome {
    compare(left, right, STRICT)
}

#[test]
fn equal_output_is_the_same_and_silence_is_silence() {
    assert_eq!(outcome(&wrote("a\n"), &wrote("a")), Outcome::Same);
    assert_eq!(outcome(&wrote(""), &wrote("\n")), Outcome::Silent);
    assert_eq!(
        outcome(&wrote("a\nb\n"), &wrote("a\nc\n")),
        Outcome::Different("line 2 of the output: `b` instead of `c`".to_owned())
    );
    assert_eq!(
        outcome(&wrote("a\n"), &wrote("")),
        Outcome::Different("line 1 of the output: `a` instead of nothing".to_owned())
    );
}

#[test]
fn order_and_blanks_are_overlooked_only_where_nobody_promises_them() {
    let (left, right) = (wrote("b\na  1\n"), wrote("a 1\nb\n"));
    let lenient = Leniency { order: true, blanks: true, ..STRICT };
    assert_eq!(compare(&left, &right, lenient), Outcome::Same);
    assert!(matches!(outcome(&left, &right), Outcome::Different(_)));
    let order = |left, right| {
        let promise = |order| Promise { order, padded: false, network: false, one: One::Failed };
        Leniency::between(promise(left), promise(right)).order
    };
    assert!(order(Order::None, Order::None) && order(Order::None, Order::Natural));
    assert!(!order(Order::None, Order::Asked) && !order(Order::Natural, Order::Natural));
}

#[test]
fn files_are_compared_by_what_is_there_afterwards() {
    let made = |digest, modified| changed("/a", None, Some(file(digest, modified)));
    assert_eq!(outcome(&made("aaaaaaaaaa", NOW + 1), &made("aaaaaaaaaa", NOW + 3)), Outcome::Same);
    assert_eq!(
        outcome(&made("aaaaaaaaaa", NOW + 1), &made("bbbbbbbbbb", NOW + 1)),
        Outcome::Different(
            "`/a` is a file of 3 bytes (aaaaaaaa) instead of a file of 3 bytes (bbbbbbbb)"
                .to_owned()
        )
    );
    assert_eq!(outcome(&made("a", NOW + 1), &made("a", NOW - 500)), Outcome::Same);
    let touched = |modified| changed("/a", Some(file("a", NOW - 9)), Some(file("a", modified)));
    assert!(matches!(outcome(&touched(NOW + 1), &touched(NOW - 500)), Outcome::Different(_)));
    let gone = changed("/a", Some(file("a", NOW - 9)), None);
    assert_eq!(
        outcome(&gone, &wrote("")),
        Outcome::Different("`/a` is gone instead of as it was".to_owned())
    );
}

#[test]
fn what_is_new_is_new_for_each_command() {
    let touched = |began| Execution {
        began,
        ..changed("/a", Some(file("a", NOW - 9)), Some(file("a", began + 1)))
    };
    assert_eq!(outcome(&touched(NOW), &touched(NOW + 500)), Outcome::Same);
}

#[test]
fn a_missing_program_is_named() {
    for (complaint, name) in [
        ("bash: line 1: tree: command not found", "tree"),
        ("sh: 1: tree: not found", "tree"),
        ("timeout: failed to run command ‘tree’: No such file or directory", "tree"),
    ] {
        assert_eq!(missing(complaint), Some(name));
    }
    assert_eq!(missing("cat: x: No such file or directory"), None);
}

#[test]
fn a_directory_in_which_something_was_made_has_not_changed_itself() {
    let folder = |modified| Entry { kind: EntryKind::Directory, ..file("", modified) };
    let touched = changed("/d", Some(folder(NOW - 9)), Some(folder(NOW + 1)));
    assert_eq!(outcome(&touched, &wrote("")), Outcome::Silent);
}

#[test]
fn what_could_not_run_says_nothing() {
    let late = Execution { end: End::TimedOut, ..wrote("a") };
    let missing = Execution {
        end: End::Exit(127),
        stderr: Output { bytes: b"bash: line 1: foo: command not found\n".to_vec(), total: 1 },
        ..wrote("")
    };
    let refused = Execution { refused: vec!["ptrace".to_owned()], ..wrote("a") };
    assert_eq!(outcome(&refused, &wrote("a")), Outcome::Same);
    let flood = Execution { stdout: Output { bytes: b"a".to_vec(), total: 9 }, ..wrote("") };
    for odd in [late, missing, refused, flood] {
        assert!(matches!(outcome(&odd, &wrote("b")), Outcome::Undecided(_)), "{odd:?}");
        assert!(matches!(outcome(&wrote("b"), &odd), Outcome::Undecided(_)), "{odd:?}");
    }
}

#[test]
fn an_answer_is_not_a_failure() {
    let ended = |code| Execution { end: End::Exit(code), ..wrote("a") };
    let one = |left: One, right: One| Leniency { one: [left, right], ..STRICT };
    let both = one(One::Nothing, One::Nothing);
    assert_eq!(compare(&ended(0), &ended(123), both), Outcome::Same);
    assert_eq!(outcome(&ended(1), &ended(1)), Outcome::Same);
    // Only who ended with 1 has to explain it.
    assert_eq!(compare(&ended(0), &ended(1), one(One::Failed, One::Nothing)), Outcome::Same);
    let unexplained = compare(&ended(0), &ended(1), one(One::Nothing, One::Failed));
    assert!(matches!(unexplained, Outcome::Different(_)), "{unexplained:?}");
    let complaint = Output { bytes: b"cat: d: Is a directory\n".to_vec(), total: 23 };
    let partly = Execution { stderr: complaint, ..ended(1) };
    let some = one(One::Failed, One::Partly);
    assert_eq!(compare(&ended(0), &partly, some), Outcome::Same);
    assert!(matches!(compare(&ended(0), &ended(1), some), Outcome::Different(_)));
    assert_eq!(
        outcome(&ended(0), &ended(2)),
        Outcome::Different("the same output, but exit code 0 instead of exit code 2".to_owned())
    );
}

#[test]
fn names_of_temporary_files_and_of_processes_mean_nothing() {
    assert_eq!(
        outcome(&wrote("/tmp/tmp.aB3dE6gH01 x"), &wrote("/tmp/tmp.zzzzzzzzzz x")),
        Outcome::Same
    );
    assert_ne!(outcome(&wrote("/tmp/tmp.one"), &wrote("/tmp/tmp.two")), Outcome::Same);
    assert_ne!(outcome(&wrote("/proc/a"), &wrote("/proc/b")), Outcome::Same);
    assert_ne!(outcome(&wrote("/sys/a"), &wrote("/sys/b")), Outcome::Same);
    assert_eq!(outcome(&wrote("/proc/12/x\na"), &wrote("a\n/proc/9/y")), Outcome::Same);
    assert_eq!(
        outcome(&wrote(&"/tmp/tmp.aaaaaaaaaa".repeat(60_000)), &wrote("a")),
        Outcome::Different(format!(
            "line 1 of the output: `{}…` instead of `a`",
            "/tmp/tmp.…".repeat(10)
        ))
    );
    let processes = Leniency { processes: true, ..STRICT };
    assert_eq!(compare(&wrote("12 sleep"), &wrote("7 sleep"), processes), Outcome::Same);
}

#[test]
fn likeness_is_about_what_both_have() {
    let like = |left: &str, right: &str| likeness(&wrote(left), &wrote(right));
    assert_eq!(like("a\nb\n", "-rw a\n-rw b\n"), Some(1.0));
    assert_eq!(like("a\n", "b\n"), Some(0.0));
    assert_eq!(like("", ""), None);
    assert_eq!(like("", "x"), Some(0.0));
    let made = changed("/a", None, Some(file("a", NOW + 1)));
    let told = Execution { stdout: wrote("made /a").stdout, ..made.clone() };
    assert_eq!(likeness(&made, &told), Some(1.0));
}

#[test]
fn only_numbers_that_change_are_those_of_processes() {
    let steady = |left: &[&str], right: &[&str]| {
        let bytes = |it: &[&str]| it.iter().map(|it| it.as_bytes().to_vec()).collect();
        let [left, right] = stdout::steady_numbers(&[bytes(left), bytes(right)], STRICT);
        (left == right, left)
    };
    let line = |it: &str| vec![it.to_owned()];
    assert_eq!(steady(&["12 sleep", "14 sleep"], &["7 sleep", "9 sleep"]), (true, line("# sleep")));
    assert_eq!(steady(&["5 sleep", "5 sleep"], &["1 sleep", "1 sleep"]), (false, line("5 sleep")));
    assert!(!steady(&["8 a 3", "9 a 3"], &["8 a 4", "9 a 4"]).0);
    assert_eq!(steady(&["8 a 3", "9 a 3"], &["8 a 3", "8 a 3"]), (true, line("# a 3")));
}

#[test]
fn bytes_that_are_no_text_and_names_that_end_in_zeros_count() {
    let raw = |bytes: &[u8]| {
        let total = bytes.len() as u64;
        Execution { stdout: Output { bytes: bytes.to_vec(), total }, ..wrote("") }
    };
    assert_ne!(outcome(&raw(b"\xff\n"), &raw(b"\xfe\n")), Outcome::Same);
    assert_ne!(outcome(&raw(b"a\0b\0"), &raw(b"a\nb\n")), Outcome::Same);
    assert_eq!(outcome(&raw(b"a\0b\0"), &raw(b"a\0b\0")), Outcome::Same);
}

#[test]
fn a_second_name_is_no_copy_and_a_pipe_no_socket() {
    let linked = Entry { links: 2, ..file("aaaaaaaaaa", NOW + 1) };
    let copied = changed("/b", None, Some(file("aaaaaaaaaa", NOW + 1)));
    let found = outcome(&changed("/b", None, Some(linked)), &copied);
    assert!(matches!(found, Outcome::Different(why) if why.contains("with 2 names")));
    let special = |what: &str| {
        let kind = EntryKind::Special { what: what.to_owned() };
        changed("/p", None, Some(Entry { kind, links: 0, ..file("", NOW) }))
    };
    assert_ne!(outcome(&special("pipe"), &special("socket")), Outcome::Same);
}

#[test]
fn who_ends_a_process_does_something() {
    let ending = |what: &str| Execution { ended: vec![what.to_owned()], ..wrote("") };
    let gone = ending("`sleep 300`: killed by signal 15");
    assert_eq!(outcome(&gone, &gone.clone()), Outcome::Same);
    assert!(matches!(outcome(&gone, &wrote("")), Outcome::Different(_)));
    assert_ne!(outcome(&gone, &ending("`sleep 300`: killed by signal 9")), Outcome::Same);
}

#[test]
fn who_lacks_rights_or_a_network_is_named() {
    let of = |complaint: &str| {
        let stderr = Output { bytes: complaint.as_bytes().to_vec(), total: 1 };
        hindered(&Execution { stderr, ..wrote("") }).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(of("chown: changing ownership of 'f': Operation not permitted\n"), ["chown"]);
    assert_eq!(of("bash: line 1: kill: (1) - Operation not permitted\n"), ["kill"]);
    assert_eq!(of("/usr/sbin/swapoff: Not superuser.\n"), ["swapoff"]);
    assert_eq!(
        of("cat: x: No such file or directory\nfind: ‘/root’: Permission denied\n"),
        [""; 0]
    );
}
