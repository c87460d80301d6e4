//! Threads that read cases while the run goes on.

use std::{iter, sync::Arc, thread};

use probity_core::{case::TestCase, record::InputDigest};
use probity_grade::{Compiler, Expectation, Rules};
use tokio::sync::mpsc;

use super::{
    Cases, Done, Fed, Prepared, Reread, Stopped,
    ahead::{self, Room},
};
use crate::{backend::Backend, decide::Seen};

/// Reads the cases of lanes that are still to be asked, in a thread of its own.
///
/// The lanes are those of one runner on one backend, a variant each. They are about the same cases,
/// which are read and compiled once for all of them. They take turns on their backend, so that none
/// waits long for the others.
pub(crate) fn feed(
    lanes: Vec<(Cases, Done)>,
    backend: Arc<Backend>,
    rules: &'static Rules,
) -> Vec<mpsc::Receiver<Fed>> {
    // A lane that is slow must not keep the others from being fed.
    let share = ahead::BYTES / lanes.len().max(1);
    let (takers, receivers): (Vec<Taker>, Vec<_>) = lanes
        .into_iter()
        .map(|(cases, done)| {
            let (sender, receiver) = mpsc::channel(ahead::CASES);
            (Taker { cases, done, sender, room: Room::new(share), place: 0 }, receiver)
        })
        .unzip();
    let Some(cases) = takers.first().map(|it| it.cases.clone()) else { return receivers };
    let feeder = Feeder { cases, backend, takers, compiler: Compiler::new(rules) };
    #[cfg(test)]
    if !feeder.cases.given.is_empty() {
        feeder.given();
        return receivers;
    }
    #[cfg(all(feature = "simulated", not(test)))]
    if let Some(made) = feeder.cases.made.clone() {
        tokio::spawn(feeder.made(made));
        return receivers;
    }
    #[cfg(all(feature = "simulated", not(test)))]
    if crate::simulated::now_ms().is_some() {
        tokio::spawn(feeder.in_a_task());
        return receivers;
    }
    let functions = feeder.cases.functions.clone();
    thread::spawn(move || {
        // Whoever stopped wanting cases knows why.
        let _ = match feeder.cases.shuffle {
            None => feeder.in_order(),
            Some(seed) => feeder.in_random_order(seed),
        };
        functions.rest();
    });
    receivers
}

/// Reads cases for several lanes.
struct Feeder {
    /// Those of the first lane, which are those of all.
    cases: Cases,
    backend: Arc<Backend>,
    takers: Vec<Taker>,
    compiler: Compiler<'static>,
}

/// One of the lanes.
struct Taker {
    cases: Cases,
    done: Done,
    sender: mpsc::Sender<Fed>,
    room: Arc<Room>,
    /// Of the next case.
    place: u64,
}

impl Feeder {
    /// In the order of the dataset, one repeat after the other, and never all in memory.
    fn in_order(mut self) -> Result<(), Stopped> {
        let cases = self.cases.clone();
        for repeat in 0..cases.repeat {
            cases
                .reread(|case| self.feed(&Arc::new(case), repeat))
                .map_err(|error| self.broken(error))?;
        }
        Ok(())
    }

    /// In an order that chance draws of all cases and repeats: they are in memory for that.
    fn in_random_order(mut self, seed: u64) -> Result<(), Stopped> {
        for (case, repeat) in self.drawn(seed)? {
            self.feed(&case, repeat)?;
        }
        Ok(())
    }

    /// All cases and repeats, in the order that chance draws.
    fn drawn(&self, seed: u64) -> Result<Vec<(Arc<TestCase>, u32)>, Stopped> {
        let mut all: Vec<Arc<TestCase>> = Vec::new();
        let read = self.cases.reread(|case| {
            all.push(Arc::new(case));
            Ok(())
        });
        read.map_err(|error| self.broken(error))?;
        let mut order: Vec<(InputDigest, usize, u32)> = Vec::new();
        for (at, case) in all.iter().enumerate() {
            for repeat in 0..self.cases.repeat {
                let parts =
                    [b"order", &seed.to_le_bytes()[..], case.id.as_bytes(), &repeat.to_le_bytes()];
                order.push((InputDigest::of(parts), at, repeat));
            }
        }
        order.sort_unstable();
        Ok(order.into_iter().map(|(_, at, repeat)| (all[at].clone(), repeat)).collect())
    }

    /// Hands a case over to every lane that still wants cases.
    fn feed(&mut self, case: &Arc<TestCase>, repeat: u32) -> Result<(), Stopped> {
        let stated = match self.compiler.compile(case) {
            Ok(stated) => stated,
            // It could be compiled when the dataset was checked, so it has to be told of.
            Err(problems) => {
                let why = problems.first().map_or("", |it| &it.message);
                return Err(
                    self.stop(&format!("case `{}` cannot be judged any more: {why}", case.id))
                );
            }
        };
        // The last one gets the original.
        let mut copies = iter::repeat_n(stated, self.takers.len());
        let backend = &self.backend;
        self.takers.retain_mut(|taker| match copies.next() {
            Some(stated) => taker.take(case, repeat, backend, stated).is_ok(),
            None => true,
        });
        if self.takers.is_empty() { Err(Stopped) } else { Ok(()) }
    }

