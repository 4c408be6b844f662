import {
  AssociateRouteTableCommand,
  CreateInternetGatewayCommand,
  CreateManagedPrefixListCommand,
  CreateNetworkInterfaceCommand,
  CreateRouteCommand,
  CreateRouteTableCommand,
  CreateSubnetCommand,
  CreateTagsCommand,
  CreateVpcCommand,
  CreateVpcPeeringConnectionCommand,
  DeleteRouteCommand,
  DescribeNetworkInterfacesCommand,
  DescribeRouteTablesCommand,
  type EC2Client,
  ReplaceRouteCommand,
  RunInstancesCommand,
} from "@aws-sdk/client-ec2";
import type { CounterpartRoute } from "../../counterpart.ts";

/** Holds the subnet of a switch's hosts, and the instances' other one. */
const NETWORK = "192.0.0.0/16";
const OTHER = "192.0.3.0/24";

/** Ids of a VPC's parts. */
interface Parts {
  readonly vpc: string;
  /** Subnet of the hosts, and the other one. */
  readonly hosts: string;
  readonly other: string;
  /** Route table of the hosts' subnet. */
  readonly table: string;
  /** Route table of subnets that have none. */
  readonly mainTable: string;
  /** An interface of somebody's machine. */
  readonly foreign: string;
}

/** A VPC, laid out and changed by the official SDK, as an operator does it. */
export class MotoVpc {
  readonly parts: Parts;
  readonly #ec2: EC2Client;

  private constructor(ec2: EC2Client, parts: Parts) {
    this.#ec2 = ec2;
    this.parts = parts;
  }

  /** Two subnets, of which the one with network `hostsNetwork` has a route table of its own. */
  static async layOut(ec2: EC2Client, hostsNetwork: string): Promise<MotoVpc> {
    const { Vpc } = await ec2.send(new CreateVpcCommand({ CidrBlock: NETWORK }));
    const vpc = Vpc!.VpcId!;
    const addSubnet = async (CidrBlock: string) =>
      (await ec2.send(new CreateSubnetCommand({ VpcId: vpc, CidrBlock }))).Subnet!.SubnetId!;
    const hosts = await addSubnet(hostsNetwork);
    const other = await addSubnet(OTHER);
    const ofVpc = { Filters: [{ Name: "vpc-id", Values: [vpc] }] };
    const { RouteTables } = await ec2.send(new DescribeRouteTablesCommand(ofVpc));
    const { RouteTable } = await ec2.send(new CreateRouteTableCommand({ VpcId: vpc }));
    const table = RouteTable!.RouteTableId!;
    await ec2.send(new AssociateRouteTableCommand({ RouteTableId: table, SubnetId: hosts }));
    const mainTable = RouteTables![0]!.RouteTableId!;
    const foreign = await addInterface(ec2, other);
    return new MotoVpc(ec2, { vpc, hosts, other, table, mainTable, foreign });
  }

  /** An instance with two interfaces, of which the second has the address. */
  async addInstance(address: string): Promise<{ readonly instanceId: string; readonly interfaceId: string }> {
    const first = await addInterface(this.#ec2, this.parts.other);
    const interfaceId = await addInterface(this.#ec2, this.parts.hosts, address);
    const NetworkInterfaces = [first, interfaceId].map((NetworkInterfaceId, DeviceIndex) => ({
      DeviceIndex,
      NetworkInterfaceId,
    }));
    const one = { MinCount: 1, MaxCount: 1 };
    // Any image; this one is among those that moto knows.
    const run = { ImageId: "ami-12c6146b", InstanceType: "t3.micro", NetworkInterfaces, ...one } as const;
    const { Instances } = await this.#ec2.send(new RunInstancesCommand(run));
    return { instanceId: Instances![0]!.InstanceId!, interfaceId };
  }

  /** All routes of a table, by default of the hosts' one. */
  async routes(table = this.parts.table): Promise<readonly CounterpartRoute[]> {
    const { RouteTables } = await this.#ec2.send(new DescribeRouteTablesCommand({ RouteTableIds: [table] }));
    return RouteTables![0]!.Routes!.map((route) => ({
      dst: route.DestinationCidrBlock ?? route.DestinationPrefixListId ?? "",
      target: route.NetworkInterfaceId ?? route.GatewayId ?? route.VpcPeeringConnectionId ?? "",
    }));
  }

  /** Whether the source/destination check of an interface is on. */
  async checks(interfaceId: string): Promise<boolean | undefined> {
    const ask = new DescribeNetworkInterfacesCommand({ NetworkInterfaceIds: [interfaceId] });
    const { NetworkInterfaces } = await this.#ec2.send(ask);
    return NetworkInterfaces![0]!.SourceDestCheck;
  }

  /** Adds routes as others make them, that must stay: some of them in the cluster network. */
  async addForeign(): Promise<void> {
    const { InternetGateway } = await this.#ec2.send(new CreateInternetGatewayCommand({}));
    const list = { PrefixListName: "office", MaxEntries: 1, AddressFamily: "IPv4" };
    const { PrefixList } = await this.#ec2.send(new CreateManagedPrefixListCommand(list));
    const peers = { VpcId: this.parts.vpc, PeerVpcId: this.parts.vpc };
    const { VpcPeeringConnection } = await this.#ec2.send(new CreateVpcPeeringConnectionCommand(peers));
    const gateway = { GatewayId: InternetGateway!.InternetGatewayId! };
    const peering = { VpcPeeringConnectionId: VpcPeeringConnection!.VpcPeeringConnectionId! };
    const machine = { NetworkInterfaceId: this.parts.foreign };
    const routes = [
      { DestinationCidrBlock: "0.0.0.0/0", ...gateway },
      { DestinationPrefixListId: PrefixList!.PrefixListId!, ...gateway },
      { DestinationCidrBlock: "10.244.200.0/24", ...peering },
      { DestinationCidrBlock: "10.244.0.0/17", ...machine },
      { DestinationCidrBlock: "172.16.0.0/24", ...machine },
    ];
    for (const route of routes) await this.#ec2.send(new CreateRouteCommand({ ...this.#table, ...route }));
  }

  /** Adds a route as flanneld on another node makes it. */
  async addNodeRoute(dst: string): Promise<void> {
    const route = { DestinationCidrBlock: dst, NetworkInterfaceId: this.parts.foreign };
    await this.#ec2.send(new CreateRouteCommand({ ...this.#table, ...route }));
  }

  /** Makes a route lead to somebody's machine. */
  async leadAstray(dst: string): Promise<void> {
    const route = { DestinationCidrBlock: dst, NetworkInterfaceId: this.parts.foreign };
    await this.#ec2.send(new ReplaceRouteCommand({ ...this.#table, ...route }));
  }

  /** Takes a route away. */
  async dropRoute(dst: string): Promise<void> {
    await this.#ec2.send(new DeleteRouteCommand({ ...this.#table, DestinationCidrBlock: dst }));
  }

  /** Gives a table a tag. */
  async tag(table: string, Key: string, Value: string): Promise<void> {
    await this.#ec2.send(new CreateTagsCommand({ Resources: [table], Tags: [{ Key, Value }] }));
  }

  get #table() {
    return { RouteTableId: this.parts.table };
  }
}

async function addInterface(ec2: EC2Client, SubnetId: string, address?: string): Promise<string> {
  const PrivateIpAddress = address === undefined ? {} : { PrivateIpAddress: address };
  const { NetworkInterface } = await ec2.send(
    new CreateNetworkInterfaceCommand({ SubnetId, ...PrivateIpAddress }),
  );
  return NetworkInterface!.NetworkInterfaceId!;
}
