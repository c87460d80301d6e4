//! What scripts may do, what they come to, and that they leave nothing behind.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{collections::BTreeMap, process::Command, time::Duration};

use probity_script::{Limits, Script, ScriptError, run};
use serde_json::{Value, json};

const CONTEXT: &str =
    r#"{"vars": {"city": "Paris", "n": 3}, "prompt": "p", "config": {"least": 2}}"#;

fn value(source: &str, output: &Value) -> Result<Value, ScriptError> {
    let script = Script::inline(source).unwrap_or_else(|problem| panic!("{source}: {problem}"));
    run(&script, output, CONTEXT, &Limits::default())
}

#[track_caller]
fn check(source: &str, expected: &Value) {
    assert_eq!(value(source, &json!("Paris is large")).as_ref(), Ok(expected), "{source}");
}

#[track_caller]
fn fails(source: &str, expected: &str) {
    let error = value(source, &json!("Paris is large")).unwrap_err().to_string();
    assert!(error.contains(expected), "{source}: {error}");
}

fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn every_form_of_promptfoo_is_understood() {
    check("output.length > 10 && output.includes('Paris')", &json!(true));
    check("output.includes(context.vars.city);", &json!(true));
    check("const words = output.split(' ');\nreturn words.length >= context.vars.n;", &json!(true));
    check("return 0.5", &json!(0.5));
    check("(output, context) => output.length - context.config.least", &json!(12));
    check(
        "function (output) { return { pass: true, score: 0.25 } }",
        &json!({"pass": true, "score": 0.25}),
    );
    check("async (output) => (await Promise.resolve(output)).length", &json!(14));
    check("output\n  .toLowerCase()\n  .startsWith('paris') // it is\n", &json!(true));
    check("{ return true }", &json!(true));
    check(
        "({ pass: output?.length > 1, score: 1, reason: `len ${output.length}` })",
        &json!({"pass": true, "score": 1, "reason": "len 14"}),
    );
    check(
        "JSON.stringify({a: [1, 2].at(-1), b: /(?<=a)b/.test('ab')})",
        &json!("{\"a\":2,\"b\":true}"),
    );
    check("console.log(output) ?? true", &json!(true));
}

#[test]
fn an_output_may_be_data() {
    let output = json!({"name": "a", "tags": ["x"], "n": 1.5});
    assert_eq!(value("output.tags[0] === 'x' && output.n * 2", &output), Ok(json!(3)));
    assert_eq!(value("output", &output), Ok(output));
}

#[test]
fn errors_say_what_and_where() {
    fails("const a = 1;\nnull.length;\nreturn a", "line 2");
    fails("throw new Error('mine')", "mine (line 1)");
    fails("const x = 1;\nthrow 'a text'", "the script threw `a text`");
    fails("const x = 1", "returned nothing");
    fails("0 / 0", "not finite");
    fails("() => () => 1", "function");
    fails("await1(output)", "ReferenceError: await1 is not defined (line 1)");
    fails("new Promise(() => {})", "no timers");
    fails("Promise.reject(new TypeError('no'))", "TypeError: no");
    let problem = Script::inline("const a = 1;\nreturn a +;").unwrap_err();
    assert_eq!(problem.line, Some(2), "{problem}");
    let problem = Script::inline("output.includes('x'").unwrap_err();
    assert_eq!(problem.line, Some(1), "{problem}");
}

