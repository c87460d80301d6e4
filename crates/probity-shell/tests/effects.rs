//! What we call equal must do the same: pairs of commands are run, each in a fresh copy of a small world, and what they
//! print and what they leave behind is compared.

use std::{
    collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command,
};

use probity_shell::{
    Script,
    equivalence::{Form, Verdict, are_equal, compare},
};
use proptest::{prelude::*, sample::select};

/// Pairs that are equal by our tables and can be run anywhere.
const PAIRS: &[(&str, &str)] = &[
    ("head f", "head -n 10 f"),
    ("head -5 f", "head -n 5 f"),
    ("head --lines=3 f", "head -n3 f"),
    ("sed -n 1,5p f", "head -n 5 f"),
    ("sed 3q f", "head -n 3 f"),
    ("tail f", "tail -n 10 f"),
    ("tail -3 f", "tail -n 3 f"),
    ("cat f | grep 1", "grep 1 f"),
    ("grep -e 1 f", "grep 1 f"),
    ("grep -in LINE f", "grep -n -i LINE f"),
    ("egrep '1|2' f", "grep -E '1|2' f"),
    ("fgrep . f", "grep -F . f"),
    ("grep -c line f", "grep --count line < f"),
    ("sort -r -u f", "sort -ur f"),
    ("sort -k2 -n f", "sort -n -k 2 f"),
    ("sort -t: -k1 p", "sort -k 1 -t ':' p"),
    ("cut -d: -f1 p", "cut -f 1 -d ':' p"),
    ("cut --fields=1,3 --delimiter=: p", "cut -d: -f1,3 p"),
    ("wc -l -w f", "wc -wl f"),
    ("cat f | wc -l", "wc -l < f"),
    ("nl f", "cat f | nl"),
    ("tac f", "cat f | tac"),
    ("rev f", "rev < f"),
    ("uniq -c f", "cat f | uniq --count"),
    ("cat -n f", "cat --number f"),
    ("fold -w 3 f", "fold --width=3 f"),
    ("paste -s -d, f", "paste -d, -s f"),
    ("awk '{ print $2 }' f", "cat f | awk '{print $2}'"),
    ("sed -e s/line/x/ f", "sed 's|line|x|' f"),
    ("sed -n -e 2p f", "sed -ne 2p f"),
    ("tr a-z A-Z < f", "cat f | tr a-z A-Z"),
    ("ls -la d", "ls -a -l d"),
    ("ls -1 d", "ls d -1"),
    ("ls --all d", "ls -a d"),
    ("ls -lS d", "ls -S -l d"),
    ("du -s d", "du --summarize d"),
    ("find d -name '*.txt' -type f", "find d -type f -name \"*.txt\" -print"),
    ("find . -name f", "find -name f"),
    ("find ./ -type f", "find . -type f"),
    ("find d \\( -name x.txt -or -name y \\)", "find d -name y -o -name x.txt"),
    ("find d ! -type d", "find d -not -type d"),
    ("find d -maxdepth 1 -name '*'", "find d -name '*' -maxdepth 1"),
    ("find d -perm 0644", "find d -perm 644"),
    ("find d -type f -exec rm {} \\;", "find d -type f -delete"),
    ("find d -type f -exec rm -f {} +", "find d -type f -delete"),
    ("find d -type f -print0 | xargs -0 cat", "find d -type f -exec cat {} +"),
    (
        "find d -name '*.txt' -print0 | xargs -0 -I% cp % .",
        "find d -name '*.txt' -exec cp {} . \\;",
    ),
    ("ls d | xargs -I % echo got %", "ls d | xargs -I {} echo got {}"),
    ("echo a b | xargs", "echo a b | xargs echo"),
    ("rm f p", "rm p f"),
    ("rm -r -f d", "rm -rf d"),
    ("rm --recursive d", "rm -R d"),
    ("cp -r d e", "cp -R d e"),
    ("cp f p d", "cp p f d"),
    ("cp -a d e", "cp -dR --preserve=all d e"),
    ("mkdir -p q/r", "mkdir --parents q/r"),
    ("mkdir one two", "mkdir two one"),
    ("touch n m", "touch m n"),
    ("touch n{1,2,3}", "touch n1 n2 n3"),
    ("ln -s f l", "ln --symbolic f l"),
    ("ln -sf f l", "ln -f -s f l"),
    ("chmod 0600 f", "chmod 600 f"),
    ("chmod u=rw,go=r f", "chmod 644 f"),
    ("chmod ug+x f", "chmod g+x,u+x f"),
    ("chmod a+x f p", "chmod ugo+x p f"),
    ("tar cf t.tar d && tar tf t.tar", "tar -c -f t.tar d && tar -tf t.tar"),
    (
        "tar --create --file=t.tar d; tar xf t.tar -C q 2>/dev/null; ls",
        "tar -cf t.tar d; tar -C q -xf t.tar 2>/dev/null; ls",
    ),
    ("dd if=f of=g bs=1k count=1 2>/dev/null", "dd of=g count=1 bs=1024 if=f 2>/dev/null"),
    ("echo a b", "echo 'a b'"),
    ("echo -n a", "echo -n 'a'"),
    ("echo 'a\tb'", "echo $'a\\tb'"),
    ("echo `echo x`", "echo $(echo x)"),
    ("echo \"${HOME}\"", "echo ~"),
    ("[ -f f ] && echo yes", "test -f f && echo yes"),
    ("[ a == a ] && echo yes", "test a = a && echo yes"),
    ("cat f > o", "cat f >o"),
    ("cat f 1> o", "cat f > o"),
    ("ls nothing &> o", "ls nothing > o 2>&1"),
    ("cat f >o 2>e", "cat f 2>e >o"),
    ("{ cat f; }", "cat f"),
    ("date +%F", "date +%Y-%m-%d"),
    ("basename /a/b.c .c", "basename '/a/b.c' \".c\""),
    ("seq 3", "seq \"3\""),
    ("bash -c 'ls -la d | wc -l'", "bash -c \"ls -a -l d | wc -l\""),
    ("env A=1 bash -c 'echo $A'", "env 'A=1' bash -c 'echo $A'"),
    ("for x in a b; do echo \"$x\"; done", "for x in 'a' b; do\n echo \"${x}\"\ndone"),
    (
        "if grep -q 1 f; then echo y; else echo n; fi",
        "if cat f | grep -q 1; then echo 'y'; else echo n; fi",
    ),
    ("whoami", "id -un"),
    ("base64 f", "base64 < f"),
    ("md5sum f", "md5sum \"f\""),
    ("comm -1 -2 f f", "comm -12 f f"),
    ("diff -q f p", "diff --brief f p"),
    ("split -l 4 f part", "split --lines=4 f part"),
    ("xargs -n 1 echo < f", "cat f | xargs -n1 echo"),
    ("gzip -k f && gunzip -c f.gz", "gzip --keep f && gzip -d -c f.gz"),
    ("pwd | wc -l", "pwd . | wc -l"),
    ("unlink f", "rm f"),
    ("unlink d", "rm d"),
    ("hostname", "uname -n"),
    ("arch", "uname -m"),
    ("groups", "id -Gn"),
    ("sort f | uniq", "sort -u f"),
    ("sort -r < f | uniq", "cat f | sort -ru"),
    ("ls -1 d | wc -l", "ls d | wc -l"),
    ("cat ./f", "cat f"),
    ("cat < .//d/./y", "cat d/y"),
    ("tr '[:lower:]' '[:upper:]' < f", "tr a-z A-Z < f"),
    ("awk -F: '{print $1}' p", "cut -d: -f1 p"),
    ("cat p | awk -F ':' '{ print $1 }'", "cut -d ':' -f 1 < p"),
    ("sed -n 1p f", "head -n 1 f"),
    ("sed 1,3d f", "tail -n +4 f"),
    ("find d -type f -print0 | xargs -0 chmod 600", "find d -type f -exec chmod 600 {} +"),
    ("sed -n '$p' f", "tail -n 1 f"),
    ("sed 1d f", "tail -n +2 f"),
    ("find d -type f -exec echo {} \\;", "find d -type f"),
    ("cp -p d/y z", "cp --preserve=mode,ownership,timestamps d/y z"),
    ("echo 'a b' | wc -w", "wc -w <<< 'a b'"),
    ("find d -type f -empty", "find d -size 0 -type f"),
    ("find d -name '*' -type f", "find d -type f"),
    ("find d -size 0b -type f", "find d -type f -size 0c"),
    ("printf 'a b\\n'", "echo a b"),
    ("printf '%s\\n' abc", "echo abc"),
    ("wc -l f | awk '{print $1}'", "wc -l < f"),
    ("wc -c d/y | cut -d' ' -f1", "cat d/y | wc -c"),
    ("awk '{sum+=$3} END{print sum}' f", "awk '{ sum += $3 } END { print sum }' f"),
    ("awk '/1/&&/line 2/' f", "awk '/1/ && /line 2/' f"),
    ("awk '$3>3' f", "awk '$3 > 3' f"),
    (
        "awk '$1!~/x/&&$2==1{print $3-1,-$2}' f",
        "awk '$1 !~ /x/ && $2 == 1 { print $3 - 1, -$2 }' f",
    ),
    ("awk '{print ($2+$3)/2 \" a = b\"}' f", "awk '{ print ( $2 + $3 ) / 2 \" a = b\" }' f"),
    ("awk '{print NR%2?\"odd\":\"even\"}' f", "awk '{ print NR % 2 ? \"odd\" : \"even\" }' f"),
    ("ls d nothing |& sort", "ls d nothing 2>&1 | sort"),
    ("(ls nothing; ls d) > o |& wc -l", "(ls nothing; ls d) > o 2>&1 | wc -l"),
    ("kill -9 999999", "kill -s KILL 999999"),
];

