// What a form says, as the body of a request. Pure functions.

/** Return the value of one field: `{type, kind, value, checked}`; undefined = leave it out. */
export function fieldValue({ type, kind, value, checked }) {
  if (type === "checkbox") return checked;
  const text = value.trim();
  if (!text) return undefined;
  if (kind === "lines") return lines(text);
  if (kind === "matchers") return lines(text).map(asMatcher);
  if (kind === "number") return asNumber(text);
  if (kind === "json") return asJson(text);
  return kind === "verbatim" ? value : text;
}

/** Return the body from [name, field] pairs; `a.b` puts b into the object a. Throws Error naming the field. */
export function bodyOf(fields) {
  const body = {};
  for (const [name, field] of fields) {
    let value;
    try {
      value = fieldValue(field);
    } catch (error) {
      throw new Error(`${name}: ${error.message}`, { cause: error });
    }
    if (value !== undefined) put(body, name.split("."), value);
  }
  return body;
}

/** Return the address with `{name}` replaced by fields, each as one part of a path. */
export function pathOf(template, values) {
  return template.replace(/\{([a-z_]+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));
}

function lines(text) {
  return text.split("\n").map((line) => line.trim().replace(/,$/, "")).filter(Boolean);
}

/** `server=~"gpu.*"` as an object; quotes may be left out. */
function asMatcher(line) {
  const found = line.match(/^([A-Za-z_][A-Za-z0-9_]*)\s*(=~|!~|!=|=)\s*(.*)$/);
  if (!found) throw new Error(`“${line}” is no condition; write e.g. rule="dead-draft"`);
  const [, label, operator, value] = found;
  return { label, operator, value: value.replace(/^"(.*)"$/, "$1") };
}

function put(target, [first, ...rest], value) {
  if (!rest.length) target[first] = value;
  else put((target[first] ??= {}), rest, value);
}

function asNumber(text) {
  const number = Number(text);
  if (!Number.isFinite(number)) throw new Error(`“${text}” is no number`);
  return number;
}

function asJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`it is no JSON (${error.message})`);
  }
}