#[test]
fn nothing_differs_from_machine_to_machine() {
    if !is_alone("nothing_differs_from_machine_to_machine", &[("TZ", "IST-5:30")]) {
        return;
    }
    fails("Math.random()", "no random numbers");
    fails("Date.now()", "no clock");
    fails("new Date()", "no clock");
    fails("Date()", "no clock");
    check("new Date(2024, 1, 3, 4).toISOString()", &json!("2024-02-03T04:00:00.000Z"));
    check("new Date('2024-02-03T04:05:06').toISOString()", &json!("2024-02-03T04:05:06.000Z"));
    check("new Date('Feb 3 2024').getHours()", &json!(0));
    check("new Date('2024-02-03').getTimezoneOffset()", &json!(0));
    check("String(new Date(0))", &json!("Thu Jan 01 1970 00:00:00 GMT+0000 (UTC)"));
    check("new Date(new Date(5)).getTime()", &json!(5));
    for (date, expected) in [
        ("12-31-2024", "2024-12-31T00:00:00.000Z"),
        (" 2024-12-31", "2024-12-31T00:00:00.000Z"),
        ("12024", "12024"),
        ("2024-00-10", "2000-10"),
        ("Dec 31 2024 10:00 +0530", "2024-12-31T04:30:00.000Z"),
        ("Dec 31 2024 10:00 EST", "2024-12-31T15:00:00.000Z"),
        ("Tue, 31 Dec 2024 10:00:00 GMT", "2024-12-31T10:00:00.000Z"),
        ("2024-12-31T10:00+05:30", "2024-12-31T04:30:00.000Z"),
        (&format!("Dec 31 2024 {}10:00", " ".repeat(200)), "2024-12-31T00:00:00.000Z"),
    ] {
        let shown = value(&format!("new Date('{date}').toISOString()"), &json!("")).unwrap();
        assert!(shown.as_str().unwrap().trim_start_matches("+0").starts_with(expected), "{shown}");
    }
    check("new Date('2024-12-31T23:00Z').getYear()", &json!(124));
    check("const d = new Date(0); d.setYear(70); return d.getTime()", &json!(0));
    check("new Date(1e12).toLocaleString()", &json!("9/9/2001, 1:46:40 AM"));
    check("class D extends Date {}; return new D(0) instanceof Date", &json!(true));
    for name in [
        "performance",
        "Atomics",
        "SharedArrayBuffer",
        "WeakRef",
        "FinalizationRegistry",
        "setTimeout",
        "fetch",
        "process",
        "require",
        "std",
        "os",
        "navigator",
        "Deno",
        "gc",
    ] {
        check(&format!("typeof {name}"), &json!("undefined"));
    }
    fails("import('fs').then(() => true)", "");
}

#[test]
fn one_run_cannot_influence_the_next() {
    let attempts = [
        "Array.prototype.includes = () => true; return 1",
        "Object.prototype.polluted = 1; return 1",
        "String.prototype.x = 1; return 1",
        "JSON.parse = () => 1; return 1",
        "globalThis.seen = 1; return 1",
        "seen = 1; return 1",
        "globalThis[7] = 1; return 1",
        "Object.defineProperty(globalThis, 'seen', { value: 1 }); return 1",
        "Object.preventExtensions(globalThis); return 1",
        "Object.setPrototypeOf(globalThis, { seen: 1 }); return 1",
        "(function*(){}).constructor.prototype.seen = 1; return 1",
        "[].values().__proto__.next = 1; return 1",
        "[].values().map(x => x).__proto__.seen = 1; return 1",
        "'a'.matchAll(/a/g).__proto__.seen = 1; return 1",
        "(async function*(){})().__proto__.__proto__.seen = 1; return 1",
        "Error.prepareStackTrace = () => 'x'; Error.stackTraceLimit = 0; return 1",
        "Math.max.seen = 1; return 1",
        "console.log.seen = 1; console.seen = 1; return 1",
        "queueMicrotask(() => { globalThis.seen = 1 }); return 1",
        "(0, eval)('var seen = 1'); return 1",
        "output.__proto__.seen = 1; return 1",
        "undefined = 1; NaN = 2; globalThis = 3; return 1",
        "Symbol.prototype.seen = 1; return 1",
        "Date.prototype.getTime = () => 1; return 1",
        "new Proxy({}, {}).__proto__.seen = 1; return 1",
        "new Intl.Collator().seen = 1",
    ];
    let look = Script::inline(
        "const stack = new Error('a').stack;\n\
         seenNow = typeof seen + typeof ({}).polluted + typeof ''.x + typeof globalThis[7] + typeof [].seen;\n\
         return [seenNow, ['a'].includes('b'), JSON.parse('2'), Object.isExtensible(globalThis),\n\
           typeof Object.getPrototypeOf(function*(){}).seen, [...[1]].length, typeof Math.max.seen,\n\
           typeof console.seen, NaN === NaN, undefined === void 0, typeof stack,\n\
           [1].values().map(x => x).toArray().length, typeof [1].values().map(x => x).seen,\n\
           typeof 'a'.matchAll(/a/g).seen, typeof (async function*(){})().seen, typeof Symbol().seen,\n\
           new Date(5).getTime(), typeof console.log.seen]",
    )
    .unwrap();
    let look = || run(&look, &json!("o"), CONTEXT, &Limits::default()).unwrap();
    let untouched = look();
    let nothing = "undefined".repeat(5);
    assert_eq!(untouched[0], json!(nothing));
    for attempt in attempts {
        let _ = value(attempt, &json!("o"));
        let _ = value(&format!("'use strict'; {attempt}"), &json!("o"));
        assert_eq!(look(), untouched, "{attempt}");
    }
}

