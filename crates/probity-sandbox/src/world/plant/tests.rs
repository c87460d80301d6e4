use probity_shell::{Script, internal::mentions::Mentions};

use super::*;

fn planted(command: &str) -> Vec<World> {
    worlds(&Mentions::of(&Script::parse(command).unwrap()))
}

fn paths(world: &World) -> Vec<&str> {
    world.files.iter().map(|it| &*it.path).collect()
}

#[test]
fn sources_exist_and_targets_do_not() {
    let [first, again, near, ..] = &*planted("cp /testbed/a.php /testbed/b.php") else { panic!() };
    assert!(paths(first).contains(&"/testbed/a.php"));
    assert!(!paths(first).contains(&"/testbed/b.php"));
    assert!(paths(again).contains(&"/testbed/b.php"));
    assert!(!paths(near).contains(&"/testbed/a.php"));
}

#[test]
fn what_is_searched_for_is_there_on_both_sides_of_each_limit() {
    let worlds = planted("find /data -name '*.log' -size +10k -mtime -7");
    let files: Vec<_> = worlds[0]
        .files
        .iter()
        .filter(|it| {
            it.path.starts_with("/data/") && super::glob::extension(&it.path) == Some("log")
        })
        .collect();
    let size = |file: &&&File| match &file.content {
        Content::Bytes(bytes) => bytes.len() as u64,
        Content::Sparse(size) => *size,
        Content::Directory
        | Content::Noise { .. }
        | Content::Lines { .. }
        | Content::Link(_)
        | Content::Hard(_) => 0,
    };
    let week = 7 * 86_400;
    for (large, old) in [(true, true), (true, false), (false, true), (false, false)] {
        let fits = |it: &&&File| {
            (size(it) > 10 << 10) == large && it.age.is_some_and(|it| (it > week) == old)
        };
        assert!(files.iter().filter(fits).count() > 0, "large: {large}, old: {old}");
    }
}

#[test]
fn a_mentioned_user_is_another_one_at_first_and_then_the_own() {
    let worlds = planted("find . -user bob -group staff");
    assert_eq!((&*worlds[0].user, &*worlds[0].users[0].name), ("ada", "bob"));
    assert_eq!((&*worlds[1].user, &*worlds[1].group), ("bob", "staff"));
}

#[test]
fn nothing_is_planted_outside_of_a_world() {
    for command in ["cat ../../../../etc/x /usr/share/y /proc/z", "cat 'a\nb' \"$(x)\" http://x/y"]
    {
        for world in planted(command) {
            assert!(
                paths(&world).iter().all(|it| !it.contains("..") && !it.starts_with("/usr/share"))
            );
        }
    }
}

#[test]
fn parameters_have_the_values_that_are_planted() {
    let mentions = Mentions::of(&Script::parse("cp \"$1\" \"$3\"; cat $FILES").unwrap());
    assert_eq!(arguments(&mentions), ["arg1", "", "arg3"]);
    let worlds = worlds(&mentions);
    assert_eq!(worlds[0].variables["FILES"], "files");
    assert!(paths(&worlds[0]).contains(&"/home/ada/work/files"));
}

#[test]
fn a_place_is_planted_once_however_it_is_spelled() {
    for world in planted("find ./src docs ~/x /home/ada/x src -type l -name broken; cat vacant") {
        let mut all = paths(&world);
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count, "{}", world.name);
    }
}

#[test]
fn processes_that_are_looked_for_run() {
    let worlds = planted("pkill nginx; pgrep -f 'a b'");
    assert_eq!(worlds[0].processes, [["/opt/services/nginx"]]);
    assert!(paths(&worlds[0]).contains(&"/opt/services/nginx"));
}

#[test]
fn a_variable_that_is_a_text_has_columns_once() {
    let worlds = planted("echo $line | cut -d';' -f2; cat $file");
    assert_eq!((&*worlds[0].variables["line"], &*worlds[1].variables["line"]), ("line", TELLING));
    assert_eq!(worlds[1].variables["file"], "file");
}

#[test]
fn what_a_list_of_names_is_searched_for_is_a_name() {
    let [first, ..] = &*planted("find /data -type l | grep target_file | xargs ls -l") else {
        panic!()
    };
    assert!(paths(first).iter().any(|it| it.ends_with("/links/target_file")), "{first:?}");
}

#[test]
fn a_variable_for_several_files_has_two_once_and_not_in_their_order() {
    let worlds = planted("cat $FILES | md5sum");
    assert_eq!(worlds[0].variables["FILES"], "files");
    assert_eq!(worlds[1].variables["FILES"], "files.more files");
    assert!(paths(&worlds[1]).contains(&"/home/ada/work/files.more"));
}
