import type { CloudRoute } from "flannel/sdk";

/** The part of a `Route` (VPC API 2017-03-12) that is used. */
export interface ApiRoute {
  readonly RouteId?: number;
  readonly DestinationCidrBlock?: string;
  readonly DestinationIpv6CidrBlock?: string;
  readonly GatewayType?: string;
  readonly GatewayId?: string;
  readonly RouteType?: string;
  readonly RouteDescription?: string;
  readonly Enabled?: boolean;
}

/** Description of the routes we make. */
export const MARK = "flannel";
/** Next hop: the private address of an instance. */
export const GATEWAY = "NORMAL_CVM";

/** A route as core plans with it. Only a user's route to an instance may be a node's. */
export function toRoute(route: ApiRoute): CloudRoute {
  const { RouteId, DestinationCidrBlock, DestinationIpv6CidrBlock, GatewayType, GatewayId } = route;
  const isUser = route.RouteType === "USER";
  return {
    dst: DestinationCidrBlock || DestinationIpv6CidrBlock || "",
    target: GatewayId || GatewayType || "",
    kind: isUser && GatewayType === GATEWAY ? "node" : "foreign",
    state: route.Enabled === false ? "disabled" : "active",
    marked: route.RouteDescription === MARK,
    ...(isUser ? {} : { uncounted: true }),
    ...(RouteId === undefined ? {} : { id: String(RouteId) }),
  };
}
