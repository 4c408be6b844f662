import { Refusal } from "../api.ts";
import type { Parameters } from "./query.ts";

/** An error of EC2. */
class Ec2Error extends Refusal {
  constructor(code: string, message: string) {
    super(400, code, message);
  }
}

/** A route as EC2 describes it. */
export interface StateRoute {
  readonly DestinationCidrBlock?: string;
  readonly DestinationIpv6CidrBlock?: string;
  readonly DestinationPrefixListId?: string;
  readonly GatewayId?: string;
  readonly NetworkInterfaceId?: string;
  readonly InstanceId?: string;
  readonly VpcPeeringConnectionId?: string;
  readonly State: "active" | "blackhole";
  readonly Origin: "CreateRouteTable" | "CreateRoute" | "EnableVgwRoutePropagation";
}

/** A network interface of an instance. */
export interface StateInterface {
  readonly id: string;
  readonly instance: string;
  readonly subnet: string;
  addresses: readonly string[];
  addresses6: readonly string[];
  sourceDestCheck: boolean;
}

/** A route table. */
export interface StateTable {
  readonly id: string;
  readonly main: boolean;
  readonly subnets: readonly string[];
  readonly tags: Readonly<Record<string, string>>;
  routes: StateRoute[];
}

type Filter = { readonly Name: string; readonly Values: readonly string[] };

/** Tables on a page of DescribeRouteTables. */
const PAGE = 2;

/** One VPC with what EC2 knows of it, and the operations of EC2 on it. */
export class VpcState {
  readonly id = "vpc-0aa11bb22cc33dd44";
  readonly interfaces: StateInterface[] = [];
  readonly tables: StateTable[] = [];
  /** Most routes of one family that were created, per table. */
  routeLimit = 50;

  /** Adds a table with its local route. */
  addTable(
    id: string,
    { main = false, subnets = [], tags = {} }: Partial<Omit<StateTable, "id">> = {},
  ): StateTable {
    const local: StateRoute = {
      DestinationCidrBlock: "192.0.2.0/24",
      GatewayId: "local",
      State: "active",
      Origin: "CreateRouteTable",
    };
    const table: StateTable = { id, main, subnets, tags, routes: [local] };
    this.tables.push(table);
    return table;
  }

  /** Carries an operation out. Throws a {@link Refusal}. */
  perform(action: string, parameters: Parameters): Parameters {
    switch (action) {
      case "DescribeInstances":
        return this.#describeInstances(parameters);
      case "DescribeRouteTables":
        return this.#describeTables(parameters);
      case "ModifyNetworkInterfaceAttribute":
        return this.#modify(parameters);
      case "CreateRoute":
        return this.#create(parameters);
      case "ReplaceRoute":
        return this.#replace(parameters);
      case "DeleteRoute":
        return this.#delete(parameters);
      default:
        throw new Ec2Error("InvalidAction", action);
    }
  }

