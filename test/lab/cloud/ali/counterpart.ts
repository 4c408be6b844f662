import type { Host } from "../../host.ts";
import type { Switch } from "../../switch.ts";
import { ApiCounterpart } from "../api-counterpart.ts";
import type { CounterpartRoute } from "../counterpart.ts";
import { AliMetadata } from "./metadata.ts";
import { AliApi } from "./vpc-api.ts";

/** Alibaba Cloud: the VPC API on the switch, a metadata service on every host. */
export class AliCounterpart extends ApiCounterpart<AliApi, AliMetadata> {
  readonly names = {
    read: "DescribeRouteEntryList",
    create: "CreateRouteEntry",
    remove: "DeleteRouteEntry",
    permission: "vpc:CreateRouteEntry",
  };
  readonly errors = {
    throttled: {
      status: 400,
      code: "Throttling.User",
      message: "Request was denied due to user flow control.",
    },
    denied: {
      status: 403,
      code: "Forbidden.RAM",
      message: "User not authorized to operate on the specified resource, or this API doesn't support RAM.",
    },
    expired: {
      status: 400,
      code: "InvalidSecurityToken.Expired",
      message: "Specified SecurityToken is expired.",
    },
    full: {
      status: 400,
      code: "QuotaExceeded.RouteEntry",
      message: "The maximum number of route entries is exceeded.",
    },
  };

  constructor(on: Switch) {
    super(new AliApi(on.namespace, on.ipv4));
    this.api.add("192.0.2.0/24", "local", { hopType: "service", type: "System" });
  }

  get backend() {
    return { Type: "ali-vpc", Endpoint: this.api.url, CheckInterval: 1, StaleRouteGrace: 2 };
  }

  async join(host: Host): Promise<string> {
    const instance = `i-bp1node${host.number}`;
    this.api.instances.add(instance);
    this.metadata.push(await AliMetadata.start(host.namespace, instance, () => this.api.keys));
    return instance;
  }

  routes(): readonly CounterpartRoute[] {
    return this.api.entries.map(({ dst, hop }) => ({ dst, target: hop }));
  }

  addForeign(n = 1): void {
    // DNAT through an instance; a route of somebody's in the cluster network; one of the form of a lease, by hand.
    this.api.add("0.0.0.0/0", "i-bp1nat");
    this.api.add("10.244.0.0/17", "i-bp1foreign");
    this.api.add("10.244.201.0/24", "i-bp1foreign");
    this.api.add("10.244.200.0/24", "vpn-1", { hopType: "VpnGateway", usable: false });
    this.api.add("10.9.0.0/16", "cen", { hopType: "Attachment", type: "CEN" });
    for (let at = 0; at < n; at++) this.api.add(`172.${16 + (at >> 8)}.${at & 255}.0/24`, "i-bp1foreign");
  }

  addNodeRoute(dst: string, gone = false): void {
    this.api.add(dst, "i-bp1gone", { description: "flannel", usable: !gone });
  }

  dropRoute(dst: string): void {
    this.api.entries = this.api.entries.filter((entry) => entry.dst !== dst);
  }

  unmark(dst: string): void {
    this.api.entries = this.api.entries.map((entry) =>
      entry.dst === dst ? { ...entry, description: "" } : entry,
    );
  }

  isMarked(dst: string): boolean {
    return this.api.entries.some((entry) => entry.dst === dst && entry.description === "flannel");
  }

  rotate(): void {
    this.api.keys = { id: "STS.test2", secret: "another", token: "token-2" };
  }
}
