//! What all tests share is not copied for each of them.

use probity_load::dataset::parse_yaml;

use super::*;
use crate::{note::Notes, source::Source};

#[test]
fn a_test_has_no_copy_of_what_all_share() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = Source::new(folder.path(), false).unwrap();
    let mut notes = Notes::default();
    let root = parse_yaml(
        "defaultTest: { vars: { document: long }, assert: [{ type: contains, value: x }] }\n\
         tests: [{ vars: { n: 1 } }, { vars: { n: 2 } }]\n",
    );
    let tests =
        read(&root.unwrap(), Form::Configuration, &mut Context::new(&mut source, &mut notes));
    assert_eq!(tests.setup.prompt_vars.len(), 1);
    assert_eq!(tests.setup.assertions.len(), 1);
    for Test { case, setup, inherits, .. } in &tests.cases {
        assert!(*inherits);
        assert_eq!(case.case.prompt_vars.keys().collect::<Vec<_>>(), ["n"]);
        assert!(setup.prompt_vars.is_empty() && setup.assertions.is_empty());
    }
}
