//! Judges what is already there, without asking anybody.
//!
//! [`classify`] says what stored results are, [`check`] what a detector finds in a text. Both take one JSON object a
//! line, and [`pipeline`] runs them over a stream on all cores, in order and in bounded memory.

pub mod check;
pub mod classify;
pub mod pipeline;
pub mod tally;