fn build(world: &Path) {
    let lines: Vec<String> =
        (1..=14).map(|number| format!("line {} {number}\n", number % 3)).collect();
    fs::write(world.join("f"), lines.concat()).expect("the folder is ours");
    fs::write(world.join("p"), "a:1:x\nb:2:y\nc:0:z\n").expect("the folder is ours");
    fs::create_dir_all(world.join("d/sub")).expect("the folder is ours");
    for (name, text) in
        [("d/x.txt", "x\n"), ("d/y", "why\n"), ("d/sub/z.txt", "zed\n"), ("d/.hidden", "")]
    {
        fs::write(world.join(name), text).expect("the folder is ours");
        let file = fs::File::options().write(true).open(world.join(name)).expect("just written");
        let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        file.set_modified(then).expect("its time can be set");
    }
}

/// What a run printed and what it left behind.
#[derive(Debug, PartialEq, Eq)]
struct Effect {
    printed: String,
    files: BTreeMap<String, String>,
}

fn run(command: &str) -> Effect {
    let world = tempfile::tempdir().expect("a folder for the test");
    build(world.path());
    let output = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", command])
        .current_dir(world.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/nobody")
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .output()
        .expect("bash is on every machine that runs these tests");
    let mut files = BTreeMap::new();
    look(world.path(), world.path(), &mut files);
    Effect { printed: String::from_utf8_lossy(&output.stdout).into_owned(), files }
}

fn look(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("it was there") {
        let entry = entry.expect("it can be listed");
        let name = entry.path().strip_prefix(root).expect("it is below").display().to_string();
        let kind = entry.metadata().expect("it has data");
        let mode = kind.permissions().mode();
        if kind.is_dir() {
            files.insert(name, format!("folder {mode:o}"));
            look(root, &entry.path(), files);
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).expect("it is a link");
            files.insert(name, format!("link to {}", target.display()));
        } else {
            let content = fs::read(entry.path()).expect("it can be read");
            // Archives carry the time they were made.
            let archive = Path::new(&name).extension().is_some_and(|it| it == "tar" || it == "gz");
            let shown =
                if archive { "an archive".into() } else { String::from_utf8_lossy(&content) };
            files.insert(name, format!("file {mode:o} {shown}"));
        }
    }
}

