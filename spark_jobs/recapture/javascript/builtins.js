// The built-in objects of a V8 context: what a script changes in them would reach later calls.
(function () {
  "use strict";
  const {
    apply, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, isExtensible, ownKeys,
    setPrototypeOf,
  } = Reflect;
  const { freeze, getOwnPropertySymbols, is } = Object;
  const { hasOwnProperty } = Object.prototype, functions = Function.prototype;
  const { exec } = RegExp.prototype;
  const asText = String, Refusal = TypeError;
  const UNNAMED = "a built-in object";
  const FIELDS = ["value", "get", "set", "writable", "enumerable", "configurable"];
  const found = new Map(), inherited = new Set(), globals = new Set(ownKeys(globalThis));
  const globalPrototype = getPrototypeOf(globalThis), nothing = /(?:)/;
  const snapshot = [];
  let mayHide = false;

  // Note each call of a function that can make a global variable that `for … in` does not show.
  for (const [owner, name] of [
    [Object, "defineProperty"], [Object, "defineProperties"], [Reflect, "defineProperty"], [Error, "captureStackTrace"],
  ]) {
    const define = owner[name];
    const noting = { [name](...given) {
      mayHide = true;
      return apply(define, this, given);
    } }[name];
    defineProperty(noting, "length", { value: define.length });
    owner[name] = noting;
  }

  // Built-in objects that no property of a global variable leads to.
  function hidden() {
    const made = [
      [].values(), ""[Symbol.iterator](), new Map().keys(), new Set().keys(), "".matchAll(/a/g),
      [].values().map((value) => value), Iterator.from({ next() {} }),
      function* () {}, (function* () {})(), async () => {}, async function* () {}, (async function* () {})(),
      new Intl.Segmenter().segment(""), new Intl.Segmenter().segment("")[Symbol.iterator](),
    ];
    return made.map(getPrototypeOf);
  }

  function isObject(value) {
    return (typeof value === "object" && value !== null) || typeof value === "function";
  }

  // Find all built-in objects, each under the shortest name.
  function find() {
    const queue = [...globals].map((key) => [globalThis[key], asText(key)]);
    queue.push(...hidden().map((object) => [object, UNNAMED]));
    for (const [object, name] of queue) {
      if (!isObject(object) || object === globalThis || found.has(object)) continue;
      found.set(object, name);
      for (const key of ownKeys(object)) {
        const { value, get, set } = getOwnPropertyDescriptor(object, key);
        if (key === "prototype" && isObject(value)) inherited.add(value);
        for (const inner of [value, get, set]) queue.push([inner, named(name, key)]);
      }
      const prototype = getPrototypeOf(object);
      if (isObject(prototype)) inherited.add(prototype);
      queue.push([prototype, UNNAMED]);
    }
  }

  function named(name, key) {
    if (name === "") return asText(key);
    return typeof key === "symbol" ? `${name}[${asText(key)}]` : `${name}.${key}`;
  }

  function recorded(object, name) {
    const keys = ownKeys(object);
    const descriptors = keys.map((key) => getOwnPropertyDescriptor(object, key));
    return { object, name, keys, descriptors, prototype: getPrototypeOf(object) };
  }

  function differs(before, after) {
    if (after === undefined) return true;
    for (let index = 0; index < FIELDS.length; index++) {
      if (!is(before[FIELDS[index]], after[FIELDS[index]])) return true;
    }
    return false;
  }

  // Return the name of a built-in that has changed since this file was run; null if none has. No built-in that a script
  // may have replaced is used.
  function changed() {
    for (let index = 0; index < snapshot.length; index++) {
      const { object, name, keys, descriptors, prototype } = snapshot[index];
      const now = ownKeys(object);
      if (now.length > keys.length && object !== globalThis) return named(name, added(keys, now));
      for (let place = 0; place < keys.length; place++) {
        if (differs(descriptors[place], getOwnPropertyDescriptor(object, keys[place]))) return named(name, keys[place]);
      }
      if (getPrototypeOf(object) !== prototype || !isExtensible(object)) return name || "globalThis";
    }
    return null;
  }

  function added(keys, now) {
    for (let place = 0; place < now.length; place++) {
      let isOld = false;
      for (let other = 0; other < keys.length; other++) isOld ||= keys[other] === now[place];
      if (!isOld) return now[place];
    }
  }

  // Let nobody change the built-in objects from now on, nor the global variables that lead to them.
  function fix() {
    for (const [object, name] of found) {
      // A constructor is inherited from too, but V8 reads Error.stackTraceLimit as a value.
      const isPrototype = inherited.has(object) && (typeof object !== "function" || object === functions);
      if (isPrototype) for (const key of ownKeys(object)) letInherit(object, name, key);
    }
    for (const object of found.keys()) freeze(object);
    for (const key of globals) {
      const isValue = "value" in getOwnPropertyDescriptor(globalThis, key);
      defineProperty(globalThis, key, isValue ? { writable: false, configurable: false } : { configurable: false });
    }
  }

  // Let objects have a property of their own under the name of one that they inherit. Assignment could not make one if
  // the inherited property were read-only.
  function letInherit(object, name, key) {
    const { value, writable, enumerable } = getOwnPropertyDescriptor(object, key);
    if (!writable || typeof key === "symbol") return;
    defineProperty(object, key, {
      enumerable,
      configurable: false,
      get() {
        return value;
      },
      set(own) {
        if (this === object) throw new Refusal(`${named(name, key)} cannot be changed`);
        if (!isObject(this)) return;
        const attributes = { writable: true, enumerable: true, configurable: true };
        defineProperty(this, key, apply(hasOwnProperty, this, [key]) ? { value: own } : { value: own, ...attributes });
      },
    });
    const accessors = getOwnPropertyDescriptor(object, key);
    freeze(accessors.get);
    freeze(accessors.set);
  }

  // Remove the global variables that a script left, and what regular expressions matched. Return what cannot be
  // removed; null if all is.
  function forget() {
    apply(exec, nothing, [""]);
    const isOpen = setPrototypeOf(globalThis, globalPrototype) && isExtensible(globalThis);
    if (mayHide || shown() > shownAtFirst) {
      mayHide = false;
      const keys = ownKeys(globalThis);
      for (let place = 0; place < keys.length; place++) {
        if (!globals.has(keys[place]) && !deleteProperty(globalThis, keys[place])) {
          mayHide = true;
          return `it made ${asText(keys[place])} a fixed global variable`;
        }
      }
    }
    return isOpen ? null : "it made the global object fixed";
  }

  // Return how many global variables there are, without those that only `mayHide` tells of.
  function shown() {
    let count = getOwnPropertySymbols(globalThis).length;
    for (const name in globalThis) count++;
    return count;
  }

  find();
  const shownAtFirst = shown();
  snapshot.push(recorded(globalThis, ""), ...[...found].map(([object, name]) => recorded(object, name)));
  return { changed, fix, forget };
})()