  #describeInstances({ InstanceIds = [] }: { readonly InstanceIds?: readonly string[] }): Parameters {
    const instances = InstanceIds.map((id) => {
      const own = this.interfaces.filter(({ instance }) => instance === id);
      if (own.length === 0)
        throw new Ec2Error("InvalidInstanceID.NotFound", `The instance ID '${id}' does not exist`);
      return {
        InstanceId: id,
        VpcId: this.id,
        NetworkInterfaces: own.map((each) => ({
          NetworkInterfaceId: each.id,
          SubnetId: each.subnet,
          VpcId: this.id,
          SourceDestCheck: each.sourceDestCheck,
          PrivateIpAddresses: each.addresses.map((PrivateIpAddress, at) => ({
            PrivateIpAddress,
            Primary: at === 0,
          })),
          Ipv6Addresses: each.addresses6.map((Ipv6Address) => ({ Ipv6Address })),
        })),
      };
    });
    return { Reservations: [{ ReservationId: "r-1", Instances: instances }] };
  }

  #describeTables(query: {
    readonly RouteTableIds?: readonly string[];
    readonly Filters?: readonly Filter[];
    readonly NextToken?: string;
  }): Parameters {
    const { RouteTableIds, Filters = [], NextToken } = query;
    for (const id of RouteTableIds ?? []) this.#table(id);
    const found = this.tables
      .filter(({ id }) => RouteTableIds === undefined || RouteTableIds.includes(id))
      .filter((table) => Filters.every((filter) => this.#matches(table, filter)));
    const from = Number(NextToken ?? 0);
    const page = found.slice(from, from + PAGE);
    return {
      RouteTables: page.map((table) => ({
        RouteTableId: table.id,
        VpcId: this.id,
        Associations: [
          ...(table.main ? [{ Main: true, RouteTableId: table.id }] : []),
          ...table.subnets.map((SubnetId) => ({ Main: false, RouteTableId: table.id, SubnetId })),
        ],
        Tags: Object.entries(table.tags).map(([Key, Value]) => ({ Key, Value })),
        Routes: table.routes,
      })),
      ...(from + PAGE < found.length ? { NextToken: String(from + PAGE) } : {}),
    };
  }

  #matches(table: StateTable, { Name, Values }: Filter): boolean {
    if (Name === "vpc-id") return Values.includes(this.id);
    if (Name === "association.main") return Values.includes(String(table.main));
    if (Name === "association.subnet-id") return table.subnets.some((subnet) => Values.includes(subnet));
    if (Name.startsWith("tag:")) return Values.includes(table.tags[Name.slice("tag:".length)] ?? "\0");
    throw new Ec2Error("InvalidParameterValue", `The filter '${Name}' is invalid`);
  }

  #modify({
    NetworkInterfaceId,
    SourceDestCheck,
  }: {
    readonly NetworkInterfaceId?: string;
    readonly SourceDestCheck?: { readonly Value?: boolean };
  }): Parameters {
    const found = this.interfaces.find(({ id }) => id === NetworkInterfaceId);
    if (!found)
      throw new Ec2Error(
        "InvalidNetworkInterfaceID.NotFound",
        `The networkInterface ID '${NetworkInterfaceId}' does not exist`,
      );
    if (SourceDestCheck?.Value === undefined)
      throw new Ec2Error("InvalidParameterCombination", "No attributes specified.");
    found.sourceDestCheck = SourceDestCheck.Value;
    return {};
  }

  #create(parameters: Parameters): Parameters {
    const table = this.#table(parameters.RouteTableId);
    const route = this.#route(parameters);
    if (table.routes.some((each) => isSame(each, route))) {
      throw new Ec2Error(
        "RouteAlreadyExists",
        `The route identified by ${destination(route)} already exists.`,
      );
    }
    const isV6 = route.DestinationIpv6CidrBlock !== undefined;
    const counted = table.routes.filter(
      (each) => each.Origin === "CreateRoute" && (each.DestinationIpv6CidrBlock !== undefined) === isV6,
    );
    if (counted.length >= this.routeLimit) {
      throw new Ec2Error("RouteLimitExceeded", "The maximum number of routes has been reached.");
    }
    table.routes.push(route);
    return { Return: true };
  }

  #replace(parameters: Parameters): Parameters {
    const table = this.#table(parameters.RouteTableId);
    const route = this.#route(parameters);
    const at = table.routes.findIndex((each) => isSame(each, route));
    if (at < 0) {
      throw new Ec2Error(
        "InvalidParameterValue",
        `There is no route defined for '${destination(route)}' in the route table. Use CreateRoute instead.`,
      );
    }
    table.routes[at] = route;
    return {};
  }

  #delete(parameters: Parameters): Parameters {
    const table = this.#table(parameters.RouteTableId);
    const at = table.routes.findIndex((each) => isSame(each, parameters as Partial<StateRoute>));
    if (at < 0) throw new Ec2Error("InvalidRoute.NotFound", "no route with that destination");
    if (table.routes[at]?.Origin !== "CreateRoute")
      throw new Ec2Error("InvalidParameterValue", "cannot remove local route");
    table.routes.splice(at, 1);
    return {};
  }

  #table(id: unknown): StateTable {
    const found = this.tables.find((table) => table.id === id);
    if (!found)
      throw new Ec2Error("InvalidRouteTableID.NotFound", `The routeTable ID '${id}' does not exist`);
    return found;
  }

  #route({ DestinationCidrBlock, DestinationIpv6CidrBlock, NetworkInterfaceId }: Parameters): StateRoute {
    const target = this.interfaces.find(({ id }) => id === NetworkInterfaceId);
    if (!target)
      throw new Ec2Error(
        "InvalidNetworkInterfaceID.NotFound",
        `The networkInterface ID '${NetworkInterfaceId}' does not exist`,
      );
    return {
      ...(typeof DestinationCidrBlock === "string" ? { DestinationCidrBlock } : {}),
      ...(typeof DestinationIpv6CidrBlock === "string" ? { DestinationIpv6CidrBlock } : {}),
      NetworkInterfaceId: target.id,
      InstanceId: target.instance,
      State: "active",
      Origin: "CreateRoute",
    };
  }
}

function isSame(a: Partial<StateRoute>, b: Partial<StateRoute>): boolean {
  return destination(a) !== undefined && destination(a) === destination(b);
}

function destination(route: Partial<StateRoute>): string | undefined {
  return route.DestinationCidrBlock ?? route.DestinationIpv6CidrBlock;
}
