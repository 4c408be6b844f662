import type { HostKernel } from "flannel/sdk";
import { associationId, findStaleStates, type KnownTunnels } from "./associations.ts";
import { isOurs, planPolicies, policiesFor } from "./policies.ts";
import { isWithin } from "./prefix.ts";
import { baseAddress, planRoutes, routesFor } from "./routes.ts";
import { type FarEnd, type OwnEnd, REQID } from "./tunnel.ts";

/** Where the node's own address in its subnet lies: the loopback device, which every host has. */
const LOOPBACK = "lo";
/** How long a state is kept after another one took its place, ms: packets may be under way that only it can read. */
const LINGER_MS = 4_000;
/** RTPROT_* that marks what we make (see HostKernel). */
const OUR_ROUTES = 140;

/** The part of the kernel that belongs to the tunnels: policies, routes, and states of a charon that is no more. */
export class TunnelKernel {
  readonly #kernel: HostKernel;
  readonly #network: string;
  readonly #former: string | undefined;
  /** States that may be of a charon before the one that runs now. */
  #inherited: ReadonlySet<string> = new Set();
  /** Since when nobody needs some of them, ms. */
  #stale: ReadonlyMap<string, number> = new Map();

  /** `former`: the network of the last run, if it was another one; what lies in it goes. */
  constructor(kernel: HostKernel, network: string, former?: string) {
    this.#kernel = kernel;
    this.#network = network;
    this.#former = former;
  }

  /**
   * Makes policies and routes as wanted; `inKernel` is false where charon moves the packets itself and has policies of
   * its own. Returns why, by subnet of the far end, something was refused. Throws a Fault when nothing can be done.
   */
  async program(
    own: OwnEnd,
    dev: string,
    fars: readonly FarEnd[],
    inKernel: boolean,
  ): Promise<ReadonlyMap<string, string>> {
    const refused = new Map<string, string>();
    const wanted = inKernel ? fars.flatMap((far) => policiesFor(own, far)) : [];
    const policies = planPolicies(await this.#policies(inKernel), wanted, this.#isInNetwork);
    for (const { change, text } of await this.#kernel.applyXfrm(policies)) {
      if (!("policy" in change)) continue;
      const { src, dst, direction } = change.policy;
      refused.set(direction === "out" ? dst : src, `the kernel refuses the policy ${src} to ${dst}: ${text}`);
    }
    await this.#address(own);
    const wantedRoutes = routesFor(this.#network, dev, own, fars);
    const routes = planRoutes(await this.#routes(), wantedRoutes, this.#isInNetwork);
    for (const { change, text } of await this.#kernel.apply(routes)) {
      if (change.object.kind === "route")
        refused.set(change.object.dst, `the kernel refuses the route: ${text}`);
    }
    return refused;
  }

  /** Notes down what states there are: those that charon does not answer for in the end are nobody's. */
  async inherit(): Promise<void> {
    this.#inherited = new Set((await this.#kernel.xfrmStates()).map(associationId));
  }

  /** SPIs of all states there are. */
  async spis(): Promise<ReadonlySet<number>> {
    return new Set((await this.#kernel.xfrmStates()).map(({ spi }) => spi));
  }

  /** Removes inherited states that new ones have taken the place of a while ago, and at once those of gone peers. */
  async removeStale(known: KnownTunnels, now = performance.now()): Promise<void> {
    if (this.#inherited.size === 0) return;
    const inherited = (await this.#kernel.xfrmStates()).filter((state) =>
      this.#inherited.has(associationId(state)),
    );
    const stale = findStaleStates(inherited, known);
    const since = new Map(
      stale.map((state) => [associationId(state), this.#stale.get(associationId(state)) ?? now]),
    );
    const due = stale.filter((state) => {
      const isOfPeer = known.peers.has(state.src === known.own ? state.dst : state.src);
      return !isOfPeer || now - (since.get(associationId(state)) ?? now) >= LINGER_MS;
    });
    await this.#kernel.applyXfrm(due.map((state) => ({ action: "delete", state })));
    const gone = new Set(due.map(associationId));
    this.#inherited = new Set(inherited.map(associationId).filter((id) => !gone.has(id)));
    this.#stale = since;
  }

  /** Removes all that is ours; returns what, or would be, removed. */
  async clean(dryRun: boolean): Promise<readonly string[]> {
    const policies = (await this.#kernel.xfrmPolicies()).filter((policy) =>
      isOurs(policy, this.#isInNetwork),
    );
    const tunnels = new Set(
      policies.flatMap(({ tunnel }) => (tunnel ? [`${tunnel.src} ${tunnel.dst}`] : [])),
    );
    const states = (await this.#kernel.xfrmStates()).filter(
      ({ src, dst, reqid, mode }) => reqid === REQID && mode === "tunnel" && tunnels.has(`${src} ${dst}`),
    );
    const routes = planRoutes(await this.#routes(), [], this.#isInNetwork);
    const addresses = await this.#addresses();
    if (!dryRun) {
      await this.#kernel.applyXfrm([
        ...policies.map((policy) => ({ action: "delete" as const, policy })),
        ...states.map((state) => ({ action: "delete" as const, state })),
      ]);
      await this.#kernel.apply([...routes, ...addresses.map((address) => changeOf("delete", address))]);
    }
    return [
      ...policies.map(({ src, dst, direction }) => `IPsec policy ${src} to ${dst} (${direction})`),
      ...states.map(({ src, dst, spi }) => `IPsec state ${src} to ${dst} (spi 0x${spi.toString(16)})`),
      ...routes.map(({ object }) => `route ${object.dst}`),
      ...addresses.map((address) => `address ${address} on ${LOOPBACK}`),
    ];
  }

  /** `ip address add SUBNET-BASE/32 dev lo`, and that of an earlier subnet goes. */
  async #address({ subnet }: OwnEnd): Promise<void> {
    const address = `${baseAddress(subnet)}/32`;
    const there = await this.#addresses();
    await this.#kernel.apply([
      ...there.filter((each) => each !== address).map((each) => changeOf("delete", each)),
      ...(there.includes(address) ? [] : [changeOf("put", address)]),
    ]);
  }

  async #addresses(): Promise<readonly string[]> {
    const all = await this.#kernel.addresses(LOOPBACK);
    return all
      .map(({ address }) => address)
      .filter((address) => address.endsWith("/32") && this.#isInNetwork(address));
  }

  readonly #isInNetwork = (cidr: string): boolean =>
    isWithin(cidr, this.#network) || (this.#former !== undefined && isWithin(cidr, this.#former));

  /** A kernel without IPsec has none; that matters only where it is to have some. */
  async #policies(needed: boolean) {
    try {
      return await this.#kernel.xfrmPolicies();
    } catch (error) {
      if (needed) throw error;
      return [];
    }
  }

  #routes() {
    return this.#kernel.routes(4, { protocol: OUR_ROUTES });
  }
}

function changeOf(action: "put" | "delete", address: string) {
  return { action, object: { kind: "address", dev: LOOPBACK, address } } as const;
}
