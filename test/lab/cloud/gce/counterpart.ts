import type { Host } from "../../host.ts";
import type { Switch } from "../../switch.ts";
import { ApiCounterpart } from "../api-counterpart.ts";
import type { CounterpartRoute } from "../counterpart.ts";
import { ComputeApi, PROJECT, type StateRoute, ZONE } from "./compute-api.ts";
import { GceMetadata } from "./metadata.ts";

const NETWORK = "cluster";
const PREFIX = "https://www.googleapis.com/compute/v1/projects/test-project";

/** Permissions of methods that need another than their own (Compute Engine IAM documentation). */
const PERMISSIONS: Readonly<Record<string, readonly string[]>> = {
  "compute.routes.insert": [
    "compute.routes.create",
    "compute.networks.updatePolicy",
    "compute.instances.use",
  ],
  "compute.routes.delete": ["compute.routes.delete", "compute.networks.updatePolicy"],
};

/** Google Cloud: the Compute API on the switch, a metadata server on every host. */
export class GceCounterpart extends ApiCounterpart<ComputeApi, GceMetadata> {
  readonly backend = { Type: "gce", CheckInterval: 1, StaleRouteGrace: 2 };
  readonly names = {
    read: "compute.routes.list",
    create: "compute.routes.insert",
    remove: "compute.routes.delete",
    permission: "compute.routes.create",
  };
  readonly errors = {
    throttled: { status: 403, code: "rateLimitExceeded", message: "Rate Limit Exceeded" },
    denied: {
      status: 403,
      code: "forbidden",
      message: "Required 'compute.routes.create' permission for 'projects/test-project'",
    },
    expired: { status: 401, code: "authError", message: "Invalid Credentials" },
    full: { status: 403, code: "quotaExceeded", message: "Quota 'ROUTES' exceeded.  Limit: 250.0" },
  };

  constructor(on: Switch) {
    super(new ComputeApi(on.namespace, on.ipv4));
  }

  override permissionsOf(call: string): readonly string[] {
    return PERMISSIONS[call] ?? [call];
  }

  override env(): Readonly<Record<string, string>> {
    return { CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE: this.api.url };
  }

  async join(host: Host): Promise<string> {
    const name = `node-${host.number}`;
    this.api.instances.set(name, true);
    const token = () => this.api.token;
    const instance = { name, address: host.ipv4, network: NETWORK, token };
    this.metadata.push(await GceMetadata.start(host.namespace, instance));
    return `${ZONE}/${name}`;
  }

  routes(): readonly CounterpartRoute[] {
    return this.api.routes.map(({ destRange, nextHopInstance, nextHopIp, nextHopGateway }) => ({
      dst: destRange,
      target: short(nextHopInstance ?? nextHopIp ?? nextHopGateway),
    }));
  }

  addForeign(n = 1): void {
    const network = `${PREFIX}/global/networks/${NETWORK}`;
    const instance = `${PREFIX}/zones/${ZONE}/instances/foreign`;
    const kind = "compute#route";
    this.api.routes.push(
      {
        kind,
        name: "default-route-1",
        network,
        destRange: "0.0.0.0/0",
        nextHopGateway: `${PREFIX}/global/gateways/default-internet-gateway`,
      },
      { kind, name: "default-route-2", network, destRange: "192.0.2.0/24", nextHopNetwork: network },
      { kind, name: "half", network, destRange: "10.244.0.0/17", nextHopInstance: instance },
      // Of the form of a lease, by hand; and ours in another network.
      {
        kind,
        name: "by-hand",
        network,
        destRange: "10.244.201.0/24",
        nextHopInstance: instance,
        warnings: [{ code: "NEXT_HOP_INSTANCE_NOT_FOUND", message: "gone" }],
      },
      {
        kind,
        name: "flannel-10-244-202-0-24",
        network: `${PREFIX}/global/networks/other`,
        destRange: "10.244.202.0/24",
        nextHopInstance: instance,
      },
    );
    for (let at = 0; at < n; at++) {
      this.api.routes.push({
        kind,
        name: `custom-${at}`,
        network,
        destRange: `172.${16 + (at >> 8)}.${at & 255}.0/24`,
        nextHopIp: "192.0.2.77",
      });
    }
  }

  addNodeRoute(dst: string, gone = false): void {
    const route: StateRoute = {
      kind: "compute#route",
      name: `flannel-${dst.replaceAll(/[./]/g, "-")}`,
      network: `${PREFIX}/global/networks/${NETWORK}`,
      destRange: dst,
      nextHopInstance: `${PREFIX}/zones/${ZONE}/instances/gone`,
      ...(gone ? { warnings: [{ code: "NEXT_HOP_INSTANCE_NOT_FOUND", message: "gone" }] } : {}),
    };
    this.api.routes.push(route);
  }

  dropRoute(dst: string): void {
    const kept = this.api.routes.filter(({ destRange }) => destRange !== dst);
    this.api.routes.splice(0, this.api.routes.length, ...kept);
  }

  rotate(): void {
    this.api.token = "ya29.another";
  }
}

/** `…/zones/z/instances/i` → `z/i`; of anything else the last part. */
function short(url: unknown): string {
  const text = String(url ?? PROJECT);
  const [, zone, name] = /\/zones\/([^/]+)\/instances\/([^/]+)$/.exec(text) ?? [];
  return zone === undefined ? (text.split("/").pop() ?? "") : `${zone}/${name}`;
}
