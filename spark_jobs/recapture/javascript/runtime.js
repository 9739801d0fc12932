// The side of the engine that runs in V8. It compiles one function of a job, and calls it for batches of rows or events.
// The value of this file is a function that takes the text of builtins.js.
(function (builtinsText) {
  "use strict";
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { isInteger, isFinite, MAX_SAFE_INTEGER } = Number;
  const { freeze, keys, prototype: { toString } } = Object;
  const { construct, deleteProperty } = Reflect;
  const RealDate = Date;
  const evaluate = eval;
  const SMALLEST = -(2 ** 63), BEYOND = 2 ** 63;
  const FIRST_DATE = RealDate.parse("0001-01-01T00:00:00Z"), LAST_DATE = RealDate.parse("9999-12-31T23:59:59.999Z");
  const SHOWN = 200, SHOWN_ARGUMENTS = 500;
  const METHODS = ["init", "accumulate", "computeResult"];

  class Mismatch extends Error {}

  function refused(what, advice) {
    throw new Error(`${what} gives another value in every run: ${advice}`);
  }

  // What differs between runs or machines, and what ECMAScript does not have.
  const clock = () => refused("the clock", "pass a time of the event, such as System.Timestamp()");
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, given, newTarget) => (given.length ? construct(target, given, newTarget) : clock()),
    apply: clock,
  });
  RealDate.now = clock;
  RealDate.prototype.constructor = globalThis.Date;
  const formats = Intl.DateTimeFormat.prototype, { formatToParts } = formats;
  const { get } = Object.getOwnPropertyDescriptor(formats, "format");
  Object.defineProperty(formats, "format", {
    get() {
      const format = get.call(this);
      return (date) => (date === undefined ? clock() : format(date));
    },
  });
  formats.formatToParts = function (date) {
    return date === undefined ? clock() : formatToParts.call(this, date);
  };
  Math.random = () => refused("Math.random", "derive the number from the event");
  for (const name of [
    "Atomics", "FinalizationRegistry", "SharedArrayBuffer", "Temporal", "WeakRef", "WebAssembly",
    "__timer_manager", "clearTimeout", "setTimeout",
  ]) {
    globalThis[name] = undefined;
    deleteProperty(globalThis, name);
  }

  const { changed, fix, forget } = evaluate(builtinsText);
  let make, output, readers = [], current = 0;
  let state, events = 0, failure = null;

  // Keep a maker of the function, whose script runs anew for each call, or for each window of an aggregate, so that none
  // sees what an earlier one left. Return why the script cannot run; null if it can.
  function compile(name, script, type, isAggregate) {
    output = CONVERSIONS[type];
    let problem;
    try {
      problem = unusable(name, script, isAggregate);
    } catch {
      problem = "it cannot be loaded";
    }
    const builtin = changed();
    if (builtin !== null) {
      return `it changes ${builtin}, and a change to a built-in object would reach later calls: ` +
        "write a function of its own instead";
    }
    if (problem !== null) return problem;
    fix();
    freeze(make);
    freeze(make.prototype);
    return forget();
  }

  function unusable(name, script, isAggregate) {
    const whole = script.replace(/[;\s]+$/, "");
    const own = isIdentifier(name) ? ` : typeof ${name} === "function" ? ${name}` : "";
    const chosen = `typeof main === "function" ? main${own} : undefined`;
    let problem;
    for (const text of [`return (${whole}\n)`, `${script}\nreturn ${chosen}`]) {
      try {
        make = evaluate(`(function () {${text}\n})\n//# sourceURL=script`);
        if (typeof make() === "function") return isAggregate ? incomplete() : null;
        problem = undefined;
      } catch (error) {
        problem = error;
      }
    }
    return problem ? described(problem) : `it has neither a function main nor a function ${name}`;
  }

  // Return why a script is not an aggregate; null if it is one.
  function incomplete() {
    try {
      const made = construct(make(), []);
      const missing = METHODS.filter((method) => typeof made[method] !== "function");
      return missing.length ? `it lacks ${missing.map((method) => `this.${method}`).join(" and ")}` : null;
    } catch (error) {
      return described(error);
    }
  }

  function isIdentifier(name) {
    try {
      evaluate(`(function () { var ${name}; })`);
      return !name.includes("-");
    } catch {
      return false;
    }
  }

  // Call the function for each row of a batch. Return the values, and the errors by row.
  function run(batch) {
    const { count, columns } = parse(batch);
    readers = columns.map(reader);
    const values = new Array(count), errors = {};
    forget(); // what a promise did after the last batch
    for (current = 0; current < count; current++) {
      try {
        values[current] = output(make().apply(undefined, readers.map((read) => read(current))));
        requireForgotten();
      } catch (error) {
        forget();
        values[current] = "null";
        errors[current] = `${described(error)}; ${lastArguments()}`;
      }
    }
    return `{"values":[${values.join()}],"errors":${stringify(errors)}}`;
  }

  // Accumulate the events of a batch, window by window. `lasts` has the positions of the last events of windows; the
  // last window of the batch may go on in the next one. Return the values of the windows that end, and their errors.
  function aggregate(batch) {
    const { count, columns, lasts, groups } = parse(batch);
    readers = columns.map(reader);
    const group = reader(groups), values = [], errors = {};
    const fail = (error, what) => {
      failure = `${described(error)}; ${what}; its group is ${short(shown(group(values.length)), SHOWN_ARGUMENTS)}`;
    };
    for (current = 0; current < count; current++) {
      events++;
      try {
        if (failure === null) accumulate();
      } catch (error) {
        fail(error, lastArguments());
      }
      if (current !== lasts[values.length]) continue;
      let value = "null";
      try {
        if (failure === null) value = output(state.computeResult());
        requireForgotten();
      } catch (error) {
        forget();
        fail(error, `it has accumulated ${events} event${events === 1 ? "" : "s"}`);
      }
      if (failure !== null) errors[values.length] = failure;
      values.push(value);
      state = undefined, events = 0, failure = null;
    }
    return `{"values":[${values.join()}],"errors":${stringify(errors)}}`;
  }

  function requireForgotten() {
    const left = forget();
    if (left !== null) throw new Mismatch(left);
  }

  function accumulate() {
    if (events === 1) {
      forget(); // what a promise did after the last batch
      state = construct(make(), []);
      state.init();
    }
    state.accumulate(...readers.map((read) => read(current)));
  }

  // Return what reads the argument of a row from its column.
  function reader({ values, dates, texts, fields }) {
    if (values) return (row) => values[row];
    if (dates) return (row) => (dates[row] === null ? null : new RealDate(dates[row]));
    const inner = keys(fields || {}).map((name) => [name, reader(fields[name])]);
    if (texts && !fields) return (row) => (texts[row] === null ? null : parse(texts[row]));
    return (row) => {
      const record = texts && texts[row] !== null ? parse(texts[row]) : {};
      for (const [name, read] of inner) record[name] = read(row);
      return record;
    };
  }

  function orNull(convert) {
    return (value) => (value === null || value === undefined ? "null" : convert(value));
  }

  function required(test, type, text) {
    return orNull((value) => {
      if (!test(value)) throw new Mismatch(`it returned ${kind(value)}, but its output_type is ${type}`);
      return text(value);
    });
  }

  const isWhole = (value) => isInteger(value) && value >= SMALLEST && value < BEYOND;
  const whole = (value) => (Math.abs(value) <= MAX_SAFE_INTEGER ? `${value}` : `${BigInt(value)}`);
  const isDate = (value) => value instanceof RealDate && value >= FIRST_DATE && value <= LAST_DATE;
  const tag = (value) => toString.call(value).slice(8, -1);
  const isRecord = (value) => typeof value === "object" && tag(value) === "Object";
  const isText = (value) => typeof value === "string";
  const CONVERSIONS = {
    "bigint": required(isWhole, "bigint", whole),
    "float": required(isFinite, "float", stringify),
    "nvarchar(max)": required(isText, "nvarchar(max)", (value) => stringify(value.toWellFormed())),
    "datetime": required(isDate, "datetime", (value) => `${value.getTime()}`),
    "bit": required((value) => typeof value === "boolean", "bit", stringify),
    "record": required(isRecord, "record", (value) => stringify(json(value))),
    "array": required(isArray, "array", (value) => stringify(json(value))),
  };

  // Return a value inside a record or an array as JSON.
  function json(value) {
    if (value === null || value === undefined) return "null";
    if (typeof value === "string") return stringify(value.toWellFormed());
    if (typeof value === "boolean" || isFinite(value)) return isWhole(value) ? whole(value) : stringify(value);
    if (isDate(value)) return `"${value.toISOString().slice(0, -1)}0000Z"`;
    if (isArray(value)) return `[${Array.from(value, json).join()}]`;
    if (!isRecord(value)) throw new Mismatch(`it returned ${kind(value)} inside a record or an array`);
    return `{${keys(value).map((name) => `${stringify(name.toWellFormed())}:${json(value[name])}`).join()}}`;
  }

  function kind(value) {
    if (typeof value === "number") return `the number ${value}`;
    if (value instanceof RealDate && !isDate(value)) return "a Date that is invalid or outside the years 1 to 9999";
    const name = typeof value === "object" ? tag(value) : typeof value;
    return `${/^[aeio]/i.test(name) ? "an" : "a"} ${name}`;
  }

  function described(error) {
    if (error instanceof Mismatch) return error.message;
    if (!(error instanceof Error)) return `it threw ${shown(error)}`;
    const line = /script:(\d+)/.exec(error.stack);
    return `${short(`${error.name}: ${error.message}`, SHOWN)}${line ? ` (line ${line[1]} of its script)` : ""}`;
  }

  function lastArguments() {
    return `its arguments are (${short(readers.map((read) => shown(read(current))).join(", "), SHOWN_ARGUMENTS)})`;
  }

  function shown(value) {
    let text;
    try {
      text = stringify(value);
    } catch {}
    return short(text === undefined ? String(typeof value) : text, SHOWN);
  }

  function short(text, length) {
    const line = String(text).replace(/\s+/g, " ").toWellFormed();
    return line.length > length ? `${line.slice(0, length)}…` : line;
  }

  // Time zone and language of the process are read once, here.
  new RealDate(0).toString() + new RealDate(0).toLocaleString();
  return { compile, run, aggregate, lastArguments };
})
