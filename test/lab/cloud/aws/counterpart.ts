import type { Host } from "../../host.ts";
import { hasV6 } from "../../segment.ts";
import type { Switch } from "../../switch.ts";
import { ApiCounterpart } from "../api-counterpart.ts";
import type { CounterpartRoute } from "../counterpart.ts";
import { Ec2Api } from "./ec2-api.ts";
import { Imds } from "./metadata.ts";
import type { StateRoute, StateTable } from "./vpc-state.ts";

const REGION = "eu-west-1";
const SUBNET = "subnet-0123456789abcdef0";
const TABLE = "rtb-0123456789abcdef0";

/** AWS: EC2 on the switch, a metadata service on every host. */
export class AwsCounterpart extends ApiCounterpart<Ec2Api, Imds> {
  readonly table: StateTable;
  readonly backend = { Type: "aws-vpc", CheckInterval: 1, StaleRouteGrace: 2 };
  readonly names = {
    read: "DescribeRouteTables",
    create: "CreateRoute",
    remove: "DeleteRoute",
    permission: "ec2:CreateRoute",
  };
  readonly errors = {
    throttled: { status: 503, code: "RequestLimitExceeded", message: "Request limit exceeded." },
    denied: {
      status: 403,
      code: "UnauthorizedOperation",
      message: "You are not authorized to perform this operation.",
    },
    expired: { status: 400, code: "ExpiredToken", message: "The provided token has expired." },
    full: {
      status: 400,
      code: "RouteLimitExceeded",
      message: "The maximum number of routes has been reached.",
    },
  };

  /** @param main whether the subnet has no table of its own, so that the main one of the VPC counts. */
  constructor(on: Switch, { main = false }: { readonly main?: boolean } = {}) {
    super(new Ec2Api(on.namespace, on.ipv4));
    this.table = this.api.vpc.addTable(TABLE, main ? { main } : { subnets: [SUBNET] });
  }

  override permissionsOf(call: string): readonly string[] {
    return [`ec2:${call}`];
  }

  override env(): Readonly<Record<string, string>> {
    return { AWS_ENDPOINT_URL_EC2: this.api.url };
  }

  async join(host: Host): Promise<string> {
    const id = `eni-000000000000000${host.number}`;
    const instance = `i-000000000000000${host.number}`;
    const common = { instance, sourceDestCheck: true, addresses6: [] };
    // The first interface of the instance is another one.
    this.api.vpc.interfaces.push(
      {
        ...common,
        id: `eni-0ffffffffffffff${host.number}`,
        subnet: "subnet-0other",
        addresses: [`198.51.100.${host.number}`],
      },
      {
        ...common,
        id,
        subnet: SUBNET,
        addresses: [`198.51.100.10${host.number}`, host.ipv4],
        addresses6: hasV6(host.family) ? [host.ipv6] : [],
      },
    );
    const keys = () => this.api.keys;
    this.metadata.push(await Imds.start(host.namespace, { instanceId: instance, region: REGION, keys }));
    return id;
  }

  routes(): readonly CounterpartRoute[] {
    return this.table.routes.map((route) => ({
      dst: destination(route),
      target: route.NetworkInterfaceId ?? route.GatewayId ?? "",
    }));
  }

  addForeign(n = 1): void {
    this.api.vpc.routeLimit = Math.max(this.api.vpc.routeLimit, n + 50);
    const created = { State: "active", Origin: "CreateRoute" } as const;
    this.table.routes.push(
      { ...created, DestinationCidrBlock: "0.0.0.0/0", GatewayId: "igw-0123" },
      { ...created, DestinationPrefixListId: "pl-6da54004", GatewayId: "vpce-0123" },
      {
        DestinationCidrBlock: "10.0.0.0/8",
        GatewayId: "vgw-0123",
        State: "active",
        Origin: "EnableVgwRoutePropagation",
      },
      // In the cluster network, but not of the form of a lease; and a black hole that is a peering's.
      { ...created, DestinationCidrBlock: "10.244.0.0/17", NetworkInterfaceId: "eni-0foreign" },
      {
        ...created,
        DestinationCidrBlock: "10.244.200.0/24",
        VpcPeeringConnectionId: "pcx-0123",
        State: "blackhole",
      },
    );
    for (let at = 0; at < n; at++) {
      const DestinationCidrBlock = `172.${16 + (at >> 8)}.${at & 255}.0/24`;
      this.table.routes.push({ ...created, DestinationCidrBlock, NetworkInterfaceId: "eni-0foreign" });
    }
  }

  addNodeRoute(dst: string, gone = false): void {
    this.table.routes.push({
      DestinationCidrBlock: dst,
      NetworkInterfaceId: "eni-0gone",
      State: gone ? "blackhole" : "active",
      Origin: "CreateRoute",
    });
  }

  dropRoute(dst: string): void {
    this.table.routes = this.table.routes.filter((route) => destination(route) !== dst);
  }

  rotate(): void {
    this.api.keys = { accessKeyId: "ASIATEST2", secretAccessKey: "another", sessionToken: "token-2" };
  }
}

function destination(route: StateRoute): string {
  return route.DestinationCidrBlock ?? route.DestinationIpv6CidrBlock ?? route.DestinationPrefixListId ?? "";
}
