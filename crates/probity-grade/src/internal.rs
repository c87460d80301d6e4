//! What the program `probity` needs beside the interface. It may change with any version.

pub mod again;
pub mod agent;
pub mod consistency;
pub mod contest;
pub mod judge;
pub mod lint;
pub mod people;
pub mod routing;
pub mod script;
pub mod similar;
pub mod user;
