// All state of a page lives in the query string. Pure functions on strings.

export const KEYS = ["server", "launch", "from", "to", "refresh", "theme", "search", "sort", "by",
  "ids", "engine_version", "model_class", "layers", "system", "total_a", "tokens_a", "total_b", "tokens_b", "hidden_size",
  "experts", "experts_per_token", "reference", "boundaries"];

/** Read the state out of a query string; keys that are absent or empty are absent in the answer. */
export function readState(search) {
  const query = new URLSearchParams(search);
  const state = {};
  for (const key of KEYS) {
    const value = query.get(key);
    if (value) state[key] = value;
  }
  return state;
}

/** Return a query string ("" or "?…") with changes applied; an empty value removes its key, other keys stay. */
export function changeState(search, changes) {
  const query = new URLSearchParams(search);
  for (const [key, value] of Object.entries(changes)) {
    if (value) query.set(key, value);
    else query.delete(key);
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

/** Return path and query of one figure for the state of a page. */
export function figureUrl(name, state, options) {
  const query = new URLSearchParams();
  for (const key of ["server", "launch", "from", "to", "by", "search", "reference", "boundaries"]) if (state[key]) query.set(key, state[key]);
  for (const [key, value] of Object.entries(options)) query.set(key, String(value));
  return `/api/v1/figures/${encodeURIComponent(name)}?${query}`;
}
