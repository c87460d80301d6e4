//! An engine that runs scripts one after the other. What a script leaves behind is taken away, or the engine is.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::{Duration, Instant},
};

use rquickjs::{
    Context, Ctx, Error, Function, IntoJs as _, Object, Persistent, Promise, Runtime, Value,
    context::EvalOptions, promise::PromiseState,
};
use serde_json::Value as Json;

use crate::{
    error::{ScriptError, ScriptProblem},
    script::{Code, INLINE, Script},
    worker::{not_started, with_engine},
};

const PRELUDE: &str = include_str!("prelude.js");
/// Scripts that an engine keeps compiled.
const KEPT: usize = 256;
/// Stack of scripts; threads have two MiB and more.
const STACK: usize = 512 << 10;
/// What the engine itself and the scripts that it keeps may take, beside what a script may.
const OWN_MEMORY: usize = 16 << 20;
/// Steps from one look at the limits to the next, as the engine counts them.
const STEPS_A_LOOK: u64 = 10_000;

/// What one run of a script may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Millions of steps: calls, jumps back and what regular expressions try. They are the same on
    /// every machine, so they are what normally ends a script.
    pub million_steps: u32,
    /// The time, for what takes long without many steps. A script that cannot be stopped then is
    /// given up after twice that time.
    pub time: Duration,
    /// Bytes of memory.
    pub memory: usize,
    /// Bytes of what it returns, as JSON.
    pub returned: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let time = Duration::from_secs(10);
        Self { million_steps: 10, time, memory: 64 << 20, returned: 1 << 20 }
    }
}

/// Runs a script on an output. `context` is JSON text.
///
/// The value is what the script returned, or what its promise came to.
pub fn run(
    script: &Script,
    output: &Json,
    context: &str,
    limits: &Limits,
) -> Result<Json, ScriptError> {
    thread_local! {
        static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
    }
    if script.is_quick(output, context) {
        return ENGINE.with_borrow_mut(|slot| tried(slot, script, output, context, limits));
    }
    let (script, output, context, limits) =
        (script.clone(), output.clone(), context.to_owned(), *limits);
    with_engine(limits.time, move |slot| tried(slot, &script, &output, &context, &limits))?
}

fn tried(
    slot: &mut Option<Engine>,
    script: &Script,
    output: &Json,
    context: &str,
    limits: &Limits,
) -> Result<Json, ScriptError> {
    let fresh = slot.is_none();
    match attempt(slot, script, output, context, limits) {
        // Garbage of earlier scripts must not decide: once more, with nothing around.
        Err(ScriptError::Memory(_) | ScriptError::Null(_)) if !fresh => {
            attempt(slot, script, output, context, limits)
        }
        other => other,
    }
}

/// Says whether a script can be compiled.
pub(crate) fn check(script: &Script) -> Result<(), ScriptProblem> {
    let problem = |error: ScriptError| match error {
        ScriptError::Thrown { message, line, file } => ScriptProblem { line, file, message },
        ScriptError::Steps { .. }
        | ScriptError::Time(_)
        | ScriptError::Unstoppable(_)
        | ScriptError::Memory(_)
        | ScriptError::Null(_)
        | ScriptError::TooLarge { .. }
        | ScriptError::NoData(_) => {
            ScriptProblem { line: None, file: None, message: error.to_string() }
        }
    };
    let script = script.clone();
    let limits = Limits::default();
    let compiled = with_engine(limits.time, move |slot| {
        let engine = ready(slot)?;
        engine.begin(&limits);
        let context = engine.context.clone();
        let compiled = context.with(|ctx| {
            let compiled = engine.compile(&ctx, &script);
            compiled.map(drop).map_err(|error| engine.explain(&ctx, &error, &limits))
        });
        if !matches!(compiled, Ok(()) | Err(ScriptError::Thrown { .. })) {
            *slot = None;
        }
        compiled
    });
    match compiled.flatten() {
        // That says nothing about the script: what runs it will tell.
        Err(ScriptError::Unstoppable(_)) => Ok(()),
        other => other.map_err(problem),
    }
}

