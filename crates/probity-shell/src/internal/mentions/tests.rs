use super::*;

fn of(text: &str) -> Mentions {
    Mentions::of(&Script::parse(text).unwrap())
}

#[test]
fn find_says_what_it_looks_for() {
    let found =
        of("find ~/src /var/log -type f -name '*.log' -size +10M -mtime -7 -perm -u+rw -user bob \
         -exec grep -l 'disk full' {} \\;");
    assert_eq!(found.paths["~/src"], Role::Directory);
    assert_eq!(found.paths["/var/log"], Role::Directory);
    assert!(found.names.contains("*.log"));
    assert_eq!(found.sizes, [10 << 20].into());
    assert_eq!(found.ages, [7 * 86_400].into());
    assert_eq!(found.modes, [0o600].into());
    assert!(found.users.contains("bob"));
    let text = TextPattern { pattern: "disk full".to_owned(), syntax: Syntax::Basic };
    assert_eq!(found.texts, [text].into());
    assert_eq!(found.programs, ["find".to_owned(), "grep".to_owned()].into());
}

#[test]
fn a_path_is_a_source_or_a_target() {
    let found = of("sudo cp -r a b/ && sort c.txt > d.txt; mkdir e; cd f; tar -xzf g.tgz -C h");
    for (path, role) in [
        ("a", Role::Any),
        ("b/", Role::Target),
        ("c.txt", Role::File),
        ("d.txt", Role::Target),
        ("e", Role::Target),
        ("f", Role::Directory),
        ("g.tgz", Role::Any),
        ("h", Role::Directory),
    ] {
        assert_eq!(found.paths.get(path), Some(&role), "{path}");
    }
}

#[test]
fn a_variable_that_nobody_sets_is_taken_to_hold_its_name() {
    let found = of("x=1; find \"$LOCATION\" -name $x; cat \"$1\" $HOME/notes");
    assert_eq!(found.variables["LOCATION"], "location");
    assert_eq!(found.variables["1"], "arg1");
    assert!(!found.variables.contains_key("x"));
    assert_eq!(found.paths["location"], Role::Directory);
    assert_eq!(found.paths["arg1"], Role::File);
    assert_eq!(found.paths["~/notes"], Role::File);
    assert!(found.names.contains("1"));
}

#[test]
fn scripts_of_sed_and_awk_say_lines_columns_and_patterns() {
    let found = of(
        "sed -n '3,5p; /err/d' f | awk -F: '$2 == \"root\" && /ad[am]/ {print $7}' | cut -d, -f4",
    );
    let patterns: Vec<_> = found.texts.iter().map(|it| &*it.pattern).collect();
    assert_eq!(patterns, ["ad[am]", "err", "root"]);
    assert_eq!(found.numbers, [2, 3, 4, 5, 7].into());
    assert_eq!(found.separators, [",".to_owned(), ":".to_owned()].into());
}

#[test]
fn texts_within_texts_are_read() {
    let found =
        of("find . -exec sh -c 'wc -l < \"$1\" > out.txt' _ {} \\; | xargs -I{} cat notes.md");
    assert_eq!(found.paths["out.txt"], Role::Target);
    assert_eq!(found.paths["notes.md"], Role::File);
    assert!(found.variables.is_empty());
}

#[test]
fn it_is_known_whether_the_working_directory_matters() {
    for (text, here) in [
        ("find /a -name x", false),
        ("find -name x", true),
        ("ls .", true),
        ("cat /x", false),
        ("cat x", true),
    ] {
        assert_eq!(of(text).here, here, "{text}");
    }
    assert_eq!(of("find . -type d").kinds, ['d'].into());
}

#[test]
fn processes_are_mentioned_by_name() {
    let found = of("pkill nginx; killall worker");
    assert_eq!(found.processes, ["nginx".to_owned(), "worker".to_owned()].into());
}