    /// Says that the dataset cannot be read on.
    fn broken(&self, error: Reread) -> Stopped {
        match error {
            Reread::Changed => self.stop("the dataset changed while it was being run"),
            Reread::Unwanted => Stopped,
        }
    }

    /// Ends all lanes, and says why.
    fn stop(&self, why: &str) -> Stopped {
        for taker in &self.takers {
            let _ = taker.sender.blocking_send(Fed::Broken(why.to_owned()));
        }
        Stopped
    }

    /// The same cases in the same order, in a task: a thread would not share the time of a simulation.
    #[cfg(all(feature = "simulated", not(test)))]
    async fn in_a_task(mut self) {
        let order = match self.cases.shuffle {
            Some(seed) => self.drawn(seed),
            None => {
                let cases = self.cases.clone();
                let mut all = Vec::new();
                let read = (0..cases.repeat).try_for_each(|repeat| {
                    cases.reread(|case| {
                        all.push((Arc::new(case), repeat));
                        Ok(())
                    })
                });
                read.map(|()| all).map_err(|_| Stopped)
            }
        };
        let Ok(order) = order else { return };
        for (case, repeat) in order {
            for at in (0..self.takers.len()).rev() {
                let Ok(stated) = self.compiler.compile(&case) else { return };
                let taker = &mut self.takers[at];
                let fed = match taker.next(&case, repeat, &self.backend, stated) {
                    Ok(Some(fed)) => fed,
                    Ok(None) => continue,
                    Err(why) => Fed::Broken(why),
                };
                if taker.sender.send(fed).await.is_err() {
                    self.takers.remove(at);
                }
            }
        }
    }

    /// Cases that are in no file, in a task: time that is simulated stands still while it has work.
    #[cfg(all(feature = "simulated", not(test)))]
    async fn made(mut self, made: crate::simulated::Made) {
        for at in 0..made.count {
            let case = Arc::new((made.case)(at));
            for Taker { cases, sender, place, .. } in &mut self.takers {
                let Ok(stated) = self.compiler.compile(&case) else { return };
                let Some(prepared) = cases.prepare(&case, 0, &self.backend, stated) else { return };
                let prepared = Prepared { place: *place, ..prepared };
                if sender.send(Fed::Case(Box::new(prepared), None)).await.is_err() {
                    return;
                }
                *place += 1;
            }
        }
    }

    /// Cases that are in no file, all at once.
    #[cfg(test)]
    fn given(mut self) {
        for repeat in 0..self.cases.repeat {
            for case in self.cases.given.clone() {
                let case = Arc::new(case);
                for Taker { cases, sender, place, .. } in &mut self.takers {
                    let stated = self.compiler.compile(&case).unwrap();
                    let prepared = cases.prepare(&case, repeat, &self.backend, stated).unwrap();
                    let prepared = Prepared { place: *place, ..prepared };
                    sender.try_send(Fed::Case(Box::new(prepared), None)).unwrap();
                    *place += 1;
                }
            }
        }
    }
}

impl Taker {
    /// Takes a case, unless it is done.
    fn take(
        &mut self,
        case: &Arc<TestCase>,
        repeat: u32,
        backend: &Backend,
        stated: Expectation<'static>,
    ) -> Result<(), Stopped> {
        match self.next(case, repeat, backend, stated) {
            Ok(Some(mut fed)) => {
                if let Fed::Case(prepared, held) = &mut fed {
                    *held = Some(self.room.take(ahead::weight(prepared)));
                }
                self.sender.blocking_send(fed).map_err(|_| Stopped)
            }
            Ok(None) => Ok(()),
            Err(why) => {
                let _ = self.sender.blocking_send(Fed::Broken(why));
                Err(Stopped)
            }
        }
    }

    /// What becomes of a case: nothing, if it is done and nobody counts; or why it cannot be asked.
    fn next(
        &mut self,
        case: &Arc<TestCase>,
        repeat: u32,
        backend: &Backend,
        stated: Expectation<'static>,
    ) -> Result<Option<Fed>, String> {
        let Self { cases, done, place, .. } = self;
        let Some(mut prepared) = cases.prepare(case, repeat, backend, stated) else {
            // It worked when the dataset was checked, so it has to be told of.
            if let Some(function) = &cases.prompt.function {
                let why = cases.functions.failure(&function.text).unwrap_or_default();
                return Err(format!("the prompt function `{}` failed: {why}", function.text));
            }
            return Ok(None);
        };
        prepared.place = *place;
        *place += 1;
        let fed = match done.outcome(&prepared.case_id, repeat, prepared.input) {
            Some((class, verdict)) => {
                if !cases.tells_known {
                    return Ok(None);
                }
                let Prepared { place, category, .. } = prepared;
                Fed::Known(Seen { place, category, class, verdict })
            }
            None => Fed::Case(Box::new(prepared), None),
        };
        Ok(Some(fed))
    }
}