#[test]
fn a_frozen_world_is_still_one_to_write_code_in() {
    check(
        "class E extends Error { constructor() { super('m'); this.name = 'E'; } }\nreturn new E().name",
        &json!("E"),
    );
    check(
        "function A() {}\nA.prototype.toString = function () { return 'a' };\nreturn `${new A()}`",
        &json!("a"),
    );
    check(
        "'use strict'; const o = {}; o.toString = () => 'o'; o.constructor = 1; return o + o.constructor",
        &json!("o1"),
    );
    check("words = output.split(' '); for (i = 0; i < words.length; i++) {} return i", &json!(3));
    check(
        "const a = [3, 1, 2]; a.sort(); return a.concat([4], 5).flat().slice(1, -1).join('')",
        &json!("234"),
    );
    check("[[1, [2]], 3].flat(Infinity)", &json!([1, 2, 3]));
    check("[1, 2].flatMap(x => [x, x])", &json!([1, 1, 2, 2]));
    check(
        "'a-b-c'.lastIndexOf('-') + 'aXbX'.replaceAll('X', '').length + String.raw`a\\n${1}`.length",
        &json!(9),
    );
    check(
        "Object.keys(context.vars).concat(Object.entries({ a: 1 }))",
        &json!(["city", "n", ["a", 1]]),
    );
}

#[test]
fn state_of_a_module_is_new_for_every_run() {
    let script =
        Script::files(&files(&[("a.js", "let n = 0; module.exports = () => ++n;")]), "a.js", None)
            .unwrap();
    for _ in 0..3 {
        assert_eq!(run(&script, &json!(""), CONTEXT, &Limits::default()), Ok(json!(1)));
    }
}

#[track_caller]
fn check_files(given: &[(&str, &str)], entry: &str, wanted: Option<&str>, expected: &Value) {
    let script = Script::files(&files(given), entry, wanted).unwrap();
    assert_eq!(run(&script, &json!("out"), CONTEXT, &Limits::default()).as_ref(), Ok(expected));
}

#[test]
fn files_export_functions() {
    check_files(
        &[("a.js", "module.exports = (output, context) => output + context.vars.n;")],
        "a.js",
        None,
        &json!("out3"),
    );
    check_files(
        &[("a.js", "module.exports = { f: (o) => o.length };")],
        "a.js",
        Some("f"),
        &json!(3),
    );
    check_files(
        &[("a.mjs", "const n = 2;\nexport default async function (o) {\n  return n;\n}\n")],
        "a.mjs",
        None,
        &json!(2),
    );
    check_files(
        &[("a.mjs", "export default function f(o) { return g(o) }\nconst g = (o) => f.name + o;")],
        "a.mjs",
        None,
        &json!("fout"),
    );
    check_files(
        &[("a.mjs", "export {\n  f as default,\n  g,\n};\nconst f = () => 1;\nconst g = () => 2;")],
        "a.mjs",
        Some("g"),
        &json!(2),
    );
    check_files(
        &[("a.js", "export function f() { return 1 }\nexport const g = () => 2;")],
        "a.js",
        Some("g"),
        &json!(2),
    );
    check_files(
        &[
            (
                "a.js",
                "const { f } = require('./lib/b');\nconst d = require('./d.json');\nmodule.exports = () => f() + d.n;",
            ),
            ("lib/b.js", "exports.f = () => require('../c.js');"),
            ("c.js", "module.exports = 40;"),
            ("d.json", "{\"n\": 2}"),
        ],
        "a.js",
        None,
        &json!(42),
    );
}

