import type { InterfaceChoice } from "../host/interface/choose.ts";
import type { ConfigDocument, LeaseStore } from "../lease/store.ts";
import { type Fault, toFault } from "../observe/fault.ts";
import type { LatestFindings } from "../observe/latest-findings.ts";
import type { Registry } from "../registry/registry.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import { Turns } from "../retry/turns.ts";
import { type ComparedConfig, type ConfigChange, compareConfigs } from "./config-change.ts";
import { type PrepareInput, prepareBackend, type Understood, understandConfig } from "./prepare.ts";
import { Session, type SessionInput } from "./session.ts";

export interface AdaptationInput {
  readonly first: Session;
  readonly prepare: PrepareInput;
  readonly sessions: SessionInput;
  readonly registry: Registry;
  /** What is odd about the config. */
  readonly told: LatestFindings;
}

/** Time the loops of a session get to end when the next one takes over, ms. */
const HANDOVER_MS = 2_000;

/** Replaces the session when config or interface change; the kernel's state is handed over as it is. */
export class Adaptation {
  readonly #input: AdaptationInput;
  readonly #turns = new Turns();
  #session: Session;
  /** The config last looked at, applied or not. */
  #seen: ConfigDocument;

  constructor(input: AdaptationInput) {
    this.#input = input;
    this.#session = input.first;
    this.#seen = input.first.prepared.understood.document;
  }

  /** The session that runs now. */
  get session(): Session {
    return this.#session;
  }

  /** Interface and families in use. */
  get situation() {
    const { choice, config } = this.#session.prepared;
    return { choice, families: config.families };
  }

  /** Applies each new version of the config, as far as that can be done while running, until aborted. */
  async followConfig(store: LeaseStore): Promise<void> {
    const { signal } = this.#input.prepare;
    for await (const document of store.watchConfig(this.#seen, signal)) {
      this.#seen = document;
      await this.#turns.take(() => this.#toConfig(document));
    }
  }

  /** Moves to another interface or address. */
  readonly toInterface = (choice: InterfaceChoice): Promise<void> => {
    const { log } = this.#input.prepare;
    const from = describeChoice(this.#session.prepared.choice);
    const to = describeChoice(choice);
    log.warn("the address of this host changed, following it", { from, to, reason: choice.reason });
    this.#input.sessions.journal.note("host", `the address of this host changed from ${from} to ${to}`);
    return this.#turns.take(() => {
      // From the old address nothing is answered; to notice that by itself would take the store many seconds.
      this.#input.sessions.store.reconnect();
      return this.#replace(this.#session.prepared.understood, choice);
    });
  };

  /** Ends the running session within about `patience` ms. */
  async end(patience: number): Promise<void> {
    await this.#session.end(patience);
  }

  async #toConfig(document: ConfigDocument): Promise<void> {
    const { health, log } = this.#input.prepare;
    let understood: Understood;
    try {
      understood = await understandConfig(document, this.#input.registry, this.#input.told);
    } catch (error) {
      this.#refuse(toFault(error, "CONFIG_INVALID"));
      return;
    }
    health.clear("CONFIG_REFUSED");
    const change = this.#compare(understood);
    this.#showPending(change);
    if (change.live.length === 0 || change.restart.length > 0) return;
    log.info("applying the new network config", { keys: change.live });
    const keys = change.live.join(", ");
    this.#input.sessions.journal.note("config", `revision ${document.revision} is applied: ${keys} changed`);
    if (change.rulesOnly) await this.#session.adoptRules(understood);
    else await this.#replace(understood, this.#session.prepared.choice);
  }

  #compare(understood: Understood): ConfigChange {
    const { prepared, held } = this.#session;
    const compared = ({ reading, chosen }: Understood): ComparedConfig => ({
      config: reading.config,
      options: chosen.options,
    });
    return compareConfigs(compared(prepared.understood), compared(understood), {
      subnets: held.lease.subnets,
      declarative: prepared.declarative,
    });
  }

  #refuse(fault: Fault): void {
    this.#input.prepare.health.raise({
      code: "CONFIG_REFUSED",
      severity: "error",
      title: "the new network config is refused, the last good one stays in use",
      text: fault.message,
      fix: fault.hint || "Correct it: `flanneld config check FILE` says the same before it is stored.",
    });
  }

  #showPending({ live, restart }: ConfigChange): void {
    const { health } = this.#input.prepare;
    if (restart.length === 0) {
      health.clear("CONFIG_NEEDS_RESTART");
      return;
    }
    health.raise({
      code: "CONFIG_NEEDS_RESTART",
      severity: "warning",
      title: "the new network config needs a restart",
      text: `changed: ${[...restart, ...live].join(", ")}; this node goes on with the config it started with`,
      fix: `Run \`systemctl restart flanneld\` on this node (or restart it as you started it)${losesSubnet(restart) ? " when its containers may get other addresses" : "; it keeps its subnet"}.`,
    });
  }

  /**
   * The next session takes over. A config that turns out not to work here is given up for the one before; an address
   * is tried until it works. The data plane stays meanwhile, and the lease is renewed.
   */
  async #replace(understood: Understood, choice: InterfaceChoice): Promise<void> {
    const { prepare, sessions } = this.#input;
    const { signal, health } = prepare;
    const former = this.#session;
    const backoff = new Backoff({ first: 500, max: 15_000 });
    let wanted = understood;
    await former.end(HANDOVER_MS);
    while (!signal.aborted) {
      try {
        const prepared = await prepareBackend(prepare, wanted, choice);
        this.#session = await Session.open(sessions, prepared, former.held.lease.subnets);
        health.clear("HANDOVER_FAILED");
        return;
      } catch (error) {
        const fault = toFault(error, "HANDOVER_FAILED");
        if (wanted !== former.prepared.understood) {
          this.#refuse(fault);
          wanted = former.prepared.understood;
          continue;
        }
        health.raise({
          code: "HANDOVER_FAILED",
          severity: "error",
          title: "this host's new address cannot be used yet",
          text: fault.message,
          fix: fault.hint || "It is tried again by itself; the data plane stays as it is.",
        });
        await this.#keepLease(former, backoff.next());
      }
    }
  }

  /** Renews the lease for a while, as the session that held it would. */
  async #keepLease({ held }: Session, ms: number): Promise<void> {
    const { store } = this.#input.sessions;
    const pause = AbortSignal.any([this.#input.prepare.signal, AbortSignal.timeout(ms)]);
    await Promise.all([store.keep(held, () => {}, pause), sleep(ms, pause)]);
  }
}

/** Whether containers may get other addresses: only what is said about networks and their division can do that. */
function losesSubnet(keys: readonly string[]): boolean {
  return keys.some((key) => !key.startsWith("Backend."));
}

function describeChoice({ candidate, ipv4, ipv6 }: InterfaceChoice): string {
  return [candidate.link.name, ipv4, ipv6].filter(Boolean).join(" ");
}
