import type { Route, RouteTable } from "@aws-sdk/client-ec2";
import type { CloudRoute, CloudTable } from "flannel/sdk";

/** A route table of EC2 as core plans with it. */
export function toTable({ RouteTableId = "", Routes = [] }: RouteTable, limit: number): CloudTable {
  return { id: RouteTableId, limit, routes: Routes.map(toRoute) };
}

/**
 * Only a route that was created to a network interface may be a node's. Everything else (gateways, endpoints, peering,
 * propagated and local routes) is foreign; those that nobody created do not count towards the quota.
 */
function toRoute(route: Route): CloudRoute {
  const { DestinationCidrBlock, DestinationIpv6CidrBlock, DestinationPrefixListId } = route;
  const created = route.Origin === "CreateRoute";
  const isNode = created && route.NetworkInterfaceId !== undefined && otherTarget(route) === undefined;
  return {
    dst: DestinationCidrBlock ?? DestinationIpv6CidrBlock ?? DestinationPrefixListId ?? "",
    target: route.NetworkInterfaceId ?? otherTarget(route) ?? "",
    kind: isNode ? "node" : "foreign",
    state: route.State === "blackhole" ? "blackhole" : "active",
    ...(created ? {} : { uncounted: true }),
  };
}

function otherTarget(route: Route): string | undefined {
  return (
    route.GatewayId ??
    route.NatGatewayId ??
    route.TransitGatewayId ??
    route.VpcPeeringConnectionId ??
    route.EgressOnlyInternetGatewayId ??
    route.LocalGatewayId ??
    route.CarrierGatewayId ??
    route.CoreNetworkArn
  );
}

/** The parameter that names a destination. */
export function destinationOf(dst: string): {
  readonly DestinationCidrBlock?: string;
  readonly DestinationIpv6CidrBlock?: string;
} {
  return dst.includes(":") ? { DestinationIpv6CidrBlock: dst } : { DestinationCidrBlock: dst };
}
