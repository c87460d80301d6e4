//! A visit of a world that lasts for several commands.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use probity_core::execution::{Executed, ExecutionCall};
use probity_sandbox::{
    Command, Execution, Limits, Session, Stopper, execution::Change, world::Prepared,
};
use tokio::sync::oneshot;

use super::{
    Ground,
    call::{Before, world_of},
};

/// A world in which commands find what the ones before them left. It has a thread of its own, since each of them takes its
/// time. Whoever drops it ends what runs there.
#[derive(Debug)]
pub(crate) struct Visit {
    wishes: mpsc::Sender<Wish>,
    stopper: Stopper,
}

/// What is to be done in the world, and who waits for it.
enum Wish {
    Execute {
        argv: Vec<String>,
        stdin: Option<String>,
        limits: Limits,
        waiting: Waiting<Execution>,
    },
    Judge {
        call: ExecutionCall,
        waiting: Waiting<Executed>,
    },
}

type Waiting<T> = oneshot::Sender<Result<T, String>>;

impl Visit {
    /// Enters the first world of a call.
    pub(super) async fn begin(ground: Arc<Ground>, call: ExecutionCall) -> Result<Self, String> {
        let (wishes, heard) = mpsc::channel();
        let (ready, begun) = oneshot::channel();
        thread::spawn(move || match enter(&ground, &call) {
            // Whoever has gone waits for nothing.
            Err(why) => drop(ready.send(Err(why))),
            Ok((prepared, mut session)) => {
                if ready.send(Ok(session.stopper())).is_ok() {
                    let mut left = Vec::new();
                    let place = Place { ground: &ground, prepared: &prepared };
                    heard.iter().for_each(|it| place.fulfil(it, &mut session, &mut left));
                }
            }
        });
        let stopper = begun.await.unwrap_or_else(|_| Err(GONE.to_owned()))?;
        Ok(Self { wishes, stopper })
    }

    /// Executes a program.
    pub(crate) async fn execute(
        &self,
        argv: Vec<String>,
        stdin: Option<String>,
        limits: Limits,
    ) -> Result<Execution, String> {
        let (waiting, came) = oneshot::channel();
        self.wish(Wish::Execute { argv, stdin, limits, waiting }, came).await
    }

    /// Executes what a case asks for, in the world as it is now.
    pub(crate) async fn judge(&self, call: ExecutionCall) -> Result<Executed, String> {
        let (waiting, came) = oneshot::channel();
        self.wish(Wish::Judge { call, waiting }, came).await
    }

    async fn wish<T>(
        &self,
        wish: Wish,
        came: oneshot::Receiver<Result<T, String>>,
    ) -> Result<T, String> {
        self.wishes.send(wish).map_err(|_| GONE.to_owned())?;
        came.await.unwrap_or_else(|_| Err(GONE.to_owned()))
    }
}

const GONE: &str = "the visit of the world was ended";

impl Drop for Visit {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

fn enter<'g>(ground: &'g Ground, call: &ExecutionCall) -> Result<(Prepared, Session<'g>), String> {
    let sandbox = ground.open()?;
    let world = call.worlds.first().ok_or("there is no world to enter")?;
    let prepared = ground.prepare(sandbox, world_of(world)?, call)?;
    let session = sandbox.enter(&prepared).map_err(|failure| failure.to_string())?;
    Ok((prepared, session))
}

fn command(argv: Vec<String>, stdin: Option<String>) -> Command {
    match stdin {
        Some(stdin) => Command::Fed { argv, stdin },
        None => Command::Argv(argv),
    }
}

/// Where wishes are fulfilled.
struct Place<'p> {
    ground: &'p Ground,
    prepared: &'p Prepared,
}

impl Place<'_> {
    /// Does what is wished. `left` is what is different since the visit began.
    fn fulfil(&self, wish: Wish, session: &mut Session<'_>, left: &mut Vec<Change>) {
        // Whoever has gone waits for nothing.
        match wish {
            Wish::Execute { argv, stdin, limits, waiting } => {
                let came = session.execute(&command(argv, stdin), None, &limits);
                if let Ok(came) = &came {
                    left.clone_from(&came.changes);
                }
                drop(waiting.send(came.map_err(|failure| failure.to_string())));
            }
            Wish::Judge { call, waiting } => {
                let before = Before { left: Some(left.clone()), ..Before::default() };
                drop(waiting.send(self.ground.execute_after(
                    session,
                    self.prepared,
                    &call,
                    before,
                )));
            }
        }
    }
}