/// The names of all that can be reached in an engine without a script of one's own.
pub(crate) fn names() -> Option<BTreeSet<String>> {
    const NAMES: &str = "(() => {
        const names = new Set(), seen = new Set(), found = [globalThis, [].values(), /./.exec('a')];
        for (const it of found) {
            if ((typeof it !== 'object' && typeof it !== 'function') || it === null) continue;
            if (seen.has(it)) continue;
            seen.add(it);
            found.push(Object.getPrototypeOf(it));
            for (const key of Reflect.ownKeys(it)) {
                if (typeof key === 'string') names.add(key);
                const { value, get, set } = Object.getOwnPropertyDescriptor(it, key);
                found.push(value, get, set);
            }
        }
        return JSON.stringify([...names]);
    })()";
    let engine = Engine::new().ok()?;
    let names: String = engine.context.with(|ctx| ctx.eval(NAMES)).ok()?;
    serde_json::from_str(&names).ok()
}

fn ready(slot: &mut Option<Engine>) -> Result<&mut Engine, ScriptError> {
    if slot.is_none() {
        let made = Engine::new().map_err(|error| not_started(&error))?;
        *slot = Some(made);
    }
    Ok(slot.as_mut().expect("it was just made"))
}

fn attempt(
    slot: &mut Option<Engine>,
    script: &Script,
    output: &Json,
    context: &str,
    limits: &Limits,
) -> Result<Json, ScriptError> {
    let engine = ready(slot)?;
    let result = engine.run(script, output, context, limits);
    let usable = match &result {
        Ok(_)
        | Err(ScriptError::Thrown { .. } | ScriptError::TooLarge { .. } | ScriptError::NoData(_)) => {
            engine.is_clean()
        }
        Err(
            ScriptError::Steps { .. }
            | ScriptError::Time(_)
            | ScriptError::Unstoppable(_)
            | ScriptError::Memory(_)
            | ScriptError::Null(_),
        ) => false,
    };
    if !usable {
        *slot = None;
    }
    result
}

/// What is left of the limits of a run.
#[derive(Debug)]
struct Budget {
    looks: Cell<u64>,
    deadline: Cell<Instant>,
    stopped: Cell<Option<Stopped>>,
}

#[derive(Clone, Copy, Debug)]
enum Stopped {
    Steps,
    Time,
}

impl Budget {
    /// Whether the script is to be stopped.
    fn look(&self) -> bool {
        let left = self.looks.get();
        self.looks.set(left.saturating_sub(1));
        let stopped = match (left, self.deadline.get() <= Instant::now()) {
            (0, _) => Some(Stopped::Steps),
            (_, true) => Some(Stopped::Time),
            (_, false) => None,
        };
        if stopped.is_some() {
            self.stopped.set(stopped);
        }
        stopped.is_some()
    }
}

pub(crate) struct Engine {
    // Before the runtime, which has to outlive all values.
    compiled: BTreeMap<u64, Compiled>,
    clean: Persistent<Function<'static>>,
    load: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
    budget: Rc<Budget>,
}

