use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn report(text: &str, edition: Edition) -> Report {
    let script = Script::parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}"));
    check(&script, edition)
}

/// The rules that a text breaks, each with the place where it does.
fn found(text: &str, edition: Edition) -> Vec<(&'static str, String)> {
    let violations = report(text, edition).violations;
    violations.iter().map(|it| (it.rule, it.span.of(text).to_owned())).collect()
}

#[track_caller]
fn breaks(text: &str, expected: &[(&'static str, &str)]) {
    let found = found(text, Edition::Posix2024);
    let found: Vec<_> = found.iter().map(|(rule, place)| (*rule, &**place)).collect();
    assert_eq!(found, expected, "`{text}`");
}

#[track_caller]
fn stays_inside(text: &str) {
    breaks(text, &[]);
}

/// Breaks a rule in 2017 and none in 2024.
#[track_caller]
fn came_with_2024(text: &str, rule: &'static str) {
    stays_inside(text);
    let rules: Vec<_> = found(text, Edition::Posix2017).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, [rule], "`{text}`");
}

fn instead(text: &str) -> Vec<String> {
    let violations = report(text, Edition::Posix2024).violations;
    violations.into_iter().map(|it| it.instead.unwrap_or_default()).collect()
}

fn unknown(text: &str) -> Vec<String> {
    report(text, Edition::Posix2024).unknown_utilities.into_iter().map(|it| it.name).collect()
}

#[test]
fn every_rule_has_an_example_and_a_near_miss() {
    for rule in Rule::ALL {
        let text = rule.text();
        let edition = text.edition.as_deref().unwrap_or("2024").parse().expect("an edition");
        if let Some(example) = &text.example {
            let rules: Vec<_> = found(example, edition).into_iter().map(|(rule, _)| rule).collect();
            assert!(!rules.is_empty(), "`{example}` breaks nothing");
            assert!(rules.iter().all(|it| *it == rule.id()), "`{example}`: {rules:?}");
        }
        let near = report(&text.compliant, edition);
        assert!(near.is_compliant(), "`{}`: {:?}", text.compliant, near.violations);
    }
}

#[test]
fn the_edition_is_a_year_and_part_of_the_report() {
    assert_eq!("2017".parse(), Ok(Edition::Posix2017));
    assert_eq!(Edition::default().to_string(), "2024");
    assert!("2008".parse::<Edition>().is_err());
    assert_eq!(report("ls", Edition::Posix2017).edition, Edition::Posix2017);
}

#[test]
fn what_the_second_edition_brought() {
    came_with_2024("IFS=$'\\t'", "dollar-single-quote");
    came_with_2024("set -o pipefail", "shell-option");
    came_with_2024("read -r -d '' name", "option");
    came_with_2024("find . -print0", "find-primary");
    came_with_2024("xargs -0 rm", "option");
    came_with_2024("sed -E s/a+/b/ f", "option");
    came_with_2024("[ a -nt b ]", "test-operator");
    came_with_2024("[ a \\< b ]", "test-operator");
    came_with_2024("case x in a) b ;& c) d ;; esac", "case-fall-through");
    came_with_2024("date +%F", "operand");
    came_with_2024("ulimit -n 64", "option");
    assert_eq!(unknown("realpath a; timeout 5 b"), ["b"]);
    let report = report("realpath a", Edition::Posix2017);
    assert_eq!(report.unknown_utilities[0].name, "realpath");
}

#[test]
fn scripts_of_sed_are_read() {
    for script in [
        "'1~2p'",
        "'0,/a/d'",
        "'/a/,+3p'",
        "'/a/Id'",
        "'s/a/b/I'",
        "'s/a/b/e'",
        "'1i text'",
        "'1e date'",
        "F",
        "z",
        "'R list'",
        "'W out'",
        "'s/a/\\U&/'",
    ] {
        breaks(&format!("sed {script} f"), &[("sed-script", script)]);
        breaks(&format!("sed -n {script} f"), &[("sed-script", script)]);
    }
    for script in ["'s/a\\+/b/'", "'/a\\|b/d'", "'s/\\s*$//'", "'\\,a\\?,d'"] {
        breaks(&format!("sed {script} f"), &[("regular-expression", script)]);
    }
    for text in [
        "sed -n '1,5p;$!N;/a/,/b/{s/x/y/2g;P;D}' f",
        "sed -e 's/I/M/' -e 'y/abc/xyz/' f",
        "sed 's|a\\|b|c|;s/[\\+]/x/' f",
        "sed -E 's/(a|b)\\+?/\\1/g' f",
        "sed '1i\\\ntext' f",
        "sed -f script 1~2p",
        "sed \"1~${n}p\" f",
        "sed 's/\\\\Users/&/w out' f",
        "sed 'this is no script' f",
    ] {
        stays_inside(text);
    }
    came_with_2024("sed s/a/b/gi f", "sed-script");
}

#[test]
fn programs_of_awk_are_read() {
    for program in [
        "'{ print gensub(/a/, \"b\", 1) }'",
        "'BEGIN { print strftime(\"%Y\") }'",
        "'{ n[$1]++ } END { print length(n) }'",
        "'BEGIN { print 2 ** 3 }'",
        "'{ x **= 2 }'",
        "'match($0, /a/, m)'",
        "'BEGIN { \"date\" |& getline }'",
        "'BEGIN { IGNORECASE = 1 } /a/'",
        "'BEGINFILE { print }'",
        "'func f(x) { return x }'",
        "'{ switch ($1) { case 1: print } }'",
    ] {
        breaks(&format!("awk {program} f"), &[("awk-program", program)]);
    }
    for text in [
        "awk '{ print length($0), length(x), length }' f",
        "awk '/gensub(a)/ { print \"strftime(x)\" } # asort(a)' f",
        "awk 'function or(a, b) { return a + b } { print or(1, 2) }' f",
        "awk '{ print $1 / 2 / 3, \"2**3\"; and = 1; split($0, a, /x/) }' f",
        "awk -f gensub.awk 'gensub(a)'",
        "awk \"{ print gensub($x) }\" f",
        "awk -F'\\t' '!seen[$1]++ { print toupper($2) ^ 2 }' f",
    ] {
        stays_inside(text);
    }
    came_with_2024("awk 'FNR > 3 { nextfile }' f", "awk-program");
    came_with_2024("awk '{ delete seen }' f", "awk-program");
    came_with_2024("awk '{ print; fflush() }' f", "awk-program");
}

#[test]
fn patterns_numbers_and_types() {
    breaks("grep 'a\\|b' f", &[("regular-expression", "'a\\|b'")]);
    breaks("find . -depth 1", &[("find-primary", "-depth")]);
    breaks("od -A x -t x1z f", &[("option-argument", "-t x1z")]);
    for text in [
        "grep -E 'a\\|b' f",
        "grep -F 'a\\|b' f",
        "grep 'a\\.b[\\|]' f",
        "find . -depth -name 1",
        "od -t x1 -t d2o2 -t fD -t c f",
        "trap - EXIT INT",
    ] {
        stays_inside(text);
    }
    assert!(unknown("trap - EXIT INT").is_empty());
}

#[test]
fn what_the_second_edition_took_away() {
    let text = "[ -f a -a -f b ]";
    assert!(report(text, Edition::Posix2017).is_compliant());
    breaks(text, &[("test-and-or", "-a")]);
    breaks("[ \\( a = b \\) ]", &[("test-and-or", "\\("), ("test-and-or", "\\)")]);
    assert_eq!(unknown("qsub job"), ["qsub"]);
}

#[test]
fn a_utility_outside_the_standard_is_no_violation() {
    let text = "git log --oneline | curl -sS https://example.org | jq -r .x";
    stays_inside(text);
    assert_eq!(unknown(text), ["git", "curl", "jq"]);
    assert_eq!(unknown("/usr/bin/tar xf a; ./build.sh; ls"), ["tar"]);
}

#[test]
fn what_the_text_defines_is_not_looked_up() {
    assert_eq!(unknown("greet() { hello; }; greet; alias gs='git status'; gs"), ["hello"]);
    stays_inside("pushd() { cd \"$1\"; }; pushd src");
    stays_inside("ls --fast; ls() { command ls -l; }");
    breaks("echo $RANDOM; RANDOM=1", &[("variable", "$RANDOM")]);
    stays_inside(
        "read -r REPLY; echo \"$REPLY\"; for UID in 1; do echo $UID; done; : ${OSTYPE:=x} $OSTYPE",
    );
}

#[test]
fn characters_inside_quotes_are_text() {
    stays_inside("printf '%s\\n' '[[ a ]] <(b) <<< c &> d {e,f} ${g:1}' \"[^h] !(i) a+=b\"");
    stays_inside("grep '[^a]' f; sed 's/{1,2}/x/' f; awk '{ a[$1]++ } END { print a[1] }' f");
    stays_inside("cat <<'E'\n${x^^} $(<f) [[ y ]]\nE\n");
    stays_inside("# function f { local x; }\n:");
    breaks("cat <<E\n${x^^} [[ y ]]\nE\n", &[("case-change", "${x^^}")]);
}

#[test]
fn words_inside_words_are_seen() {
    breaks("echo \"a $(grep -P b c) d\"", &[("option", "-P")]);
    breaks("x=`sed -i s/a/b/ f`", &[("option", "-i")]);
    breaks("echo ${x:-$(local y)}", &[("local", "local")]);
    breaks(
        "f() { if true; then while [[ a ]]; do b; done; fi; }",
        &[("double-bracket", "[[ a ]]")],
    );
    breaks(
        "echo $(( $(echo -n 1) + RANDOM ))",
        &[("echo-option", "-n"), ("variable", " + RANDOM ")],
    );
}

#[test]
fn wrappers_show_the_command_they_run() {
    for wrapper in [
        "sudo -u bob",
        "sudo -n --",
        "env -i A=1",
        "nohup",
        "nice -n 5",
        "command",
        "exec",
        "xargs -n 1",
        "time",
        "time -p",
        "timeout -k 5 10",
        "stdbuf -oL",
        "find . -exec",
        "sudo env A=1 nice",
    ] {
        breaks(&format!("{wrapper} sed -i s/a/b/ f"), &[("option", "-i")]);
        stays_inside(&format!("{wrapper} sed -n p f"));
    }
    stays_inside("command -v sed -i");
    for wrapper in ["xargs -P 4", "xargs --max-procs 4", "env -u A"] {
        assert!(unknown(&format!("{wrapper} hello")).contains(&"hello".to_owned()), "{wrapper}");
    }
}

#[test]
fn text_for_a_shell_is_read_as_one() {
    breaks("sh -c 'a; [[ b ]]'", &[("double-bracket", "[[ b ]]")]);
    breaks("eval \"echo -n $(x)\"; eval 'echo -n x'", &[("echo-option", "-n")]);
    breaks("trap 'rm -v x' EXIT", &[]);
    breaks("trap 'cp -v x' EXIT", &[("option", "-v")]);
    breaks("eval echo -n a", &[("echo-option", "echo -n a")]);
    stays_inside("bash -c '[[ b ]]'");
}

#[test]
fn options_are_read_as_getopts_reads_them() {
    breaks("ls -lah", &[("option", "-lah")]);
    breaks("ls dir -h --color", &[("option", "-h"), ("long-option", "--color")]);
    stays_inside("sort -t -k2,2n -o -h f; grep -e -P f; cut -d- -f1; head -n5 f; ls -- -h --color");
    stays_inside(
        "ls $options -l \"$dir\"; tail -n\"$n\" f; od -An -tx1 f; xargs -I{} mv {} {}.old",
    );
    stays_inside(
        "chmod -w f; stty -echo; kill -9 1; kill -TERM 1; kill -- -5; cd -; set +e; comm -12 a b",
    );
    stays_inside("pr -3 f; diff - f; tr -d -; printf -- '-x\\n'; expr -1 + 1; env - a; ls -1");
}

#[test]
fn the_alternative_names_what_was_written() {
    assert_eq!(instead("head -20 f"), ["`head -n 20`"]);
    assert_eq!(instead("tail +7 f"), ["`tail -n +7`"]);
    assert_eq!(instead("trap x SIGINT"), ["`INT`"]);
    assert_eq!(instead("find . -size +2M"), ["`-size +2097152c`"]);
    assert_eq!(instead("ls --all"), ["`-a`"]);
    assert_eq!(instead("echo $EUID"), ["`$(id -u)`"]);
    for (text, alternative) in
        [("sed -i p f", "mv"), ("grep -P a", "-E"), ("echo -e a", "printf"), ("[ a == b ]", "`=`")]
    {
        assert!(instead(text)[0].contains(alternative), "`{text}`: {}", instead(text)[0]);
    }
}

#[test]
fn redirections() {
    breaks("a >& f", &[("both-redirect", ">& f")]);
    breaks("a 2>& f", &[("descriptor-move", "2>& f")]);
    breaks("a &>> f", &[("both-redirect", "&>> f")]);
    stays_inside("a >&2 2>&- <&3 3<> f >| g; b >&$fd; c > \"$x*\"");
}

#[test]
fn tests_know_their_operators() {
    breaks("[ \"$a\" =~ b ]", &[("test-operator", "=~")]);
    breaks("test -v a", &[("test-operator", "-v")]);
    breaks("[ -a f ]", &[("test-operator", "-a")]);
    breaks("[ ! -O f ]", &[("test-operator", "-O")]);
    stays_inside(
        "[ -n -a ]; [ = = = ]; [ ! -f x ]; test \"$a\" -le 3; [ -t 1 ]; [ \"$x\" ]; [ -k ]",
    );
}

#[test]
fn builtins() {
    breaks("read", &[("read-name", "read")]);
    breaks("read -n 1 x", &[("option", "-n")]);
    breaks(
        "kill -SIGHUP 1; kill -s sigterm 1",
        &[("signal-name", "-SIGHUP"), ("signal-name", "-s sigterm")],
    );
    breaks("trap x debug; trap x int", &[("trap-condition", "debug"), ("signal-name", "int")]);
    breaks("unset 'a[1]'", &[("array-element", "'a[1]'")]);
    breaks("export a+=1 b=(2)", &[("append-assignment", "a+=1"), ("array", "2")]);
    breaks(
        "printf '%(%F)T\\n'; printf '\\x41'",
        &[("printf-format", "'%(%F)T\\n'"), ("printf-escape", "'\\x41'")],
    );
    breaks("return 256; exit -2", &[("exit-status", "256"), ("exit-status", "-2")]);
    breaks("export TMOUT=3", &[("setting", "TMOUT=3")]);
    breaks("export +x a", &[("option", "+x")]);
    stays_inside(
        "trap - INT; trap '' HUP; trap 'x' 0 2; set -euo pipefail; set -- -h; type ls; hash -r; wait 3",
    );
}

#[test]
fn operands_of_utilities() {
    breaks("dd if=a bs=1M conv=fsync", &[("operand", "bs=1M"), ("operand", "conv=fsync")]);
    breaks("ps aux", &[("operand", "aux")]);
    breaks("ps -eo pid,%cpu", &[("option-argument", "-eo pid,%cpu")]);
    breaks("sleep 0.5; sleep 2m", &[("operand", "0.5"), ("operand", "2m")]);
    breaks("touch -d yesterday f", &[("option-argument", "-d yesterday")]);
    breaks("date +%s%N", &[("operand", "+%s%N")]);
    breaks("sort -k2V f", &[("option-argument", "-k2V")]);
    breaks(
        "find . -perm /111 -type f,l",
        &[("option-argument", "/111"), ("option-argument", "f,l")],
    );
    breaks("find . -exec grep -P a {} + -delete", &[("option", "-P"), ("find-primary", "-delete")]);
    breaks("expr length abc", &[("operand", "length")]);
    stays_inside(
        "dd bs=\"$size\" conv=$how; dd if=/dev/zero of=f bs=2x1k count=3 conv=notrunc,sync; ps -e -o pid=,args=CMD",
    );
    stays_inside(
        "find / -xdev \\( -name a -o -path './b*' \\) ! -user root -mtime -1 -exec ls -l {} \\;",
    );
    stays_inside(
        "touch -d 2024-05-01T10:00:00Z f; date -u '+%Y-%m-%d %H:%M:%S'; sort -t: -k3,3nr -k1 f",
    );
}

#[test]
fn violations_come_in_the_order_of_the_text() {
    let spans: Vec<_> = report("echo -n a; [[ b ]]; c+=1; ls -h >& d", Edition::Posix2024)
        .violations
        .iter()
        .map(|it| it.span)
        .collect();
    assert_eq!(spans.len(), 5);
    assert!(spans.is_sorted());
}

#[test]
fn shells_in_shells_end_somewhere() {
    let mut text = String::from("[[ a ]]");
    for _ in 0..6 {
        text = format!("sh -c '{}'", text.replace('\'', "'\\''"));
    }
    stays_inside(&text);
}

#[test]
fn long_texts_are_read_in_no_time_and_on_a_small_stack() {
    let texts = [
        "sudo ".repeat(20_000),
        format!("{}a", "find . -exec ".repeat(10_000)),
        format!("a{}", "=~".repeat(50_000)),
        format!("ls {}", "[^'a'".repeat(20_000)),
        "f() { :; }; f $UID; ".repeat(5_000),
        format!("[ {} ]", "! ".repeat(50_000)),
        format!("a {}b", "|& c ".repeat(5_000)),
        format!("sed 's/{}/' a", "[".repeat(60_000)),
        format!("sed '{}' a", "s/[/]/x/;".repeat(6_000)),
        format!("awk '{}' a", "(/[".repeat(20_000)),
        format!("awk '{}' a", "f(".repeat(30_000)),
        format!("awk '{}' a", "length(a)".repeat(440)),
        format!("grep '{}' a", "[".repeat(60_000)),
    ];
    let start = std::time::Instant::now();
    for text in &texts {
        if let Ok(script) = Script::parse(text) {
            check(&script, Edition::Posix2024);
        }
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn the_page_lists_every_rule() {
    let page = include_str!("../../../../docs/posix.md");
    let mut listed = String::new();
    let mut layer = "";
    for rule in rules() {
        if rule.layer != layer {
            layer = rule.layer;
            listed += "\n### ";
            listed += layer;
            listed += "\n\n| rule | example | what to write instead |\n| --- | --- | --- |\n";
        }
        let cell = |text: &str| text.replace('|', "\\|");
        let example = rule.example.map(|it| format!("`` {} ``", cell(it))).unwrap_or_default();
        let instead = cell(rule.instead.unwrap_or("depends; the report says it"));
        writeln!(listed, "| `{}` | {example} | {instead} |", rule.id).expect("a string takes it");
    }
    let (_, rest) = page.split_once("<!-- rules -->\n").expect("the page has the mark");
    let (shown, _) = rest.split_once("\n<!-- end of rules -->").expect("the page has the mark");
    assert_eq!(shown, listed, "copy the list into docs/posix.md");
}

proptest! {
    #[test]
    fn every_span_is_a_piece_of_the_text(text in "[ -~\n]{0,60}") {
        if let Ok(script) = Script::parse(&text) {
            for edition in [Edition::Posix2017, Edition::Posix2024] {
                let report = check(&script, edition);
                for span in report.violations.iter().map(|it| it.span).chain(report.unknown_utilities.iter().map(|it| it.span)) {
                    prop_assert!(text.get(span.start..span.end).is_some());
                }
            }
        }
    }

    #[test]
    fn quoting_hides_everything(text in "[ -&(-~]{0,40}") {
        let quoted = format!("printf '%s' '{text}'");
        let found = found(&quoted, Edition::Posix2017);
        prop_assert!(found.is_empty(), "{:?}", found);
    }

    #[test]
    fn no_words_of_shell_bring_it_down(words in prop::collection::vec(
        prop::sample::select(vec![
            "echo", "-n", "[", "]", "[[", "]]", "find", "-exec", "{}", ";", "\\;", "+", "kill", "-s", "trap", "''", "sh", "-c",
            "'a b'", "$x", "\"$y\"", "--", "-", "set", "-o", "time", "-p", "sudo", "env", "A=1", "é", "-é", "dd", "bs=", "date", "+%",
            "~+", "{a,b}", "$((", "))", "<(", ")", "|&", "&>", "f", "test", "-a", "(", "\\(", "printf", "%", "'\\'", "head", "-5", "read",
        ]),
        0..12,
    )) {
        if let Ok(script) = Script::parse(&words.join(" ")) {
            check(&script, Edition::Posix2017);
            check(&script, Edition::Posix2024);
        }
    }
}

#[test]
fn places_lie_inside_the_text() {
    for text in ["(()j>())", "((a))", "(( é ))"] {
        let Ok(script) = Script::parse(text) else { continue };
        for violation in check(&script, Edition::default()).violations {
            assert!(text.get(violation.span.start..violation.span.end).is_some(), "{violation:?}");
        }
    }
}
