import {
  type CloudChange,
  CloudError,
  type CloudHost,
  type CloudPlace,
  type CloudReading,
  type CloudRoute,
  type HostFacts,
} from "flannel/sdk";
import { Api } from "./api.ts";
import { codeOf, toCloudError } from "./errors.ts";
import { type Identity, identify } from "./metadata.ts";
import type { Options } from "./options.ts";
import { type ApiRoute, GATEWAY, MARK, toRoute } from "./route.ts";

/** Largest page of DescribeRouteTables. */
const PAGE = 100;

interface Place extends Identity {
  readonly api: Api;
  readonly self: string;
}

interface Table {
  readonly RouteTableId?: string;
  readonly Main?: boolean;
  readonly AssociationSet?: readonly { readonly SubnetId?: string }[];
  readonly RouteSet?: readonly ApiRoute[];
}

interface Page {
  readonly TotalCount?: number;
  readonly RouteTableSet?: readonly Table[];
}

/** The route table of the VPC this instance is in. */
export class Vpc {
  readonly #options: Options;
  #place: Place | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Metadata → region, VPC and subnet; next hops are named by the private address of an instance. */
  async discover({ signal }: CloudHost, { external }: HostFacts): Promise<CloudPlace> {
    this.#place = undefined;
    const identity = await identify(signal);
    const self = external.ipv4;
    if (self === undefined)
      throw new CloudError(
        "missing",
        "tencent-vpc",
        `${external.name} has no IPv4 address`,
        "Choose another interface: --iface.",
      );
    this.#place = { ...identity, api: await Api.open(this.#options, identity.region, signal), self };
    return { summary: `${identity.region} ${identity.vpc} ${identity.instance} ${self}`, self };
  }

  /** All pages of the VPC's tables, of which one is ours: that of the subnet, else the main one, else the first. */
  async read(): Promise<CloudReading> {
    const { vpc, subnet } = this.#here();
    const tables = await this.#tables();
    const own =
      tables.find(({ AssociationSet }) => AssociationSet?.some(({ SubnetId }) => SubnetId === subnet)) ??
      tables.find(({ Main }) => Main) ??
      tables[0];
    if (own?.RouteTableId === undefined) {
      throw new CloudError(
        "missing",
        "vpc:DescribeRouteTables",
        `${vpc} has no route table`,
        "See VPC console → Route Tables.",
      );
    }
    return {
      tables: [
        { id: own.RouteTableId, routes: (own.RouteSet ?? []).map(toRoute), limit: this.#options.RouteLimit },
      ],
    };
  }

  /** A route that is switched off is removed and made anew, as upstream does; one that leads astray is replaced. */
  async apply(change: CloudChange): Promise<void> {
    if (change.action === "set") return;
    const { api } = this.#here();
    const { table: RouteTableId, dst } = change;
    if (change.action === "create") {
      await api.call("CreateRoutes", { RouteTableId, Routes: [routeTo(dst, change.target)] });
    } else if (change.action === "mark") {
      await this.#replace(RouteTableId, change.former, change.former.target);
    } else if (change.action === "replace" && change.former.state !== "disabled") {
      await this.#replace(RouteTableId, change.former, change.target);
    } else {
      await this.#remove(RouteTableId, change.former);
      if (change.action === "replace")
        await api.call("CreateRoutes", { RouteTableId, Routes: [routeTo(dst, change.target)] });
    }
  }

  /** Lets a route lead to `target`, with our description, without a moment in which there is none. */
  async #replace(RouteTableId: string, { dst, id }: CloudRoute, target: string): Promise<void> {
    if (id === undefined)
      throw new CloudError("refused", "vpc:ReplaceRoutes", `${dst} in ${RouteTableId} has no RouteId`, "");
    const route = { RouteId: Number(id), ...routeTo(dst, target) };
    await this.#here().api.call("ReplaceRoutes", { RouteTableId, Routes: [route] });
  }

  /** One that is gone already is fine. */
  async #remove(RouteTableId: string, { dst, target, id }: CloudRoute): Promise<void> {
    const { api } = this.#here();
    const route = { ...routeTo(dst, target), ...(id === undefined ? {} : { RouteId: Number(id) }) };
    try {
      await api.ask("DeleteRoutes", { RouteTableId, Routes: [route] });
    } catch (error) {
      if (!/^ResourceNotFound/.test(codeOf(error))) throw toCloudError(error, "DeleteRoutes");
    }
  }

  async #tables(): Promise<readonly Table[]> {
    const { api, vpc } = this.#here();
    const tables: Table[] = [];
    for (;;) {
      const page = await api.call<Page>("DescribeRouteTables", {
        Filters: [{ Name: "vpc-id", Values: [vpc] }],
        Offset: String(tables.length),
        Limit: String(PAGE),
      });
      const found = page.RouteTableSet ?? [];
      tables.push(...found);
      if (found.length === 0 || tables.length >= (page.TotalCount ?? 0)) return tables;
    }
  }

  #here(): Place {
    if (!this.#place) throw new CloudError("refused", "tencent-vpc", "nothing is discovered yet", "");
    return this.#place;
  }
}

function routeTo(DestinationCidrBlock: string, GatewayId: string) {
  return { DestinationCidrBlock, GatewayType: GATEWAY, GatewayId, RouteDescription: MARK, Enabled: true };
}
