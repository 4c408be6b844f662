import type { DataPathCounts } from "../dataplane/peer-state.ts";
import type { Subnets } from "../lease/lease.ts";
import type { Finding } from "../observe/finding.ts";
import type { LoopState } from "../observe/loops.ts";
import type { Observation } from "./observation.ts";
import type { Reason } from "./readiness.ts";

/** A finding that holds, for people and scripts. */
export interface StatusFinding extends Finding {
  readonly subject: string;
  /** ISO 8601, UTC. */
  readonly since: string;
}

/** What `flanneld status -o json` prints. Parts that are not known yet are absent. */
export interface StatusReport {
  readonly version: string;
  readonly commit: string;
  readonly pid: number;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  readonly uptimeSeconds: number;
  readonly phase: "starting" | "serving" | "stopping";
  readonly ready: boolean;
  readonly reasons: readonly Reason[];
  readonly subnetFile: string;
  readonly store?: string;
  readonly node?: { readonly id: string; readonly bootId: string };
  readonly interface?: {
    readonly name: string;
    readonly mtu: number;
    readonly ipv4?: string;
    readonly ipv6?: string;
    /** Addresses that peers use. */
    readonly publicIP?: string;
    readonly publicIPv6?: string;
    /** Why this one. */
    readonly reason: string;
  };
  readonly config?: { readonly source: string; readonly revision: number };
  readonly backend?: {
    readonly type: string;
    readonly plugin: string;
    readonly version: string;
    /** What a backend that acts itself tells of its data path. */
    readonly details?: Readonly<Record<string, string>>;
  };
  readonly lease?: {
    readonly key: string;
    readonly subnets: Subnets;
    readonly state: string;
    readonly origin: string;
    /** Absent for a reservation, which never ends. */
    readonly secondsLeft?: number;
  };
  /** `rejected`: leases that are not routed to, since they clash with others. */
  readonly peers: Omit<DataPathCounts, "objects" | "failing"> & { readonly rejected: number };
  readonly objects: { readonly wanted: number; readonly failing: number };
  readonly findings: readonly StatusFinding[];
  readonly loops: readonly LoopState[];
}

/** The state of the daemon at this moment. */
export function composeStatus(observation: Observation): StatusReport {
  const { build, startedAt, phase, settings, store, session, health, loops } = observation;
  const reasons = observation.readiness();
  const { objects, failing, ...peers } = observation.dataPath;
  return {
    ...build,
    pid: process.pid,
    startedAt: new Date(startedAt).toISOString(),
    uptimeSeconds: Math.floor((Date.now() - startedAt) / 1000),
    phase,
    ready: reasons.length === 0,
    reasons,
    subnetFile: settings.subnetFile,
    ...(store ? { store: store.description } : {}),
    ...(session ? describeSession(session) : {}),
    peers: { ...peers, rejected: session?.peers.rejected().length ?? 0 },
    objects: { wanted: objects, failing },
    findings: health.active().map(({ finding, subject, since }) => ({
      ...finding,
      subject,
      since: new Date(since).toISOString(),
    })),
    loops: loops.list(),
  };
}

function describeSession({ prepared, held, lease }: NonNullable<Observation["session"]>) {
  const { identity, external, choice, config, understood, driver } = prepared;
  const { name: plugin, version } = understood.chosen.loaded.manifest;
  const { name, mtu, ipv4, ipv6, publicIP, publicIPv6 } = external;
  const { source, revision } = understood.document;
  const { details = {} } = driver;
  return {
    node: { id: identity.nodeId, bootId: identity.bootId },
    interface: {
      name,
      mtu,
      ...(ipv4 === undefined ? {} : { ipv4 }),
      ...(ipv6 === undefined ? {} : { ipv6 }),
      ...(publicIP === undefined ? {} : { publicIP }),
      ...(publicIPv6 === undefined ? {} : { publicIPv6 }),
      reason: choice.reason,
    },
    config: { source, revision },
    backend: {
      type: config.backend.type,
      plugin,
      version,
      ...(Object.keys(details).length > 0 ? { details } : {}),
    },
    lease: {
      key: held.lease.key,
      subnets: held.lease.subnets,
      state: lease.state,
      origin: held.origin,
      ...(lease.secondsLeft === undefined ? {} : { secondsLeft: lease.secondsLeft }),
    },
  };
}
