/**
 * The calls to EC2, through the official SDK. This module is imported when the backend is used, and names every operation
 * that it needs: the 620 others do not get into the executable.
 */
import {
  CreateRouteCommand,
  DeleteRouteCommand,
  DescribeInstancesCommand,
  DescribeRouteTablesCommand,
  EC2Client,
  type Filter,
  type Instance,
  ModifyNetworkInterfaceAttributeCommand,
  ReplaceRouteCommand,
  type RouteTable,
} from "@aws-sdk/client-ec2";
import { CloudError } from "flannel/sdk";
import { codeOf, toCloudError } from "./errors.ts";

/** A call gives up after this, ms; the SDK makes up to three tries of it with pauses between. */
const CONNECT_MS = 3_000;
const ANSWER_MS = 10_000;
const TRIES = 3;

/** A destination in a table: `DestinationCidrBlock` or `DestinationIpv6CidrBlock`. */
export interface Destination {
  readonly RouteTableId: string;
  readonly DestinationCidrBlock?: string;
  readonly DestinationIpv6CidrBlock?: string;
}

/** A destination with the network interface it leads to. */
export interface NodeRoute extends Destination {
  readonly NetworkInterfaceId: string;
}

/** EC2 in one region. All calls reject with CloudError. */
export class Ec2 {
  readonly region: string;
  readonly #client: EC2Client;
  readonly #options: { readonly abortSignal: AbortSignal };

  private constructor(client: EC2Client, region: string, signal: AbortSignal) {
    this.#client = client;
    this.region = region;
    this.#options = { abortSignal: signal };
  }

  /**
   * Credentials are found by the SDK's own chain, and so is the region where it tells one, else `region`;
   * `AWS_ENDPOINT_URL_EC2` is honoured.
   */
  static async open(region: string, signal: AbortSignal): Promise<Ec2> {
    const options = {
      maxAttempts: TRIES,
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        requestTimeout: ANSWER_MS,
        throwOnRequestTimeout: true,
      },
    };
    const client = new EC2Client(options);
    try {
      return new Ec2(client, await client.config.region(), signal);
    } catch {
      client.destroy();
      return new Ec2(new EC2Client({ ...options, region }), region, signal);
    }
  }

  /** Ends the connections. */
  close(): void {
    this.#client.destroy();
  }

  /** One instance. */
  async instance(id: string): Promise<Instance> {
    const { Reservations = [] } = await call("DescribeInstances", () =>
      this.#client.send(new DescribeInstancesCommand({ InstanceIds: [id] }), this.#options),
    );
    const instance = Reservations.flatMap(({ Instances = [] }) => Instances)[0];
    if (instance) return instance;
    throw new CloudError("missing", "ec2:DescribeInstances", `no instance ${id}`, "Check the region.");
  }

  /** Route tables by id or filters, all pages. */
  async tables(query: {
    readonly RouteTableIds?: string[];
    readonly Filters?: Filter[];
  }): Promise<readonly RouteTable[]> {
    const tables: RouteTable[] = [];
    let token: string | undefined;
    do {
      const command = new DescribeRouteTablesCommand(
        token === undefined ? query : { ...query, NextToken: token },
      );
      const page = await call("DescribeRouteTables", () => this.#client.send(command, this.#options));
      tables.push(...(page.RouteTables ?? []));
      token = page.NextToken || undefined;
    } while (token !== undefined);
    return tables;
  }

  /** Turns the source/destination check of a network interface off. */
  async stopChecking(NetworkInterfaceId: string): Promise<void> {
    const command = new ModifyNetworkInterfaceAttributeCommand({
      NetworkInterfaceId,
      SourceDestCheck: { Value: false },
    });
    await call("ModifyNetworkInterfaceAttribute", () => this.#client.send(command, this.#options));
  }

  async createRoute(route: NodeRoute): Promise<void> {
    await call("CreateRoute", () => this.#client.send(new CreateRouteCommand(route), this.#options));
  }

  async replaceRoute(route: NodeRoute): Promise<void> {
    await call("ReplaceRoute", () => this.#client.send(new ReplaceRouteCommand(route), this.#options));
  }

  /** One that is gone already is fine. */
  async deleteRoute(route: Destination): Promise<void> {
    try {
      await this.#client.send(new DeleteRouteCommand(route), this.#options);
    } catch (error) {
      if (codeOf(error) !== "InvalidRoute.NotFound") throw toCloudError(error, "DeleteRoute");
    }
  }
}

async function call<T>(action: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toCloudError(error, action);
  }
}
