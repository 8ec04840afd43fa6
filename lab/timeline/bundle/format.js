/** Texts of quantities and times. */

const UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** @param {number} value @returns {string} */
const short = (value) => String(Number(value.toPrecision(value >= 100 ? 4 : 3)));

/** Return cores of milli-units. @param {number} milli */
export const cpu = (milli) => (milli && milli < 100 ? `${milli}m` : short(milli / 1000));

/** Return bytes with a binary unit. @param {number} value */
export function bytes(value) {
  let unit = 0;
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return short(value) + UNITS[unit];
}

/** Return an amount of a resource. @param {string} resource @param {number} value */
export const amount = (resource, value) =>
  resource === "cpu" ? cpu(value) : resource === "memory" ? bytes(value) : String(value);

/** Return a number with its noun. @param {number} count @param {string} noun */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Return the time of day in UTC, with milliseconds. @param {number} seconds since the epoch */
export const clock = (seconds) => (seconds ? new Date(seconds * 1000).toISOString().slice(11, 23) : "unknown time");

/** Return date and time in UTC. @param {number} seconds since the epoch */
export const dated = (seconds) => (seconds ? new Date(seconds * 1000).toISOString().replace("T", " ") : "unknown time");

/** Return a duration as kubectl does. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 10) return `${Math.max(seconds, 0).toFixed(1)}s`;
  seconds = Math.round(seconds);
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m${seconds % 60}s`;
  return `${Math.floor(seconds / 3600)}h${Math.floor((seconds % 3600) / 60)}m`;
}
