//! Conversations: tests with prompts that go on from earlier ones.

use std::collections::BTreeMap;

use super::{Everybody, Group, add_runners};
use crate::{
    draft::{Asks, DatasetDraft, DatasetRef, RunnerDraft, Setup},
    promptfoo::{
        Context, conversation, options::Around, prompts::Prompt, providers::Provider,
        tests::Generator,
    },
};

impl Group {
    /// Why its tests cannot be turns of conversations. `is_torn` says that others of these are elsewhere.
    fn no_turns(&self, is_torn: bool) -> Option<&'static str> {
        if self.is_given {
            Some("its tests bring their replies")
        } else if self.code.is_some() {
            Some("code makes variables of its tests")
        } else if self.around != Around::default() {
            Some("`prefix` and `suffix` have no place in a conversation")
        } else if is_torn {
            Some("tests of one conversation are judged or asked in different ways")
        } else {
            None
        }
    }
}

/// Adds the conversations that tests are with prompts that go on from earlier ones.
pub(super) fn add_talks(
    talks: &[Prompt],
    groups: &[Group],
    everybody: &Everybody,
    functions: &[Generator],
    context: &mut Context<'_>,
) {
    for talk in talks {
        for group in groups {
            let asked = everybody.asked(group.provider.as_ref(), &group.providers);
            let others = groups.iter().filter(|it| !std::ptr::eq(*it, group));
            let mut others = others.filter(|it| talk.is_among(&it.prompts));
            let is_torn = others.any(|it| conversation::share(&it.cases, &group.cases));
            add_conversations(talk, group, is_torn, &asked, context);
        }
        for Generator { at, .. } in functions {
            let what = format!("tests that code makes, with the prompt `{}`", talk.variant.name);
            let advice = "write them out: which conversation they belong to is not known before";
            context.notes.lost(at.clone(), what, advice);
        }
    }
}

/// Adds the conversations that tests are with a prompt that goes on from earlier ones.
fn add_conversations(
    talk: &Prompt,
    group: &Group,
    is_torn: bool,
    providers: &[Provider],
    context: &mut Context<'_>,
) {
    let Asks::MessagesTemplate(template) = &talk.variant.asks else { return };
    if !talk.is_among(&group.prompts) {
        return;
    }
    let cases = match group.no_turns(is_torn) {
        Some(why) => Err(why.to_owned()),
        None => conversation::cases(template, &group.cases, &group.setup),
    };
    let cases = match cases {
        Ok(mut cases) => {
            for case in &mut cases {
                case.case.id = context.ids.unique(&case.case.id);
            }
            cases
        }
        Err(why) => {
            let what = format!("prompt `{}` goes on from earlier tests: {why}", talk.variant.name);
            let advice = "write a case with `turns`, see docs/conversations.md";
            return context.notes.lost(talk.variant.at.clone(), what, advice);
        }
    };
    let taken = |name: &str| context.draft.datasets.iter().any(|it| it.name == name);
    let numbered = (1..).map(|number| match number {
        1 => "conversations".to_owned(),
        number => format!("conversations-{number}"),
    });
    let name = numbered.into_iter().find(|it| !taken(it)).unwrap_or_default();
    let setup = Setup {
        assertions: Vec::new(),
        threshold: None,
        transform: None,
        prompt_vars: BTreeMap::new(),
        ..group.setup.clone()
    };
    let base = RunnerDraft {
        name: "conversations".to_owned(),
        at: talk.variant.at.clone(),
        comments: Vec::new(),
        kind: None,
        dataset: vec![DatasetRef::Draft(name.clone())],
        backends: Vec::new(),
        setup,
        prompts: Vec::new(),
    };
    let mut whole = talk.clone();
    whole.variant.asks = Asks::Template("{{ prompt }}".to_owned());
    let asked = providers.iter();
    let asked: Vec<Provider> =
        asked.map(|it| Provider { for_chats: Some(it.backend.clone()), ..it.clone() }).collect();
    add_runners(&base, &[&whole], &asked, &cases, context);
    context.draft.datasets.push(DatasetDraft { name, cases, ..DatasetDraft::default() });
}
