"""Suites and datasets as tests of pytest, and checks in tests."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import probity

Pytester = pytest.Pytester


@pytest.fixture
def project(pytester: Pytester) -> Pytester:
    pytester.makefile(
        ".jsonl",
        cases='{"id": "capital", "prompt": "Capital of France?", "match": "contains", "expected_response": "Paris"}\n'
        '{"id": "sum", "prompt": "3+4?", "match": "number", "expected_response": 7, "tags": ["maths"]}\n',
    )
    pytester.makefile(
        ".toml",
        suite='[backends.parrot]\nkind = "echo"\n[[runners]]\nname = "words"\nkind = "respond"\ndataset = "cases.jsonl"\n',
    )
    return pytester


def test_a_dataset_is_a_parametrised_test(project: Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        @pytest.mark.probity("cases.jsonl")
        def test_answers(case):
            case.check("Paris" if case.id == "capital" else "It is 8.")
        """
    )
    done = project.runpytest("-v")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*test_answers?capital? PASSED*", "*test_answers?sum? FAILED*", "E*sum: *7*8*"])
    project.runpytest("-k", "capital").assert_outcomes(passed=1, deselected=1)
    project.runpytest("-m", "probity", "--strict-markers").assert_outcomes(passed=1, failed=1)


def test_a_dataset_with_a_mistake_is_told(project: Pytester) -> None:
    project.makefile(".jsonl", broken='{"id": "a", "prompt": "x", "match": "nonsense"}\n')
    project.makepyfile("import pytest\n@pytest.mark.probity('broken.jsonl')\ndef test_x(case): pass\n")
    done = project.runpytest()
    done.stdout.fnmatch_lines(["*broken.jsonl:1: *nonsense*"])
    assert done.ret != 0


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_suite_is_collected(project: Pytester, workers: list[str]) -> None:
    project.makefile(
        ".jsonl",
        cases='{"id": "yes", "prompt": "yes", "match": "exact", "expected_response": "yes"}\n'
        '{"id": "a/b", "prompt": "ab", "match": "exact", "expected_response": "ab"}\n'
        '{"id": "no", "prompt": "no", "match": "exact", "expected_response": "yes"}\n'
        '{"id": "open", "prompt": "x"}\n',
    )
    done = project.runpytest("suite.toml", "--junitxml=junit.xml", *workers)
    done.assert_outcomes(passed=2, failed=1, skipped=1)
    done.stdout.fnmatch_lines(["*no: *", "prompt: no", "reply: no"])
    cases = {it.get("name"): it for it in xml.parse("junit.xml").getroot().iter("testcase")}
    assert set(cases) == {f"words/parrot[{it}]" for it in ("yes", "a/b", "no", "open")}
    failed = cases["words/parrot[no]"]
    assert failed.find("failure") is not None
    assert {(it.get("name"), it.get("value")) for it in failed.iter("property")} >= {("verdict", "fail"), ("class", "fail")}
    project.runpytest("suite.toml", "-k", "yes", *workers).assert_outcomes(passed=1, deselected=0 if workers else 3)


def test_the_cases_of_a_lane_are_one_run(project: Pytester) -> None:
    """The dataset is read for the collection and for the run, however many cases there are."""
    lines = [f'{{"id": "c{at}", "prompt": "{at}", "match": "exact", "expected_response": "{at}"}}' for at in range(40)]
    project.makefile(".jsonl", cases="\n".join(lines))
    project.makeconftest(
        """
        import probity

        started = []
        begin = probity.run

        def run(*words, **more):
            started.append(more)
            return begin(*words, **more)

        probity.run = run

        def pytest_terminal_summary(terminalreporter):
            terminalreporter.write_line(f"{len(started)} runs were started")
        """
    )
    done = project.runpytest_inprocess("suite.toml", "-k", "c1 or c2")
    done.assert_outcomes(passed=22, deselected=18)
    done.stdout.fnmatch_lines(["2 runs were started"])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_an_outage_is_an_error_and_no_failure(project: Pytester, workers: list[str]) -> None:
    project.makefile(
        ".toml",
        suite='[backends.gone]\nkind = "command"\ncommand = ["false"]\n'
        '[[runners]]\nname = "words"\ndataset = "cases.jsonl"\n[retry]\nmax_retries = 0\n',
    )
    done = project.runpytest("suite.toml", "-k", "capital", "--junitxml=junit.xml", *workers)
    done.assert_outcomes(errors=1, deselected=0 if workers else 1)
    [case] = [it for it in xml.parse("junit.xml").getroot().iter("testcase")]
    assert case.find("error") is not None and case.find("failure") is None
    done.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_long_texts_are_cut(project: Pytester) -> None:
    project.makefile(".jsonl", cases='{"id": "a", "prompt": "' + "x" * 2000 + '", "match": "exact", "expected_response": "y"}\n')
    done = project.runpytest("suite.toml")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["prompt: " + "x" * 500 + "…"])


