"""A result depends on the arguments alone: nothing that a call leaves behind reaches a later one."""

import pyarrow as pa
import pytest

from recapture.errors import DefinitionError
from recapture.javascript import engine
from recapture.javascript.engine import V8Engine
from recapture.model import AsaType, JavaScriptFunction
from tests.javascript.test_aggregates import aggregated
from tests.javascript.test_aggregates import engine as aggregate
from tests.javascript.test_aggregates import script as aggregate_script

HIDDEN_BUILTINS = [
    "[][Symbol.iterator]().__proto__",
    "[][Symbol.iterator]().__proto__.__proto__",
    "''[Symbol.iterator]().__proto__",
    "new Map().entries().__proto__",
    "new Set().values().__proto__",
    "''.matchAll(/a/g).__proto__",
    "[].values().map(v => v).__proto__",
    "Iterator.from({next() {}}).__proto__",
    "(function* () {}).__proto__",
    "(function* () {}).__proto__.prototype",
    "(async () => {}).__proto__",
    "(async function* () {}).__proto__",
    "(async function* () {}).__proto__.prototype",
    "(async function* () {}).__proto__.prototype.__proto__",
    "Int8Array.__proto__",
    "Int8Array.prototype.__proto__",
    "new Intl.Segmenter().segment('').__proto__",
    "new Intl.Segmenter().segment('')[Symbol.iterator]().__proto__",
    "Object.getOwnPropertyDescriptor(function () { 'use strict'; }.__proto__, 'caller').get",
    "Object.getOwnPropertyDescriptor(Map.prototype, 'size').get",
    "Array.prototype[Symbol.unscopables]",
    "Date",
    "Date.prototype.constructor",
    "Proxy.revocable",
    "eval",
]
"""Built-in objects that no global name leads to directly."""


def values(script: str, output: AsaType = AsaType.BIGINT, rows: int = 3) -> list[object]:
    """Return the values of a function for some rows, or their errors without the arguments."""
    function = JavaScriptFunction("f", script, output)
    results, errors = V8Engine(function).call([pa.array(range(rows))], rows)
    return [
        value if error is None else error.partition("; its arguments")[0].removeprefix("udf.f: ")
        for value, error in zip(results.to_pylist(), errors.to_pylist(), strict=True)
    ]


@pytest.mark.parametrize(
    "expression",
    ["RegExp.$1", "RegExp.lastMatch", "RegExp['$&']", "RegExp.input", "RegExp.leftContext", "RegExp.rightContext"],
)
def test_what_a_regular_expression_matched_before_is_forgotten(expression: str) -> None:
    script = f"function main(x) {{ const before = {expression}; /(\\d)/.exec('a' + x + 'b'); return before; }}"
    assert values(script, AsaType.STRING) == ["", "", ""]


def test_what_a_regular_expression_matched_in_the_same_call_is_known() -> None:
    assert values("function main(x) { /d(\\d)/.test('d' + x); return RegExp.$1; }", AsaType.STRING) == ["0", "1", "2"]


def test_an_input_that_a_script_gives_to_regexp_is_forgotten() -> None:
    script = "function main(x) { const before = RegExp.input; RegExp.input = 'left'; return before; }"
    assert values(script, AsaType.STRING) == ["", "", ""]


@pytest.mark.parametrize(
    "owner",
    [
        "Math",
        "JSON",
        "Reflect",
        "Intl",
        "Object.prototype",
        "String.prototype",
        "Function.prototype",
        "RegExp",
        "Error",
        "arguments.callee",
        "Math.max",
        *HIDDEN_BUILTINS,
    ],
)
@pytest.mark.parametrize("strict", ["", "'use strict'; "])
def test_a_property_of_a_builtin_does_not_survive_a_call(owner: str, strict: str) -> None:
    script = f"""
        const owner = {owner};
        function main(x) {{
            {strict}try {{ owner.n = (owner.n || 0) + 1; }} catch {{}}
            try {{ Object.defineProperty(owner, "m", {{value: (owner.m || 0) + 1, configurable: true}}); }} catch {{}}
            return (owner.n || 0) * 10 + (owner.m || 0);
        }}
    """
    results = values(script)
    assert results == [results[0]] * 3


