// exercises: a form under each exercise of a notebook's page. Answers are compared as
// fp4ref.lessons.answer compares them, part by part, against hashes: the page holds no
// answer. What was answered stays in this browser.
{
  let blank = "", ids = [], exercises = []; // of this page
  const KEY = "fp4ref.exercises";

  // SHA-256. Its constants are the first bits of the roots of the first primes.
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  const bits = (root) => ((root - Math.floor(root)) * 2 ** 32) >>> 0;
  const rounds = primes.map((p) => bits(Math.cbrt(p)));
  const begin = primes.slice(0, 8).map((p) => bits(Math.sqrt(p)));
  const turn = (x, n) => (x >>> n) | (x << (32 - n));

  function sha256(text) {
    const data = new TextEncoder().encode(text);
    const padded = new Uint8Array(((data.length + 72) >> 6) << 6);
    padded.set(data);
    padded[data.length] = 128;
    const view = new DataView(padded.buffer);
    view.setUint32(padded.length - 4, data.length * 8);
    const state = [...begin];
    for (let at = 0; at < padded.length; at += 64) {
      const w = rounds.map((_, i) => (i < 16 ? view.getUint32(at + 4 * i) : 0));
      for (let i = 16; i < 64; i++) {
        const [x, y] = [w[i - 15], w[i - 2]];
        const low = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
        w[i] = (w[i - 16] + low + w[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))) | 0;
      }
      let [a, b, c, d, e, f, g, h] = state;
      for (let i = 0; i < 64; i++) {
        const mix = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
        const one = (h + mix + ((e & f) ^ (~e & g)) + rounds[i] + w[i]) | 0;
        const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
      }
      [a, b, c, d, e, f, g, h].forEach((x, i) => (state[i] = (state[i] + x) | 0));
    }
    return state.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
  }

  // What a reader types, as Python would read it; words need no quotes.
  const NUMBER = /^[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.])/i;
  const ENDLESS = /^[-+]?(?:inf|nan)(?![\w.])/;
  const WHOLE = /^[-+]?(?:0x[\da-f_]+|0b[01_]+|\d[\d_]*)(?![\w.])/i;
  const WORD = /^[A-Za-z_][^,()[\]{}"']*(?:\[[^\]]*\])?/;
  const CLOSE = { "(": ")", "[": "]", "{": "}" };
  const LISTS = { "(": "tuple", "[": "list", "{": "set" };

  function read(typed, truth, unit) {
    let text = typed.trim();
    if (text === "" || text === "...") return { type: "blank" };
    const number = truth.kind === "integer" || truth.kind === "number";
    if (number && unit && text.endsWith(unit)) text = text.slice(0, -unit.length).trim();
    if (number && /^[-+]?\d{1,3}(,\d{3})+$/.test(text)) text = text.replaceAll(",", "");
    const words = truth.kind === "text" || truth.kind === "name";
    if (words && !/^["'([{]/.test(text) && NUMBER.exec(text)?.[0] !== text)
      return { type: "str", value: text };
    return readAll(text);
  }

  function readAll(text) {
    let at = 0;
    const rest = () => text.slice(at);
    const skip = () => (at += /^\s*/.exec(rest())[0].length);
    const take = (pattern) => {
      const found = pattern.exec(rest())?.[0];
      if (found) at += found.length;
      return found;
    };
    const items = (end) => {
      const found = [];
      let comma = false;
      for (skip(); at < text.length && text[at] !== end; skip()) {
        found.push(one());
        skip();
        comma = text[at] === ",";
        if (comma) at++;
        else if (text[at] !== end) throw new SyntaxError(text);
      }
      if (text[at] !== end) throw new SyntaxError(text);
      at++;
      return { found, comma };
    };
    const one = () => {
      const open = text[at];
      if (open in CLOSE) {
        at++;
        const { found, comma } = items(CLOSE[open]);
        if (open === "(" && found.length === 1 && !comma) return found[0];
        return { type: LISTS[open], items: found };
      }
      if (open === '"' || open === "'") {
        const end = text.indexOf(open, at + 1);
        if (end < 0) throw new SyntaxError(text);
        const value = text.slice(at + 1, end);
        at = end + 1;
        return { type: "str", value };
      }
      let found = take(WHOLE);
      if (found) {
        const size = BigInt(found.replaceAll("_", "").replace(/^[-+]/, ""));
        return { type: "int", value: found[0] === "-" ? -size : size };
      }
      if ((found = take(NUMBER))) return { type: "float", value: Number(found.replaceAll("_", "")) };
      if ((found = take(ENDLESS))) return { type: "float", value: Number(found.replace("inf", "Infinity")) };
      if (take(/^\.\.\./)) return { type: "blank" };
      found = take(WORD)?.trim();
      if (!found) throw new SyntaxError(text);
      if (/^(true|false)$/i.test(found)) return { type: "bool", value: /^t/i.test(found) };
      if (found === "None") return { type: "None" };
      return { type: "str", value: found };
    };
    const { found, comma } = items(undefined);
    return found.length === 1 && !comma ? found[0] : { type: "tuple", items: found };
  }

  // The same words as Python's.
  function quoted(value) {
    const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
    const short = value.length > 58 ? `${value.slice(0, 27)}...${value.slice(-28)}` : value;
    return quote + short + quote;
  }

  function decimal(value) {
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1e16) return Object.is(value, -0) ? "-0.0" : `${value}.0`;
    if (Number.isFinite(value) && (size >= 1e16 || size < 1e-4))
      return value.toExponential().replace(/e([-+])(\d)$/, "e$10$2");
    return String(value).replace("Infinity", "inf").replace("NaN", "nan");
  }

  function shown({ type, value, items }, inside = false) {
    if (type === "int") return inside ? String(value) : value.toLocaleString("en-US");
    if (type === "float") return decimal(value);
    if (type === "str") return quoted(value);
    if (type === "bool") return value ? "True" : "False";
    if (!items) return "None";
    const all = items.slice(0, 4).map((each) => shown(each, true)).join(", ");
    const [open, close] = { tuple: "()", list: "[]", set: "{}" }[type];
    return open + all + (items.length > 4 ? ", ..." : "") + close;
  }

  function float64(value) {
    if (Number.isNaN(value)) return "nan";
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    return view.getBigUint64(0).toString(16).padStart(16, "0");
  }

  // Kinds of answer: what is asked for, the types that are, and what is hashed.
  const plain = ({ value }) => value.trim().toLowerCase();
  const KINDS = {
    flag: ["True or False", ["bool"], (given) => shown(given)],
    none: ["a value of type NoneType", ["None"], () => "None"],
    integer: ["a whole number", ["int", "float"], ({ value }) =>
      typeof value === "bigint" || !Number.isInteger(value) ? String(value) : String(BigInt(value))],
    number: ["a number", ["int", "float"], ({ value }) => float64(Number(value))],
    text: ["text in quotes", ["str"], plain],
    name: ["", ["str"], plain],
  };

  function difference(given, truth, id, unit) {
    const { kind, place } = truth;
    const asked = (wanted) => {
      const type = given.type === "None" ? "nothing" : given.type;
      return { place, what: `${wanted} is asked for, not ${type}` };
    };
    const digest = (words) => sha256(`fp4ref ${id}${place} ${words}`).slice(0, 32);
    if (given.type === "blank") return { place, what: "nothing is answered here yet" };
    if (kind === "list") {
      const size = truth.parts.length;
      if (given.type !== "list" && given.type !== "tuple") return asked(`a list of ${size} elements`);
      if (given.items.length !== size)
        return { place, what: `it has ${given.items.length} elements, not ${size}` };
      return first(truth.parts, (part, i) => difference(given.items[i], part, id, unit));
    }
    if (kind === "set") {
      if (!given.items) return asked("a set");
      const mine = new Map(given.items.map((each) => [digest(String(each.value)), shown(each)]));
      const extra = [...mine].filter(([hash]) => !truth.hash.includes(hash)).map(([, each]) => each);
      if (extra.length) return { place, what: `${extra.sort()[0]} does not belong there` };
      const missing = truth.hash.filter((hash) => !mine.has(hash)).length;
      const what = `${missing} of ${truth.hash.length} elements are missing`;
      return missing ? { place, what } : null;
    }
    const [wanted, types, words] = KINDS[kind];
    const fits = types.includes(given.type);
    if (!fits && wanted) return asked(wanted);
    if (fits && truth.hash.includes(digest(words(given)))) return null;
    const of = unit && (kind === "integer" || kind === "number") ? ` ${unit}` : "";
    return { place, what: shown(given) + of, wrong: true };
  }

  function first(all, find) {
    for (const [i, each] of all.entries()) {
      const found = find(each, i);
      if (found) return found;
    }
    return null;
  }

  // What is wrong with what was typed, in one sentence; null if nothing is.
  function problem(exercise, typed) {
    const { id, unit, truth } = exercise;
    let found;
    try {
      if (truth.kind === "dict") {
        const given = truth.parts.map((part, i) => read(typed[i], part, unit));
        found = first(truth.parts, (part, i) => difference(given[i], part, id, unit));
      } else {
        const given = read(typed[0], truth, unit);
        if (given.type === "blank" || given.type === "None") return blank;
        found = difference(given, truth, id, unit);
      }
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return "This cannot be read: write a number, a word, or a list such as 1, 2, 3.";
    }
    if (!found) return null;
    const { place, what, wrong } = found;
    if (!wrong) return `${place || "The answer"}: ${what}.`;
    return place ? `First difference at ${place}: ${what} is not right.` : `${what} is not right.`;
  }

  // Kept in this browser; a page that may keep nothing still answers.
  let kept = {};
  try {
    kept = JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    kept = {};
  }
  const tell = () => document.dispatchEvent(new CustomEvent("fp4-kept", { detail: kept }));
  const keep = () => {
    tell();
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      return;
    }
  };
  const progress = () =>
    `${ids.filter((id) => kept[id]?.passed).length} of ${ids.length} exercises have passed.`;

  function make(tag, attributes = {}, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  }

  function line(text, label = "") {
    const words = text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));
    return make("p", {}, ...(label ? [make("strong", {}, label), " "] : []), ...words);
  }

  function build(exercise) {
    const { id, truth, unit } = exercise;
    const bytes = Uint8Array.from(atob(exercise.said), (c) => c.charCodeAt(0));
    const said = JSON.parse(new TextDecoder().decode(bytes));
    const name = `exercise-${id.replace(".", "-")}`;
    const form = make("form", { class: "fp4-exercise", id: name, "aria-label": `Answer ${id}` });
    const status = make("div", { role: "status" });
    const counted = make("p", { class: "fp4-counted" });
    const fields = !truth ? [] : truth.kind === "dict" ? truth.parts.map((part) => part.key) : [""];
    const inputs = fields.map((label) => {
      const input = make("input", { type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
      const words = label || (unit ? `Your answer, in ${unit}` : "Your answer");
      form.append(make("label", {}, words, input));
      return input;
    });
    let hints = 0;
    const hint = make("button", { type: "button" }, "Hint");
    const check = make("button", { type: "submit" }, "Check");
    if (truth) form.append(check);
    else form.append(line("This one asks for a function: write it in the notebook, which `make lab` opens."));
    form.append(hint, status, counted);

    const verdict = () => {
      const wrong = problem(exercise, inputs.map((input) => input.value));
      form.dataset.verdict = wrong ? "wrong" : "right";
      counted.textContent = progress();
      if (!wrong) {
        const next = exercise.next;
        const here = next && exercises.some((each) => each.id === next.id);
        const goal = next && `${here ? "" : next.page}#exercise-${next.id.replace(".", "-")}`;
        const last = next ? make("p", {}, make("a", { href: goal }, said.next)) : line(said.next);
        status.replaceChildren(line(said.title, `${id} passed.`), line(`Why: ${said.why}`), last);
      } else if (wrong === blank) {
        status.replaceChildren(line(wrong, `${id} not yet.`), line("The button gives a hint."));
      } else {
        hints = Math.max(hints, 1);
        const lines = [line(`Hint: ${said.hints[0]}`), line("The button says more.")];
        status.replaceChildren(line(wrong, `${id} not yet.`), ...lines);
      }
      return !wrong;
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!truth) return;
      const typed = inputs.map((input) => input.value);
      const right = !problem(exercise, typed);
      kept[id] = { typed, passed: right || Boolean(kept[id]?.passed) };
      keep();
      verdict();
    });
    hint.addEventListener("click", () => {
      const number = Math.min(++hints, said.hints.length);
      status.replaceChildren(line(said.hints[number - 1], `Hint ${number} of ${said.hints.length}.`));
    });
    if (truth && kept[id]) {
      inputs.forEach((input, i) => (input.value = kept[id].typed?.[i] ?? ""));
      verdict();
    }
    return form;
  }

  const answerInThePage = () => {
    tell();
    const holder = document.getElementById("fp4-exercises");
    if (!holder) return;
    ({ blank, ids, exercises } = JSON.parse(holder.textContent));
    for (const cell of document.querySelectorAll(".cell.tag_exercise")) {
      const id = /check\(\s*"(\d\d\.\d+)"/.exec(cell.textContent)?.[1];
      const exercise = exercises.find((each) => each.id === id);
      if (exercise) cell.after(build(exercise));
    }
    if (location.hash.startsWith("#exercise-")) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  };

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", answerInThePage);
  else answerInThePage();
}