#[test]
fn what_a_file_cannot_have_is_said() {
    let fails = |given: &[(&str, &str)], expected: &str| {
        let script = Script::files(&files(given), "a.js", None).unwrap();
        let error = run(&script, &json!(""), CONTEXT, &Limits::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    fails(&[("a.js", "const _ = require('lodash');\nmodule.exports = () => 1;")], "Node");
    fails(&[("a.js", "require('../up.js');")], "outside the folder");
    fails(&[("a.js", "require('./no.js');")], "no such file");
    fails(&[("a.js", "module.exports = 3;")], "does not export a function");
    fails(&[("a.js", "\nmodule.exports = () => {\n  missing();\n};")], "(`a.js`, line 3)");
    let problem = Script::files(&files(&[("a.js", "let a;\nlet a;")]), "a.js", None).unwrap_err();
    assert_eq!((problem.file.as_deref(), problem.line), (Some("a.js"), Some(2)), "{problem}");
}

#[test]
fn whatever_a_hostile_script_does_ends_and_is_told() {
    let steps = [
        "while (1) {}",
        "for (;;) { try { while (1) {} } catch {} finally { } }",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "({ get pass() { while (1); } })",
        "({ toJSON() { while (1); } })",
        "(async () => { while (1) await 1; })()",
        "const f = () => queueMicrotask(f); f(); return new Promise(() => {})",
        "new Array(4e9).includes(1)",
        "Array.prototype.indexOf.call({ length: 1e15 }, 1)",
        "throw { get message() { while (1); } }",
        "const e = new Error('a'); Object.defineProperty(e, 'name', { get() { while (1); } }); throw e",
    ];
    for source in steps {
        let error = value(source, &json!("o")).unwrap_err();
        let is_stopped = matches!(error, ScriptError::Steps { .. } | ScriptError::Thrown { .. });
        assert!(is_stopped, "{source}: {error}");
    }
}

#[test]
fn memory_is_bounded() {
    let memory = [
        "'x'.repeat(1e9)",
        "const a = []; while (1) a.push('x'.repeat(1000) + a.length)",
        "const a = []; while (1) { try { while (1) a.push(new Array(1000).fill(1)) } catch {} }",
        "new Uint8Array(1e9)",
        "JSON.stringify(Array(4e6).fill('xxxxxxxxxxxx'))",
    ];
    // On a machine with much to do, only the time would end what takes so many steps.
    let limits = Limits { million_steps: 1, time: Duration::from_mins(1), ..Limits::default() };
    for source in memory {
        let script = Script::inline(source).unwrap();
        let error = run(&script, &json!("o"), "{}", &limits).unwrap_err();
        let is_stopped = matches!(
            error,
            ScriptError::Memory(_) | ScriptError::Null(_) | ScriptError::Steps { .. }
        );
        assert!(is_stopped, "{source}: {error}");
    }
}

#[test]
fn what_the_engine_cannot_do_is_an_error_of_the_script() {
    fails("let s = 'x'; while (1) s += s;", "string too long");
    fails("(function f() { f() })()", "Maximum call stack");
    fails("let x = []; for (let i = 0; i < 1e5; i++) x = [x]; return x", "");
    fails("JSON.parse('['.repeat(1e6))", "");
    fails("let x = 0; for (let i = 0; i < 300; i++) x = [x]; return x", "nested too deeply");
    fails("const o = {}; o.o = o; return o", "circular");
    fails("'x'.repeat(2e6)", "are not read");
    for source in [
        "const b = []; b.length = 4e9; return b.join('')",
        "const b = []; b.length = 4e9; return b.sort()",
        "const b = []; b.length = 4e9; return [b].flat()",
        "const b = []; b.length = 4e9; return [].concat(b)",
        "const b = []; b.length = 4e9; return b.reverse()",
        "String.raw({ raw: { length: 1e15 } })",
        "'a'.repeat(8e6).indexOf('a'.repeat(4e6) + 'b')",
    ] {
        fails(source, "too much work for one call");
    }
    check("output.length", &json!(14));
}

#[test]
fn time_is_bounded_too() {
    if !is_alone("time_is_bounded_too", &[]) {
        return;
    }
    let limits =
        Limits { million_steps: u32::MAX, time: Duration::from_millis(50), ..Limits::default() };
    let stopped = |source: &str| {
        let script = Script::inline(source).unwrap();
        run(&script, &json!("o"), CONTEXT, &limits).unwrap_err()
    };
    let large_number = "const x = 2n ** 500000n; while (1) x * x";
    let large_text = "const x = 'x'.repeat(1e7); while (1) x.toUpperCase()";
    for source in ["while (1) {}", large_text, large_number, large_number] {
        let error = stopped(source);
        assert!(matches!(error, ScriptError::Time(_)), "{source}: {error}");
        check("output.length", &json!(14));
    }
    let another = Script::inline(large_number).unwrap();
    let again = || run(&another, &json!("o"), CONTEXT, &limits).unwrap_err().to_string();
    let errors: Vec<String> = (0..5).map(|_| again()).collect();
    let refused =
        "the script was not run: 4 others that took too long cannot be stopped and still run";
    assert_eq!(errors[4], refused);
}

/// Whether a test has a process of its own, with these variables. If not, it is run in one.
fn is_alone(test: &str, variables: &[(&str, &str)]) -> bool {
    const ALONE: &str = "SCRIPTS_TEST_IS_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(ALONE, "1").envs(variables.iter().copied());
    let output = command.output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    let has_passed = output.status.success() && out.contains("1 passed");
    assert!(has_passed, "{test}: {out}{err}");
    false
}

#[test]
fn a_script_runs_on_every_thread() {
    let script = Script::inline("output.length").unwrap();
    let of_thread = || {
        let script = script.clone();
        std::thread::spawn(move || run(&script, &json!("abc"), CONTEXT, &Limits::default()))
    };
    let threads: Vec<_> = (0..4).map(|_| of_thread()).collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(json!(3)));
    }
}