@pytest.mark.parametrize(
    "change",
    [
        "Array.prototype.join = () => 'evil'",
        "Array.prototype.map = () => ['evil']",
        "String.prototype.toWellFormed = () => 'evil'",
        "Object.prototype.toString = () => 'evil'",
        "Object.keys = () => ['evil']",
        "JSON.stringify = () => '\"evil\"'",
        "Array.isArray = () => true",
        "Array.prototype.push = undefined",
        "globalThis.JSON = undefined",
        "Object.defineProperty(Array.prototype, 0, {get: () => 'evil'})",
        "Object.defineProperty(Object.prototype, 'values', {get: () => 'evil'})",
        "Object.setPrototypeOf(Array.prototype, {join: () => 'evil'})",
        "Object.setPrototypeOf(globalThis, {})",
        "delete Array.prototype.join",
        "Reflect.ownKeys = () => []",
        "Object.freeze(Date)",
    ],
)
def test_a_builtin_that_a_call_replaces_stays_as_it_is(change: str) -> None:
    script = f"function main(x) {{ if (x === 1) {{ try {{ {change}; }} catch {{}} }} return ['good', x].join('-'); }}"
    assert values(script, AsaType.STRING) == ["good-0", "good-1", "good-2"]


def test_replacing_a_property_that_objects_inherit_is_an_error_with_its_name() -> None:
    script = "function main(x) { Array.prototype.join = () => 'evil'; return 1; }"
    assert values(script) == ["TypeError: Array.prototype.join cannot be changed (line 1 of its script)"] * 3


@pytest.mark.parametrize(
    "script",
    [
        "function main(x) { globalThis.n = (globalThis.n || 0) + 1; return n; }",
        "function main(x) { const n = {value: (globalThis.n || 0) + 1, configurable: true};"
        " Object.defineProperty(globalThis, 'n', n); return globalThis.n; }",
        "function main(x) { const key = Symbol.for('n'); globalThis[key] = (globalThis[key] || 0) + 1;"
        " return globalThis[key]; }",
        "function main(x) { const before = typeof globalThis.stack; Error.captureStackTrace(globalThis);"
        " return before === 'undefined' ? 1 : 2; }",
        "function main(x) { const all = new Proxy(globalThis, {});"
        " const n = {value: (globalThis.n || 0) + 1, configurable: true};"
        " Object.defineProperties(all, {n}); return globalThis.n; }",
        "function main(x) { (0, eval)('var n = (globalThis.n || 0) + 1'); return globalThis.n; }",
        "function main(x) { const all = Function('return this')(); all.n = (all.n || 0) + 1; return all.n; }",
    ],
)
def test_a_global_variable_does_not_survive_a_call(script: str) -> None:
    assert values(script) == [1, 1, 1]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("Object.defineProperty(globalThis, 'n', {value: 1})", "it made n a fixed global variable"),
        ("Object.defineProperty(globalThis, Symbol('n'), {value: 1})", "it made Symbol(n) a fixed global variable"),
        ("Object.preventExtensions(globalThis)", "it made the global object fixed"),
    ],
)
def test_a_global_variable_that_cannot_be_removed_is_an_error(change: str, what: str) -> None:
    assert values(f"function main(x) {{ if (x === 1) {change}; return 1; }}")[1] == what


