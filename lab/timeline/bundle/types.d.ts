// The document `dashboard.nominee.dev/v1`, as lab/timeline/document.py writes it, and the values that are made of it.
// A field with an empty or default value may be left out of a row.

export interface Size { cpu?: number; memory?: number }

export interface Row {
  rows?: Record<string, string>;
  cpu?: number;
  memory?: number;
  devices?: Record<string, number>;
  // of a Node
  pods?: number; zone?: string; group?: string; ready?: string; conditions?: Record<string, string>;
  taints?: string[]; unschedulable?: boolean; version?: string;
  // of a Pod
  uid?: string; node?: string; nominated?: string; phase?: string; priority?: number; owner?: string;
  terminating?: number | null; reason?: string; message?: string; gated?: boolean; prebind?: boolean;
  resize?: string; desired?: Size | null;
}

export interface Revision {
  r: number; t: number; k: string; ns?: string; n: string; w?: string; row: Row | null; state?: boolean;
}
export interface Mark { t: number; kind: string; text: string; object?: string | null }
export interface Component {
  name: string; component: string; version?: string; gates?: Record<string, boolean>; leader?: boolean | null;
  state?: string; health?: string; restarts?: number; failpoints?: string[]; faults?: string[];
}
export interface QueuedPod { pod: string; reason?: string; node?: string; seconds?: number | null }
export type Queues = Record<string, QueuedPod[]>;
export interface Autoscaler {
  groups?: { name: string; size: number; min?: number; max?: number; upcoming?: number }[];
  unneeded?: { node: string; seconds?: number | null; reason?: string }[];
  upcoming?: { node: string; group?: string; seconds?: number | null }[];
  unremovable?: Record<string, unknown>; error?: string;
}
export interface Details { changes?: string[]; object?: string[]; name?: string; writer?: string }
export interface TimeLine {
  apiVersion?: string; kind?: string; title: string; source: string; read_only?: boolean; begin?: number; end?: number;
  coverage?: { begin?: number; end?: number; gaps?: [number, number][]; left_out?: number };
  revisions: Revision[]; marks?: Mark[]; components?: Component[]; queues?: Queues | null;
  autoscaler?: Autoscaler | null; details?: Record<string, Details> | null; follow?: string[];
}
export interface Field { name: string; label: string; kind?: string; choices?: string[]; value?: string }
export interface Action { name: string; title: string; on: string; fields: Field[] }

/** A pod of the chosen moment. */
export interface Pod { key: string; name: string; row: Row; state: string; hue: number }
/** A node of the chosen moment with its pods. */
export interface Node {
  key: string; name: string; row: Row; pods: Pod[]; nominated: Pod[]; used: { cpu: number; memory: number; pods: number };
}
/** The nodes, the pods on none, pods by state, and the row of a pod of each hue. */
export interface Cluster { nodes: Node[]; waiting: Pod[]; counts: Record<string, number>; hues: Map<number, Row> }
export interface Cell { node: Node; x: number; y: number; width: number; height: number }
export interface Heading { text: string; y: number }
export interface Layout { cells: Cell[]; headings: Heading[]; height: number; detail: "full" | "compact" | "small"; columns: number }
/** A part of a bar, from 0 to 1 of its capacity: of a pod, or of many that look like it. */
export interface Segment { pod: Pod; from: number; to: number; nominated: boolean; many?: boolean }
export interface Bar { value: string; begin: number; end: number | null }

export interface Ui {
  at: number | null; selected: string; followed: string[]; tab: string; colour: string; group: string; zoom: number;
  filter: string; playing: boolean; speed: number; theme: string; scheme: string; range: [number, number] | null; link: string; find?: string;
}
