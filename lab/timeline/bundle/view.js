/** What the parts of the page share: the template function, and the application that they change. */

import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

/** @import { VNode } from "preact" */
/** @import { Model } from "./model.js" */
/** @import { Source } from "./source.js" */
/** @import { Cluster, Ui } from "./types.js" */

/** @type {(strings: TemplateStringsArray, ...values: any[]) => VNode<any>} */
export const html = /** @type {any} */ (htm.bind(h));

/**
 * @typedef {object} App
 * @property {Model} model
 * @property {Source} source
 * @property {Ui} ui
 * @property {Cluster} cluster of the chosen place
 * @property {number} place the number of revisions that are folded
 * @property {boolean} live the chosen place is the newest, and stays so
 * @property {string} badge whether a cluster is followed: live, down, reconnecting, or which other source it is
 * @property {(changes: Partial<Ui>) => void} set
 * @property {(place: number | null) => void} seek
 * @property {(key: string) => void} select
 */

/** Return a text that is broken behind punctuation, not within a word: "node.kubernetes.io/unschedulable". @param {string} text */
export const breakable = (text) => text.split(/(?<=[/:.,=])/).map((part) => html`${part}<wbr />`);

/** A button that selects an object. @param {{app: App, to: string, text?: string}} props */
export const ObjectLink = ({ app, to, text }) =>
  html`<button class="link" onClick=${() => app.select(to)} title=${to}>${text ?? to}</button>`;

/** A section with a title, or nothing where it is empty. @param {{title: string, count?: number, children?: any}} props */
export const Section = ({ title, count, children }) =>
  html`<section><h3>${title}${count === undefined ? "" : html` <span class="count">${count}</span>`}</h3>${children}</section>`;