#[cfg(test)]
mod tests {
    use probity_core::request::Sampling;
    use probity_load::{
        dataset::{self, Item},
        suite::PromptConfig,
    };

    use super::*;
    use crate::loading::DatasetFiles;

    /// The lanes of two variants of a runner that asks a thousand cases.
    fn fed(folder: &std::path::Path) -> Vec<mpsc::Receiver<Fed>> {
        let path = folder.join("cases.jsonl");
        let case = |at: usize| format!("{{\"id\":\"case-{at}\",\"prompt\":\"p\"}}\n");
        std::fs::write(&path, (0..1000).map(case).collect::<String>()).unwrap();
        let read = dataset::read(&[&path], &|_| Vec::new(), &mut |_: Item| {});
        let lane = |temperature: f64| {
            let sampling = Sampling { temperature: Some(temperature), ..Sampling::default() };
            let mut files = DatasetFiles::default();
            files.paths.push(path.clone());
            let cases = Cases {
                files,
                prompt: Arc::new(PromptConfig { sampling, ..PromptConfig::default() }),
                repeat: 1,
                contents: read.contents,
                ..Cases::default()
            };
            (cases, Done::default())
        };
        feed(vec![lane(0.0), lane(1.0)], Arc::new(Backend::nobody("b")), &RULES)
    }

    static RULES: std::sync::LazyLock<Rules> = std::sync::LazyLock::new(Rules::default);

    fn next(receiver: &mut mpsc::Receiver<Fed>) -> Option<Prepared> {
        match receiver.blocking_recv()? {
            Fed::Case(prepared, _) => Some(*prepared),
            Fed::Known(_) | Fed::Broken(_) => panic!("a case"),
        }
    }

    #[test]
    fn variants_get_the_same_cases_of_one_reading() {
        let folder = tempfile::tempdir().unwrap();
        let mut lanes = fed(folder.path());
        for _ in 0..1000 {
            let [cold, hot] = [0, 1].map(|at| next(&mut lanes[at]).unwrap());
            assert!(Arc::ptr_eq(&cold.case, &hot.case));
            assert_ne!(cold.input, hot.input);
            assert_eq!((cold.place, cold.request.sampling.temperature), (hot.place, Some(0.0)));
        }
        assert!(lanes.iter_mut().all(|it| next(it).is_none()));
    }

    /// What a lane of a case that names a file of tools ends with, if the folder changes after it was checked.
    fn end_after(change: impl FnOnce(&std::path::Path)) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let (path, tools) = (folder.path().join("cases.jsonl"), folder.path().join("tools.json"));
        std::fs::write(&path, r#"{"id":"a","prompt":"p","tools":"tools.json"}"#).unwrap();
        std::fs::write(&tools, r#"[{"name":"look"}]"#).unwrap();
        let read = dataset::read(&[&path], &|_| Vec::new(), &mut |_: Item| {});
        assert_eq!((read.cases, read.errors), (1, 0));
        change(folder.path());
        let mut files = DatasetFiles::default();
        files.paths.push(path);
        let cases = Cases { files, repeat: 1, contents: read.contents, ..Cases::default() };
        let lane = vec![(cases, Done::default())];
        let mut fed = feed(lane, Arc::new(Backend::nobody("b")), &RULES).remove(0);
        std::iter::from_fn(|| fed.blocking_recv()).find_map(|it| match it {
            Fed::Broken(why) => Some(why),
            Fed::Case(..) | Fed::Known(_) => None,
        })
    }

    #[test]
    fn a_file_that_a_case_names_is_part_of_the_dataset() {
        assert_eq!(end_after(|_| {}), None);
        let rewritten = |name: &'static str, text: &'static str| {
            end_after(move |folder| std::fs::write(folder.join(name), text).unwrap())
        };
        let gone = end_after(|folder| std::fs::remove_file(folder.join("tools.json")).unwrap());
        for end in [
            rewritten("tools.json", r#"[{"name":"take"}]"#),
            rewritten("tools.json", "["),
            gone,
            rewritten("cases.jsonl", r#"{"id":"b","prompt":"p","tools":"tools.json"}"#),
        ] {
            assert_eq!(end.unwrap(), "the dataset changed while it was being run");
        }
    }

    #[test]
    fn a_variant_that_wants_no_more_cases_does_not_hold_up_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut lanes = fed(folder.path());
        let mut other = lanes.remove(1);
        assert!(next(&mut lanes[0]).is_some());
        drop(lanes);
        let mut count = 0;
        while next(&mut other).is_some() {
            count += 1;
        }
        assert_eq!(count, 1000);
    }
}
