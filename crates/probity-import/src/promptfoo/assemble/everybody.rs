//! Who is asked: the providers of a configuration, and those that only tests name.

use crate::{
    note::At,
    promptfoo::{Context, providers::Provider},
};

/// All providers that are asked something.
pub(super) struct Everybody {
    /// First those of the configuration, then those that only tests name.
    pub(super) all: Vec<Provider>,
    /// How many the configuration has.
    named: usize,
}

impl Everybody {
    pub(super) fn of<'p>(
        mut all: Vec<Provider>,
        of_tests: impl IntoIterator<Item = &'p Provider>,
    ) -> Self {
        let named = all.len();
        for own in of_tests {
            if all.iter().all(|it| it.backend != own.backend) {
                all.push(own.clone());
            }
        }
        Self { all, named }
    }

    /// Those that tests are asked of: the one that they name for themselves, or those that a filter means.
    pub(super) fn asked(&self, own: Option<&Provider>, filter: &[String]) -> Vec<Provider> {
        let Some(own) = own else {
            let meant = self.all[..self.named].iter().filter(|it| it.is_among(filter));
            return meant.cloned().collect();
        };
        let known = self.all.iter().find(|it| it.backend == own.backend);
        let for_chats = known.and_then(|it| it.for_chats.clone());
        vec![Provider { for_chats, ..own.clone() }]
    }

    /// promptfoo asks a test with a provider of its own again for each provider of the configuration.
    pub(super) fn note_once(&self, own: Option<&Provider>, at: &At, context: &mut Context<'_>) {
        if let Some(own) = own.filter(|_| self.named > 1) {
            let what = format!(
                "`{}` is asked these tests once; promptfoo asks it {} times, once for each provider",
                own.id, self.named,
            );
            context.notes.assumed(at.clone(), what, "set `repeat` of the runner to ask it again");
        }
    }
}
