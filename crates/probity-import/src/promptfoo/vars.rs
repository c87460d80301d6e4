//! Variables of tests: values, files, lists that stand for several tests.

use super::{Context, tests::Vars};
use probity_core::located::Node;

/// Cases that one test may become when its variables are lists.
const MOST_COMBINATIONS: usize = 1000;

/// The variables of a test.
pub(super) fn read(node: &Node, context: &mut Context<'_>) -> Vars {
    if node.as_str().is_some() {
        context.lost(node, "variables from another file", "write them into the test");
        return Vars::new();
    }
    node.entries().iter().map(|it| (it.key.clone(), it.node.to_json())).collect()
}

/// Variables whose value is a list stand for each of its items; none if there are too many.
pub(super) fn combinations(vars: &Vars) -> Vec<Vars> {
    let mut all = vec![Vars::new()];
    for (name, value) in vars {
        let list = value.as_array().filter(|items| !items.is_empty());
        let values = list.map_or(std::slice::from_ref(value), Vec::as_slice);
        if all.len() * values.len() > MOST_COMBINATIONS {
            return Vec::new();
        }
        all = all
            .iter()
            .flat_map(|vars| {
                values.iter().map(|value| {
                    let mut vars = vars.clone();
                    vars.insert(name.clone(), value.clone());
                    vars
                })
            })
            .collect();
    }
    all
}