def test_what_a_promise_does_after_its_call_does_not_reach_the_next_batch() -> None:
    script = """
        function main(x) {
            const before = typeof n === "undefined" ? 0 : n;
            Promise.resolve().then(() => { n = 7; /(left)/.exec("left"); Math.n = 7; });
            return before + (Math.n || 0) + RegExp.$1.length;
        }
    """
    function = V8Engine(JavaScriptFunction("f", script, AsaType.BIGINT))
    for _ in range(3):
        results, errors = function.call([pa.array([1, 2])], 2)
        assert (results.to_pylist(), errors.null_count) == ([0, 0], 2)


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("function P() { this.x = 1; } P.prototype.toString = function () { return 'P' + this.x; };"
         "function main(x) { return String(new P()); }", "P1"),
        ("function P() {} P.prototype = Object.create(Array.prototype); P.prototype.constructor = P;"
         "P.prototype.push = () => 'own'; function main(x) { return new P().push(1); }", "own"),
        ("class MyError extends Error { constructor(m) { super(m); this.name = 'MyError'; this.message += '!'; } }"
         "function main(x) { return String(new MyError('no')); }", "MyError: no!"),
        ("function main(x) { const o = {}; o.toString = () => 'own'; o.valueOf = () => 1; o.constructor = 1;"
         "return String(o) + Object.keys(o); }", "owntoString,valueOf,constructor"),
        ("function main(x) { 'use strict'; const a = [1]; a.join = () => 'own'; a.toJSON = () => 'own';"
         "return a.join() + JSON.stringify(a); }", "own\"own\""),
        ("const util = {}; util.hasOwnProperty = () => 'own'; function main(x) { return util.hasOwnProperty('x'); }",
         "own"),
        ("function main(x) { const f = () => 1; f.call = () => 'own'; return f.call(); }", "own"),
        ("parts = ['a']; function main(x) { parts.push('b'); return parts.join(); }", "a,b"),
        ("function main(x) { const d = new Date(0); d.toString = () => 'own'; return '' + d; }", "own"),
    ],
)  # fmt: skip
def test_own_properties_may_have_the_names_of_inherited_ones(script: str, value: str) -> None:
    assert values(script, AsaType.STRING) == [value] * 3


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("Array.prototype.last = function () { return this[this.length - 1]; };", "Array.prototype.last"),
        ("if (!String.prototype.startsWith2) String.prototype.startsWith2 = () => true;",
         "String.prototype.startsWith2"),
        ("Object.defineProperty(Math, 'tau', {value: 6.28});", "Math.tau"),
        ("Number.parseFloat = undefined;", "Number.parseFloat"),
        ("delete JSON.parse;", "JSON.parse"),
        ("Math = {};", "Math"),
        ("Object.prototype[Symbol.iterator] = null;", "Object.prototype[Symbol(Symbol.iterator)]"),
        ("Array.prototype.map = function () { return ['evil']; };", "Array.prototype.map"),
        ("Array.prototype[0] = 1;", "Array.prototype.0"),
        ("Object.setPrototypeOf(Map.prototype, Array.prototype);", "Map.prototype"),
        ("Object.preventExtensions(Set.prototype);", "Set.prototype"),
        (
            "Reflect.ownKeys = () => []; Object.is = () => true; Set.prototype.has = () => true;",
            "Object.is",
        ),
        ("[].values().__proto__.n = 1;", "a built-in object.n"),
        ("String.prototype.replace = RegExp.prototype.exec = null; missing();", "String.prototype.replace"),
    ],
)  # fmt: skip
def test_a_script_that_changes_a_builtin_when_it_is_loaded_is_refused_with_the_name(change: str, name: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        values(f"{change}\nfunction main(x) {{ return 1; }}")
    assert str(refusal.value) == (
        f"the script of udf.f cannot run: it changes {name}, and a change to a built-in object would reach later calls:"
        " write a function of its own instead"
    )


def test_a_polyfill_of_what_exists_changes_nothing() -> None:
    polyfill = "if (!Array.prototype.includes) { Array.prototype.includes = function () { return 'evil'; }; }"
    assert values(f"{polyfill}\nfunction main(x) {{ return [1].includes(1); }}", AsaType.BIT) == [True] * 3


def test_an_aggregate_does_not_see_what_an_earlier_window_left() -> None:
    counting = aggregate_script(
        "Math.n = (Math.n || 0) + 1; /(\\d)/.exec(value); this.state.push(value);",
        "(Math.n || 0) * 100 + this.state.length * 10 + before.length",
        "var before = RegExp.$1;\n",
    )
    assert aggregated(aggregate(counting), [[1, 1], [1], [1, 1, 1]])[0] == [20, 10, 30]


@pytest.mark.parametrize("size", [2, 5, 6, 11])
def test_what_a_promise_does_within_a_window_does_not_depend_on_the_batches(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BATCH_ROWS", 5)
    deferring = aggregate_script("Promise.resolve().then(() => { this.state.push(value); });", "this.state.length")
    assert aggregated(aggregate(deferring), [[1], [1] * size, [1]])[0] == [0, size - 1, 0]


def test_an_aggregate_that_changes_a_builtin_when_it_is_loaded_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"it changes Math\.n, "):
        aggregate("Math.n = 1;\n" + aggregate_script("", "0"))
    with pytest.raises(DefinitionError, match=r"it changes Math\.n, "):
        aggregate(aggregate_script("", "0", "Math.n = 1;\n"))


def test_a_fixed_global_variable_is_an_error_of_its_window() -> None:
    fixing = aggregate_script("if (value === 7) Object.defineProperty(globalThis, 'n', {value});", "1")
    results, errors = aggregated(aggregate(fixing), [[1], [7]])
    assert results[0] == 1
    assert errors[1] is not None
    assert errors[1].startswith("uda.total: it made n a fixed global variable")


def test_the_row_that_a_call_leaves_state_after_gives_the_same_value_alone() -> None:
    script = 'function main(x) { /^d([24])$/.test("d" + x); return RegExp.$1 || "none"; }'
    together = values(script, AsaType.STRING, 6)
    assert together == ["none", "none", "2", "none", "4", "none"]