#[test]
fn equal_commands_have_equal_effects() {
    let mut wrong = Vec::new();
    for (left, right) in PAIRS {
        let found = compare(&parse(left), &parse(right));
        if found.verdict != Verdict::Equal {
            wrong.push(format!("not called equal: `{left}`, `{right}`: {:?}", found.canonical));
            continue;
        }
        let form = &found.canonical[0];
        let [one, two, three] = [left, right, form.as_str()].map(run);
        if one != two || one != three {
            wrong.push(format!(
                "called equal: `{left}`, `{right}`, `{form}`:\n{one:?}\n{two:?}\n{three:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn parse(text: &str) -> Script<'_> {
    Script::parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

fn commands() -> Vec<&'static str> {
    let sides = PAIRS.iter().flat_map(|(left, right)| [*left, *right]);
    // A comment is no command; the others have no table, or no form of their own.
    sides.chain(["# x", "frobnicate -x", "frobnicate  -x", "[[ -f a ]]", "ls &"]).collect()
}

/// Each command joins the first group whose first member it is equal to. If that says the same as every comparison
/// does, equality sorts commands into classes.
#[test]
fn groups_of_forms_say_what_comparisons_say() {
    let forms: Vec<Form> = commands().iter().map(|it| Form::of(&parse(it))).collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, form) in forms.iter().enumerate() {
        match groups.iter_mut().find(|group| are_equal(&forms[group[0]], form)) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    assert!(groups.len() > 50 && groups.len() < forms.len() - 50, "{}", groups.len());
    let group_of = |at: usize| groups.iter().position(|group| group.contains(&at));
    let group_of: Vec<_> = (0..forms.len()).map(group_of).collect();
    for (left, one) in forms.iter().enumerate() {
        for (right, two) in forms.iter().enumerate() {
            let together = group_of[left] == group_of[right] && !one.is_empty();
            assert_eq!(are_equal(one, two), together, "`{one}` and `{two}`");
        }
    }
}

proptest! {
    #[test]
    fn equal_forms_are_an_equal_verdict(left in select(commands()), right in select(commands())) {
        let equal = compare(&parse(left), &parse(right)).verdict == Verdict::Equal;
        prop_assert_eq!(are_equal(&Form::of(&parse(left)), &Form::of(&parse(right))), equal);
    }

    #[test]
    fn a_pair_of_the_list_is_equal_by_its_forms(pair in select(PAIRS)) {
        prop_assert!(are_equal(&Form::of(&parse(pair.0)), &Form::of(&parse(pair.1))));
    }
}