#[derive(Clone)]
enum Compiled {
    Function(Persistent<Function<'static>>),
    Files { factories: Persistent<Object<'static>>, entry: String, wanted: Option<String> },
}

impl Engine {
    fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK);
        let budget = Rc::new(Budget {
            looks: Cell::new(u64::MAX),
            deadline: Cell::new(Instant::now() + Duration::from_mins(1)),
            stopped: Cell::new(None),
        });
        let watched = budget.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watched.look())));
        let context = Context::full(&runtime)?;
        let (clean, load) = context.with(|ctx| {
            let host: Object<'_> = ctx.eval(PRELUDE)?;
            let clean: Function<'_> = host.get("clean")?;
            let load: Function<'_> = host.get("load")?;
            rquickjs::Result::Ok((Persistent::save(&ctx, clean), Persistent::save(&ctx, load)))
        })?;
        Ok(Self { compiled: BTreeMap::new(), clean, load, context, runtime, budget })
    }

    fn begin(&self, limits: &Limits) {
        self.runtime.set_memory_limit(limits.memory.saturating_add(OWN_MEMORY));
        let looks = u64::from(limits.million_steps) * 1_000_000 / STEPS_A_LOOK;
        self.budget.looks.set(looks);
        self.budget.deadline.set(Instant::now() + limits.time);
        self.budget.stopped.set(None);
    }

    fn run(
        &mut self,
        script: &Script,
        output: &Json,
        context: &str,
        limits: &Limits,
    ) -> Result<Json, ScriptError> {
        self.begin(limits);
        let world = self.context.clone();
        world.with(|ctx| {
            let value = self.call(&ctx, script, output, context);
            let value = value.map_err(|error| self.explain(&ctx, &error, limits))?;
            read(&ctx, value, limits).map_err(|unread| match unread {
                Unread::NoData(what) => ScriptError::NoData(what),
                Unread::TooLarge { bytes, most } => ScriptError::TooLarge { bytes, most },
                Unread::Thrown(error) => self.explain(&ctx, &error, limits),
            })
        })
    }

    fn call<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        script: &Script,
        output: &Json,
        context: &str,
    ) -> rquickjs::Result<Value<'js>> {
        let function = match self.compile(ctx, script)? {
            Compiled::Function(function) => function.restore(ctx)?,
            Compiled::Files { factories, entry, wanted } => {
                let load = self.load.clone().restore(ctx)?;
                load.call((factories.restore(ctx)?, entry, wanted))?
            }
        };
        let output = match output.as_str() {
            Some(text) => text.into_js(ctx)?,
            None => ctx.json_parse(output.to_string())?,
        };
        let context = ctx.json_parse(context)?;
        let mut value: Value<'js> = function.call((output.clone(), context.clone()))?;
        // The code was a function, and not what one returns.
        if let Some(function) = value.as_function() {
            value = function.call((output, context))?;
        }
        match value.as_promise() {
            Some(promise) => settle(ctx, promise),
            None => Ok(value),
        }
    }

    fn compile(&mut self, ctx: &Ctx<'_>, script: &Script) -> rquickjs::Result<Compiled> {
        if let Some(compiled) = self.compiled.get(&script.id()) {
            return Ok(compiled.clone());
        }
        let evaluate = |name: &str, text: &str| -> rquickjs::Result<Function<'_>> {
            let mut options = EvalOptions::default();
            options.strict = false;
            options.filename = Some(name.to_owned());
            ctx.eval_with_options(text, options)
        };
        let compiled = match script.code() {
            Code::Function(text) => {
                Compiled::Function(Persistent::save(ctx, evaluate(INLINE, text)?))
            }
            Code::Files { factories, entry, wanted } => {
                let functions = Object::new(ctx.clone())?;
                for (name, text) in factories {
                    functions.set(name.as_str(), evaluate(name, text)?)?;
                }
                let factories = Persistent::save(ctx, functions);
                Compiled::Files { factories, entry: entry.clone(), wanted: wanted.clone() }
            }
        };
        if self.compiled.len() >= KEPT {
            self.compiled.clear();
        }
        self.compiled.insert(script.id(), compiled.clone());
        Ok(compiled)
    }

    /// What an error of the engine means.
    fn explain(&self, ctx: &Ctx<'_>, error: &Error, limits: &Limits) -> ScriptError {
        let thrown = match error.is_exception() {
            true => ctx.catch(),
            false => Value::new_undefined(ctx.clone()),
        };
        match self.budget.stopped.get() {
            Some(Stopped::Steps) => return ScriptError::Steps { steps: limits.million_steps },
            Some(Stopped::Time) => return ScriptError::Time(limits.time),
            None => {}
        }
        if matches!(error, Error::Allocation) {
            return ScriptError::Memory(limits.memory);
        }
        if thrown.is_null() {
            return ScriptError::Null(limits.memory);
        }
        let Some(exception) = thrown.as_exception() else {
            let message = match (error, thrown.as_string().and_then(|it| it.to_string().ok())) {
                (Error::Exception, Some(text)) => format!("the script threw `{}`", cut(&text)),
                (Error::Exception, None) if thrown.is_undefined() => {
                    "the script threw undefined".to_owned()
                }
                (Error::Exception, None) => {
                    "the script threw something that is not an error".to_owned()
                }
                (other, _) => other.to_string(),
            };
            return ScriptError::Thrown { message, line: None, file: None };
        };
        let message = exception.message().unwrap_or_default();
        if message == "out of memory" {
            return ScriptError::Memory(limits.memory);
        }
        let name: Option<String> = exception.as_object().get("name").ok();
        let message = match name {
            Some(name) if name != "Error" => format!("{name}: {message}"),
            Some(_) | None => message,
        };
        let stack = exception.stack().unwrap_or_default();
        let (file, line) = place(&stack).unzip();
        let file = file.filter(|it| it != INLINE);
        ScriptError::Thrown { message: cut(&message), line, file }
    }

    /// Takes away what the last script left, or says that this cannot be done.
    fn is_clean(&self) -> bool {
        if self.runtime.is_job_pending() {
            return false;
        }
        self.begin(&Limits::default());
        self.context.with(|ctx| {
            let clean = self.clean.clone().restore(&ctx);
            clean.and_then(|clean| clean.call::<_, bool>(())).unwrap_or(false)
        })
    }
}

