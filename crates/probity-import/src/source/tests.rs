use std::fs;

use super::*;

fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Source) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join("in").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let source = Source::new(&folder.path().join("in"), false).unwrap();
    (folder, source)
}

fn place(source: &Source, node: &Node) -> String {
    source.at(&node.span).to_string()
}

#[test]
fn a_span_says_in_which_file_and_line_it_stands() {
    let (_folder, mut source) = project(&[
        ("a.yaml", "x: 1\ny:\n  z: 2\n"),
        ("b.jsonl", "# one\n{\"a\": 1}\n\n{\"a\": 2}\n{\n"),
        ("c.csv", "q,a\n\"two\nlines\",1\nlast,2\na,b,c\n"),
    ]);
    let (yaml, _) = source.tree("a.yaml").unwrap();
    let (jsonl, wrong) = source.tree("b.jsonl").unwrap();
    let (csv, too_long) = source.tree("c.csv").unwrap();
    assert_eq!(place(&source, yaml.get("y").unwrap().get("z").unwrap()), "a.yaml:3");
    assert_eq!(place(&source, &jsonl.items()[1]), "b.jsonl:4");
    assert_eq!(place(&source, &csv.items()[1]), "c.csv:4");
    assert_eq!(place(&source, csv.items()[1].get("a").unwrap()), "c.csv:4");
    assert!(wrong[0].to_string().starts_with("`b.jsonl`, line 5: "), "{wrong:?}");
    assert_eq!(too_long[0].to_string(), "`c.csv`, line 5: 3 cells under 2 names");
}

#[test]
fn what_is_read_again_counts_again() {
    let long = "x".repeat(3 * SMALLEST_READ);
    let (_folder, mut source) = project(&[("a.txt", "a"), ("long.txt", &long)]);
    source.spent = LARGEST_IMPORT - 6 * SMALLEST_READ;
    for name in ["a.txt", "long.txt", "a.txt", "a.txt"] {
        assert!(source.text(name).is_ok(), "{name}");
    }
    let error = source.text("a.txt").unwrap_err().to_string();
    assert!(error.contains("too many or too large"), "{error}");
}

#[test]
fn nothing_outside_the_folder_is_read() {
    let (folder, mut source) = project(&[("a.txt", "a"), ("sub/b.txt", "b")]);
    fs::write(folder.path().join("secret.txt"), "s").unwrap();
    let link = folder.path().join("in/link.txt");
    std::os::unix::fs::symlink(folder.path().join("secret.txt"), &link).unwrap();
    let secret = folder.path().join("secret.txt").display().to_string();
    for name in ["../secret.txt", "link.txt", "sub/../../secret.txt", secret.as_str()] {
        let error = source.text(name).unwrap_err();
        assert_eq!(error, Unreadable::Outside { name: name.to_owned() });
    }
    assert!(matches!(source.glob("../*.txt"), Err(Unreadable::Outside { .. })));
    assert_eq!(source.glob("*.txt").unwrap(), ["a.txt"]);
    assert_eq!(source.glob("**/*.txt").unwrap(), ["a.txt", "sub/b.txt"]);
    assert_eq!(source.files().count(), 0);
    assert_eq!(source.text("sub/../a.txt").unwrap().text, "a");
    assert_eq!(source.files().count(), 1);

    let mut open = Source::new(&folder.path().join("in"), true).unwrap();
    assert_eq!(open.text("../secret.txt").unwrap().text, "s");
}
