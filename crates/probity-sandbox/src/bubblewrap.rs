//! Executes with the program `bwrap`, where a keeper cannot make namespaces itself.

use crate::{
    execution::{Command, Execution, Limits},
    sandbox::{Engine, Failure, Visit},
    world::Prepared,
};

#[derive(Debug)]
pub(crate) struct Bubblewrap {}

impl Bubblewrap {
    pub(crate) fn find() -> Result<Self, String> {
        Err("the program `bwrap` is not used yet".to_owned())
    }
}

impl Engine for Bubblewrap {
    fn execute(&self, _: &Prepared, _: &Command, _: &Limits) -> Result<Execution, Failure> {
        Err(Failure::Setup("the program `bwrap` is not used yet".to_owned()))
    }

    fn visit<'s>(&'s self, _: &Prepared) -> Result<Box<dyn Visit + 's>, Failure> {
        Err(Failure::Setup("the program `bwrap` is not used yet".to_owned()))
    }
}
