use std::fs;

use probity_load::dataset::parse_yaml;

use super::*;
use crate::{note::Notes, source::Source};

#[test]
fn a_file_is_read_once_however_often_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("parts.yaml"), "a: 1\nb: { $ref: '#/a' }\n").unwrap();
    let (mut source, mut notes) = (Source::new(folder.path(), false).unwrap(), Notes::default());
    let before = source.text("parts.yaml").unwrap().base;
    let once = source.text("parts.yaml").unwrap().base - before;
    let mut context = Context::new(&mut source, &mut notes);
    let root = parse_yaml(
        "[{ $ref: 'parts.yaml#/a' }, { $ref: 'parts.yaml#/b' }, { $ref: 'parts.yaml#/c' }]",
    );
    let resolved = resolved(root.unwrap(), &mut context);
    assert_eq!(resolved.to_json(), serde_json::json!([1, 1, null]));
    let lost: Vec<&str> = notes.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(lost, ["`$ref: parts.yaml#/c` leads nowhere"]);
    // All bytes that are read get numbers: the file was read once in between.
    assert_eq!(source.text("parts.yaml").unwrap().base - before, 3 * once);
}
