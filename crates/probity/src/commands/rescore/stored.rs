//! Results that are judged by the criteria that stand in the run itself.

use std::path::Path;

use probity_core::record::{CaseRecord, Lane, RunInfo};
use probity_grade::Compiler;
use probity_run::rescore::{ByOwnCase, by_own_case};
use probity_store::{NewRun, Reader, StoreError, new_run_id};

use super::{Judged, Writer};
use crate::{
    cli::report::RescoreArgs,
    clock,
    commands::{
        dataset::counted,
        project::settings_alone,
        report::{Reports, refuse_inputs},
        rules,
    },
    exit::Exit,
    failure::Failure,
    printer::Printer,
};

pub(super) fn run(args: &RescoreArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let store = Path::new(&settings.store);
    let reader = Reader::open(store)?;
    let origin = reader.find(&args.run)?;
    refuse_inputs(&reader, &origin, None, &args.outputs)?;
    let reports = Reports::create(&args.outputs)?;
    let lanes = reader.lanes(&origin)?;
    let started_ms = clock::now_ms();
    let new = NewRun {
        run_id: new_run_id(started_ms, fastrand::u64(..)),
        suite: origin.suite.clone(),
        started_ms,
        info: RunInfo {
            probity_version: env!("CARGO_PKG_VERSION").to_owned(),
            selection: origin.info.selection.clone(),
            rescored_from: Some(origin.run_id.clone()),
            imported: origin.info.imported.clone(),
            ..RunInfo::default()
        },
    };
    let all: Vec<Lane> = lanes.iter().map(|it| it.lane.clone()).collect();
    let mut writer = Writer::begin(store, &new, all)?;
    let rules = rules::without_suite([]);
    let mut compiler = Compiler::new(&rules);
    let mut kept = 0;
    for (at, lane) in lanes.iter().enumerate() {
        let mut results = 0;
        let mut written: Result<(), StoreError> = Ok(());
        reader.cases(lane, |record| {
            if written.is_ok() {
                let ByOwnCase { record, is_judged } =
                    by_own_case(record, &lane.lane.backend, &mut compiler);
                kept += usize::from(!is_judged);
                results += 1;
                written = writer.add(at, CaseRecord { calls: 0, ..record });
            }
            Ok(())
        })?;
        written?;
        writer.end_lane(at, lane.status.clone(), results)?;
    }
    writer.finish()?;
    if kept > 0 {
        let results = counted(kept, "result");
        printer
            .note(&format!("{results} without criteria that can be checked here, kept as judged"));
    }
    let run_id = &new.run_id;
    let judged = Judged { args, store, reader: &reader, origin: &origin, run_id };
    judged.show(reports, settings.max_error_rate, printer)
}
