//! Makes suites, datasets and runs of what other tools have written, and the other way round.

/// Exports.
pub mod export;
pub mod results;
mod wire;

#[cfg(test)]
mod probe {
    #[test]
    fn probe() {
        for f in ["/tmp/rs/pf/out.json","/tmp/rs/pf/out.jsonl"] {
            let r = crate::results::read(std::path::Path::new(f), &Default::default()).unwrap().unwrap();
            println!("{f} {:?} {:?} {:?}", r.run.suite, r.run.notes, r.run.version);
            for l in &r.run.lanes { println!("{} {:?} {} {:?} {}", l.runner, l.variant, l.backend, l.model, l.results.len()); for x in &l.results { println!("   {} {} {:?} {:?} {:?} {}", x.case.id, x.repeat, x.outcome, x.reply, x.scores, x.case.criteria.assertions.len()); } }
        }
        for d in ["/tmp/rs/insp/logs-eval","/tmp/rs/insp/logs-json"] {
            let f = std::fs::read_dir(d).unwrap().next().unwrap().unwrap().path();
            let r = crate::results::read(&f, &Default::default()).unwrap().unwrap();
            println!("{f:?} {:?} {:?} {:?}", r.run.suite, r.run.notes, r.run.version);
            for l in &r.run.lanes { println!("{} {:?} {} {:?} {}", l.runner, l.variant, l.backend, l.model, l.results.len()); for x in &l.results { println!("   {} {} {:?} {:?} {:?} {:?}", x.case.id, x.repeat, x.outcome, x.reply, x.scores, x.request.messages.len()); } }
        }
    }
}
