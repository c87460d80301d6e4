//! Whole commands that write the same.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use crate::{
    Script,
    canonical::{Form, command::Token},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Groups {
    same: Vec<Vec<String>>,
}

static SYNONYMS: LazyLock<BTreeMap<Vec<Token>, Vec<Token>>> = LazyLock::new(|| {
    let groups: Groups = table!("synonyms");
    let mut synonyms = BTreeMap::new();
    for group in groups.same {
        let mut forms = group.iter().map(|text| tokens(text));
        let first = forms.next().expect("a group names at least one command");
        synonyms.extend(forms.map(|other| (other, first.clone())));
    }
    synonyms
});

/// The words of a command of the file, not yet replaced by a synonym.
fn tokens(text: &str) -> Vec<Token> {
    let script = Script::parse(text).expect("a test reads the file");
    match Form::without_synonyms(&script) {
        Form::Command(command) => command.tokens,
        Form::Compound(_) | Form::Text(_) => Vec::new(),
    }
}

pub(super) fn of(tokens: &[Token]) -> Option<Vec<Token>> {
    // Only short commands are in the file.
    if tokens.len() > 4 {
        return None;
    }
    SYNONYMS.get(tokens).cloned()
}
