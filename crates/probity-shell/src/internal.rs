//! What the program `probity` needs beside the interface. It may change with any version.

pub mod likeness;
pub mod mentions;
pub mod output;
