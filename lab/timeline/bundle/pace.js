/** How often changes of the cluster are drawn: the cluster needs the processor, too. Pure. */

/** They are drawn for this share of the time at most, but once in DRAW_MS. */
const DRAW_SHARE = 0.02;
const DRAW_MS = 500;
/** A cluster with so many writes from one drawing to the next is busy, and drawn less often. */
const BUSY_WRITES = 200;
const BUSY_DRAW_MS = 1000;

/** Return how long to wait after a drawing, in milliseconds. @param {number} took its time @param {number} writes those that it added */
export const drawPause = (took, writes) => (writes >= BUSY_WRITES ? BUSY_DRAW_MS : Math.min(took / DRAW_SHARE, DRAW_MS));