#[test]
fn many_scripts_do_not_pile_up() {
    for n in 0..2000 {
        let script = Script::inline(&format!("output.length + {n}")).unwrap();
        assert_eq!(run(&script, &json!("abc"), CONTEXT, &Limits::default()), Ok(json!(n + 3)));
    }
}

#[test]
fn setters_of_builtins_change_nothing_else() {
    let found = value(
        "const found = [], seen = new Set();\n\
         const walk = (it, path) => {\n\
           if (Object(it) !== it || seen.has(it)) return;\n\
           seen.add(it);\n\
           for (const key of Reflect.ownKeys(it)) {\n\
             const property = Object.getOwnPropertyDescriptor(it, key);\n\
             if (property.set) found.push(`${path}.${String(key)}`);\n\
             if (property.writable) found.push(`${path}.${String(key)} is writable`);\n\
             walk(property.value, `${path}.${String(key)}`);\n\
           }\n\
           walk(Object.getPrototypeOf(it), `${path}.__proto__`);\n\
         };\n\
         walk(globalThis, 'globalThis');\n\
         return found.filter(it => !/\\.(name|message|toString|constructor|valueOf|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|bind|call|apply)$/.test(it))",
        &json!(""),
    );
    let expected = json!([
        "globalThis.Object.create.__proto__.caller",
        "globalThis.Object.create.__proto__.arguments",
        "globalThis.Object.create.__proto__.__proto__.__proto__",
        "globalThis.Error.prototype.stack",
        "globalThis.Iterator.prototype.Symbol(Symbol.toStringTag)",
    ]);
    assert_eq!(found, Ok(expected));
}