def test_files_of_others_are_left_alone(project: Pytester) -> None:
    project.makefile(".yaml", other="stages:\n  - name: a test of another plugin\n")
    project.makefile(".toml", settings="[tool]\nname = 'x'\n")
    project.runpytest("other.yaml", "settings.toml").assert_outcomes()


def test_each_answer_of_a_case_counts(project: Pytester) -> None:
    project.makeini("[pytest]\nprobity_options = --repeat=3\n")
    project.makefile(".jsonl", cases='{"id": "a", "prompt": "y", "match": "exact", "expected_response": "y"}\n')
    done = project.runpytest("suite.toml", "--junitxml=junit.xml")
    done.assert_outcomes(passed=1)
    properties = [it.get("value") for it in xml.parse("junit.xml").getroot().iter("property") if it.get("name") == "verdict"]
    assert properties == ["pass"] * 3


def test_suites_of_the_configuration_are_collected(project: Pytester) -> None:
    project.makeini("[pytest]\nprobity_suites = suite.toml\n")
    project.runpytest().assert_outcomes(failed=2)
    project.makeini("[pytest]\n")
    project.runpytest().assert_outcomes()


def test_a_suite_with_a_mistake_is_told(project: Pytester) -> None:
    project.makefile(".toml", suite="[[runners]]\nname = 3\n")
    done = project.runpytest("suite.toml")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*suite.toml:2*"])


def test_a_check_says_why_it_fails(project: Pytester) -> None:
    project.makepyfile(
        """
        import probity

        def test_reply():
            probity.check('{"city": "Rome"}').contains("Rome").is_json({"required": ["country"]})
        """
    )
    done = project.runpytest()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E*is-json: *country*", "E*reply: *Rome*"])
    done.stdout.no_fnmatch_line("*_check.py*")


@pytest.mark.parametrize(
    ("method", "arguments", "good", "bad"),
    [
        ("contains", ("a", "b"), "ab", "a"),
        ("icontains", ("A",), "a", "b"),
        ("contains_any", ("a", "b"), "b", "c"),
        ("not_contains", ("a",), "b", "a"),
        ("equals", ("a",), "a", "ab"),
        ("equals", ({"a": 1},), '{"a": 1}', '{"a": 2}'),
        ("starts_with", ("a",), "ab", "ba"),
        ("matches", ("^a+$",), "aa", "ab"),
        ("is_json", (), "[1]", "nothing"),
        ("is_json", ({"type": "object"},), "{}", "[]"),
        ("is_refusal", (), "I can't help with that.", "Paris."),
        ("is_not_refusal", (), "Paris.", "I can't help with that."),
        ("keeps_policies", ("pii",), "Paris.", "jo.doe@gmail.com"),
        ("holds", ("rouge-l", "a fox jumps"), "a fox jumps", "nothing of that"),
    ],
)
def test_each_check_holds_or_not(method: str, arguments: tuple[object, ...], good: str, bad: str) -> None:
    checked = probity.check(good)
    assert getattr(checked, method)(*arguments) is checked
    with pytest.raises(AssertionError) as raised:
        getattr(probity.check(bad), method)(*arguments)
    assert bad in str(raised.value)


def test_checks_of_an_empty_reply() -> None:
    with pytest.raises(AssertionError, match="contains: .*empty"):
        probity.check("").contains("a")


def test_checks_of_a_refusal_look_at_its_text() -> None:
    probity.check("I can't help with that.").contains("help")
    with pytest.raises(AssertionError, match="`Paris` is missing"):
        probity.check("I can't help with that.").contains("Paris")


def test_a_check_with_a_mistake_is_told() -> None:
    with pytest.raises(probity.ProbityError, match="nonsense"):
        probity.check("x").holds("nonsense")
    with pytest.raises(TypeError, match="a reply is a text"):
        probity.check(3)  # type: ignore[arg-type]


def test_cases_of_a_dataset(own_folder: Path) -> None:
    Path("d.jsonl").write_text('{"id": "a", "prompt": "x", "expected_response": "y", "tags": ["t"]}\n')
    [case] = probity.cases("d.jsonl")
    assert (case.id, case.prompt, case.tags, case["expected_response"]) == ("a", "x", ["t"], "y")
    with pytest.raises(probity.ProbityError, match="nowhere.jsonl"):
        probity.cases("nowhere.jsonl")