/// Runs what waits until the promise has come to something.
fn settle<'js>(ctx: &Ctx<'js>, promise: &Promise<'js>) -> rquickjs::Result<Value<'js>> {
    loop {
        match promise.state() {
            PromiseState::Pending if ctx.execute_pending_job() => {}
            PromiseState::Pending => {
                let message =
                    "the script returned a promise that nothing can settle: there are no timers";
                return Err(rquickjs::Exception::throw_message(ctx, message));
            }
            PromiseState::Resolved | PromiseState::Rejected => {
                return promise.result().unwrap_or(Err(Error::Unknown));
            }
        }
    }
}

enum Unread {
    NoData(&'static str),
    TooLarge { bytes: usize, most: usize },
    Thrown(Error),
}

/// A value of the script as data.
fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>, limits: &Limits) -> Result<Json, Unread> {
    if let Some(value) = value.as_bool() {
        return Ok(value.into());
    }
    if let Some(number) = value.as_int() {
        return Ok(number.into());
    }
    if let Some(number) = value.as_float() {
        return number_of(number).ok_or(Unread::NoData("a number that is not finite"));
    }
    if value.is_undefined() {
        return Err(Unread::NoData("nothing"));
    }
    if value.is_function() || value.is_symbol() {
        return Err(Unread::NoData("no data, but a function or a symbol"));
    }
    let text = ctx.json_stringify(value).map_err(Unread::Thrown)?;
    let text = text.ok_or(Unread::NoData("nothing"))?.to_string().map_err(Unread::Thrown)?;
    if text.len() > limits.returned {
        return Err(Unread::TooLarge { bytes: text.len(), most: limits.returned });
    }
    serde_json::from_str(&text).map_err(|_| Unread::NoData("data that is nested too deeply"))
}

/// A number as JSON has it: whole ones without a point, as the language itself writes them.
fn number_of(number: f64) -> Option<Json> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it was just checked")]
        return Some((number as i64).into());
    }
    serde_json::Number::from_f64(number).map(Json::Number)
}

/// The innermost place in a script that a stack names.
fn place(stack: &str) -> Option<(String, u32)> {
    stack.lines().find_map(|line| {
        let line = line.trim().strip_prefix("at ")?;
        let place = line.rsplit_once('(').map_or(line, |it| it.1).trim_end_matches(')');
        let (rest, _column) = place.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        // The code begins on the second line of what is compiled.
        let line: u32 = line.parse().ok()?;
        (file != "eval_script").then(|| (file.to_owned(), line.saturating_sub(1).max(1)))
    })
}

/// Messages of scripts are shown and kept; nobody needs a megabyte of one.
fn cut(message: &str) -> String {
    const MOST: usize = 1000;
    match message.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.to_owned(),
    }
}
