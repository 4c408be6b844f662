import type { Host } from "../../host.ts";
import type { Switch } from "../../switch.ts";
import { ApiCounterpart } from "../api-counterpart.ts";
import type { CounterpartRoute } from "../counterpart.ts";
import { TencentMetadata } from "./metadata.ts";
import { TencentApi } from "./vpc-api.ts";

/** Tencent Cloud: the VPC API on the switch, a metadata service on every host. */
export class TencentCounterpart extends ApiCounterpart<TencentApi, TencentMetadata> {
  readonly names = {
    read: "DescribeRouteTables",
    create: "CreateRoutes",
    remove: "DeleteRoutes",
    permission: "vpc:CreateRoutes",
  };
  readonly errors = {
    throttled: {
      status: 200,
      code: "RequestLimitExceeded",
      message: "Your current request times equals to `101` in a second, which exceeds the frequency limit.",
    },
    denied: {
      status: 200,
      code: "UnauthorizedOperation",
      message: "You are not authorized to perform operation (vpc:CreateRoutes).",
    },
    expired: {
      status: 200,
      code: "AuthFailure.TokenFailure",
      message: "The provided credentials could not be validated.",
    },
    full: { status: 200, code: "LimitExceeded", message: "The number of routes exceeds the limit." },
  };

  constructor(on: Switch) {
    super(new TencentApi(on.namespace, on.ipv4));
    this.api.add("192.0.2.0/24", "Local", { GatewayType: "LOCAL", RouteType: "NETD" });
  }

  get backend() {
    return { Type: "tencent-vpc", Endpoint: this.api.url, CheckInterval: 1, StaleRouteGrace: 2 };
  }

  async join(host: Host): Promise<string> {
    this.api.instances.add(host.ipv4);
    this.metadata.push(await TencentMetadata.start(host, () => this.api.keys));
    return host.ipv4;
  }

  routes(): readonly CounterpartRoute[] {
    return this.api.routes.map(({ DestinationCidrBlock, GatewayId }) => ({
      dst: DestinationCidrBlock,
      target: GatewayId,
    }));
  }

  addForeign(n = 1): void {
    this.api.add("0.0.0.0/0", "nat-1", { GatewayType: "NAT" });
    this.api.add("10.244.0.0/17", "192.0.2.200");
    this.api.add("10.244.201.0/24", "192.0.2.200");
    this.api.add("10.244.200.0/24", "vpngw-1", { GatewayType: "VPN", Enabled: false });
    this.api.add("10.9.0.0/16", "ccn-1", { GatewayType: "CCN", RouteType: "CCN" });
    for (let at = 0; at < n; at++) this.api.add(`172.${16 + (at >> 8)}.${at & 255}.0/24`, "192.0.2.200");
  }

  addNodeRoute(dst: string): void {
    this.api.add(dst, "192.0.2.201", { RouteDescription: "flannel" });
  }

  dropRoute(dst: string): void {
    this.api.routes = this.api.routes.filter(({ DestinationCidrBlock }) => DestinationCidrBlock !== dst);
  }

  unmark(dst: string): void {
    this.api.routes = this.api.routes.map((route) =>
      route.DestinationCidrBlock === dst ? { ...route, RouteDescription: "" } : route,
    );
  }

  isMarked(dst: string): boolean {
    return this.api.routes.some(
      (route) => route.DestinationCidrBlock === dst && route.RouteDescription === "flannel",
    );
  }

  rotate(): void {
    this.api.keys = { id: "AKIDtest2", secret: "another", token: "token-2" };
  }
}
