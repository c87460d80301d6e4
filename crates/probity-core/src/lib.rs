//! The vocabulary of Probity: cases, datasets, results and classifications.
//!
//! Nothing here is asynchronous, opens a socket, starts a process, reads a clock
//! or draws a random number: the same input gives the same bytes on every machine.

pub mod baseline;
pub mod calibration;
pub mod case;
pub mod classification;
pub mod consistency;
pub mod criteria;
pub mod dataset;
pub mod evaluation;
pub mod event;
pub mod evidence;
pub mod failure;
pub mod figures;
pub mod gate;
pub mod import;
pub mod json;
pub mod lines;
pub mod located;
pub mod metrics;
pub mod problem;
pub mod record;
pub mod run_result;
pub mod settings;
pub mod skill;
pub mod standing;
pub mod stats;
pub mod suite;
pub mod template;
pub mod view;
pub mod visible;
