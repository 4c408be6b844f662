import type { ActiveBackend, Host, OwnLease, PeerDelta } from "../../plugins/sdk/backend.ts";
import type { ExternalInterface, HostFacts } from "../../plugins/sdk/facts.ts";
import type { LeaseData, Peer } from "../lease/lease.ts";
import type { Kernel } from "../netlink/kernel.ts";
import { describeError } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import type { Health } from "../observe/health.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import { Turns } from "../retry/turns.ts";
import { mergeDeltas, NO_CHANGE } from "./delta.ts";
import type { Driver, DriverEvents } from "./driver.ts";
import { gatherFacts } from "./facts.ts";

export interface ActiveInput {
  readonly backend: ActiveBackend;
  readonly host: Host;
  readonly kernel: Kernel;
  readonly external: ExternalInterface;
  readonly health: Health;
}

/** How often an active backend gets the whole truth again without any change, ms. */
const RESYNC_MS = 60_000;

/** Runs a backend that moves packets or calls an API itself; retries and resyncs it. */
export class ActiveDriver implements Driver {
  readonly watchesPeers = true;
  readonly #input: ActiveInput;
  readonly #turns = new Turns();
  readonly #retry = new Backoff({ first: 1_000, max: 60_000 });
  #peers: ReadonlyMap<string, Peer> = new Map();
  /** What changed since the last sync that succeeded. */
  #pending: PeerDelta = NO_CHANGE;
  #failing = false;
  #wake = new AbortController();
  #shown: ReadonlySet<string> = new Set();

  constructor(input: ActiveInput) {
    this.#input = input;
  }

  async prepare(): Promise<LeaseData> {
    return this.#input.backend.prepare(this.#input.host, await this.#facts());
  }

  async attach(lease: OwnLease): Promise<number> {
    return (await this.#input.backend.attach(lease, await this.#facts())).mtu;
  }

  update(peers: ReadonlyMap<string, Peer>, delta: PeerDelta): Promise<void> {
    return this.#turns.take(async () => {
      this.#peers = peers;
      this.#pending = mergeDeltas(this.#pending, delta);
      await this.#sync();
      // The loop may be asleep for the long time between two syncs that succeed.
      if (this.#failing) this.#wake.abort();
    });
  }

  async run(_events: DriverEvents, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#failing) await sleep(this.#retry.next(), signal);
      else await sleep(RESYNC_MS, AbortSignal.any([signal, this.#wake.signal]));
      if (signal.aborted) return;
      const woken = this.#wake.signal.aborted;
      if (woken) this.#wake = new AbortController();
      if (woken && this.#failing) continue;
      await this.#turns.take(() => this.#sync());
      await this.#showHealth();
    }
  }

  stop(): Promise<void> {
    return this.#turns.take(() => this.#input.backend.stop());
  }

  async abandon(): Promise<void> {
    await this.#input.backend.cleanup({ dryRun: false });
  }

  async #sync(): Promise<void> {
    const { backend, health } = this.#input;
    let reasons: readonly string[];
    try {
      const report = await backend.sync([...this.#peers.values()], this.#pending, await this.#facts());
      reasons = report.failed.map(({ key, reason }) => `${key}: ${reason}`);
    } catch (error) {
      reasons = [describeError(error)];
    }
    this.#failing = reasons.length > 0;
    if (!this.#failing) {
      this.#pending = NO_CHANGE;
      this.#retry.reset();
      return health.clear("DATAPLANE_REFUSED");
    }
    health.raise({
      code: "DATAPLANE_REFUSED",
      severity: "error",
      title: "the backend cannot program all peers",
      text: `${reasons.length} of ${this.#peers.size}; first: ${reasons[0]}`,
      fix: "It is tried again by itself with growing pauses.",
    });
  }

  /** Raises what the backend finds now and clears what it does not find any more. */
  async #showHealth(): Promise<void> {
    const { health } = this.#input;
    const findings = await this.#askHealth();
    const codes = new Set(findings.map((finding) => finding.code));
    for (const code of this.#shown) if (!codes.has(code)) health.clear(code);
    for (const finding of findings) health.raise(finding);
    this.#shown = codes;
  }

  async #askHealth(): Promise<readonly Finding[]> {
    try {
      return (await this.#input.backend.health?.()) ?? [];
    } catch (error) {
      return [
        {
          code: "BACKEND_HEALTH",
          severity: "warning",
          title: "the backend cannot tell its health",
          text: describeError(error),
          fix: "See the plugin's own log lines.",
        },
      ];
    }
  }

  #facts(): Promise<HostFacts> {
    const { kernel, external } = this.#input;
    return gatherFacts(kernel, { external, devices: [], usesRoutes: true });
  }
}
