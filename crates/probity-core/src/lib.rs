//! The vocabulary of Probity: cases, requests, classifications, records, and the figures made of them.
//!
//! Nothing here reads a file, is asynchronous, opens a socket, starts a process, reads a clock
//! or draws a random number: the same input gives the same bytes on every machine.

pub mod agent;
pub mod baseline;
pub mod calibration;
pub mod case;
pub mod case_outcome;
pub mod checkup;
pub mod classification;
pub mod consistency;
pub mod conversation;
pub mod crew;
pub mod criteria;
pub mod derived;
pub mod details;
pub mod difference;
pub mod dollars;
pub mod evaluation;
pub mod event;
pub mod evidence;
pub mod execution;
pub mod failure;
pub mod figures;
pub mod gate;
pub mod json;
pub mod judging;
pub mod kind;
pub mod located;
pub mod metrics;
pub mod names;
pub mod opinion;
pub mod people;
pub mod preference;
pub mod problem;
pub mod reading;
pub mod reason;
pub mod record;
pub mod reply;
pub mod request;
pub mod run_result;
pub mod score;
pub mod scored;
pub mod selection;
mod serial;
pub mod span;
pub mod view;
pub mod visible;
