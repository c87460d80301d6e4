"""Runs Python functions for Probity: a request on each line of standard input, an answer for each.

Whatever functions print goes to standard error, so that it cannot be taken for an answer.
"""

import asyncio
import contextlib
import importlib.util
import inspect
import io
import json
import os
import runpy
import sys
import textwrap
import traceback

LOADED = {}

# Python takes a compiled file for current if size and second are the same, and files are changed
# faster than that.
sys.dont_write_bytecode = True


def load_file(path):
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = "probity_file_%d" % len(LOADED)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_code(code):
    """An expression over `output` and `context`, or the body of a function that returns."""
    try:
        compiled = compile(code.strip(), "<assertion>", "eval")
        return lambda output, context: eval(compiled, {"output": output, "context": context})
    except SyntaxError:
        body = textwrap.indent(textwrap.dedent(code).strip("\n"), "    ")
        names = {}
        exec(compile("def get_assert(output, context):\n" + body, "<assertion>", "exec"), names)
        return names["get_assert"]


def member_of(module, name):
    """A function, or a method of a class that is made without arguments: `Class.method`."""
    found = module
    for part in name.split("."):
        found = found() if inspect.isclass(found) else found
        found = getattr(found, part, None)
    return found


def load_script(path):
    """A script that is given JSON as its argument, and prints what it makes."""

    def script(*args):
        printed = io.StringIO()
        before = sys.argv
        sys.argv = [path] + [json.dumps(it) for it in args]
        try:
            with contextlib.redirect_stdout(printed):
                runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
        finally:
            sys.argv = before
        text = printed.getvalue()
        return text[:-1] if text.endswith("\n") else text

    return script


def function_of(run):
    key = (run.get("file"), run.get("code"), run.get("function"))
    if key not in LOADED:
        if run.get("code") is not None:
            LOADED[key] = load_code(run["code"])
        else:
            name = run["function"]
            if name == "__main__":
                LOADED[key] = load_script(run["file"])
                return LOADED[key]
            function = member_of(load_file(run["file"]), name)
            if not callable(function):
                raise AttributeError("%s has no function `%s`" % (run["file"], name))
            LOADED[key] = function
    return LOADED[key]


def plain(value):
    """What JSON has no form of: data classes, and objects with fields."""
    if hasattr(value, "item"):
        return value.item()
    return vars(value)


# What code does that is wrong, and does again whenever it is called.
FAULTS = (AttributeError, ImportError, NameError, NotImplementedError, SyntaxError, TypeError)


def answer(request):
    reply = {"id": request["id"]}
    is_loaded = False
    try:
        function = function_of(request["run"])
        is_loaded = True
        returned = function(*request["args"]) if "args" in request else None
        if inspect.isawaitable(returned):
            returned = asyncio.run(returned)
        reply["returned"] = returned
        return json.dumps(reply, default=plain, allow_nan=False)
    except BaseException as error:  # noqa: B902
        if isinstance(error, KeyboardInterrupt):
            raise
        where = ""
        frames = traceback.extract_tb(error.__traceback__)
        own = [it for it in frames if it.filename != __file__]
        if own:
            where = " (%s, line %s)" % (os.path.basename(own[-1].filename), own[-1].lineno)
        message = "%s: %s%s" % (type(error).__name__, error, where)
        fault = not is_loaded or isinstance(error, FAULTS)
        return json.dumps({"id": request["id"], "error": message[:2000], "fault": fault})


def printing_to(errors):
    """What functions print goes to standard error, also after one of them has closed it."""
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    if sys.stderr is not sys.stdout or sys.stderr.closed:
        file = os.fdopen(os.dup(errors), "w", buffering=1, encoding="utf-8", errors="replace")
        sys.stdout = sys.stderr = file


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    errors = os.dup(2)
    for line in sys.stdin.buffer:
        printing_to(errors)
        out.write(answer(json.loads(line)) + "\n")
        out.flush()


main()
