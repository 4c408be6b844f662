import { createHash } from "node:crypto";
import { OpenApiUtil } from "@alicloud/openapi-core";
import { CloudApi, type CloudCall, type CloudKeys, Refusal } from "../api.ts";
import { problems } from "../listener.ts";
import { checkAnswer, checkQuery, VERSION } from "./description.ts";

/** An entry of the route table. */
export interface StateEntry {
  readonly id: string;
  readonly dst: string;
  readonly hop: string;
  readonly hopType: string;
  readonly type: "Custom" | "System" | "CEN";
  readonly description: string;
  readonly usable: boolean;
  /** Looks that still show it pending. */
  left: number;
}

export const REGION = "cn-hangzhou";
export const VPC = "vpc-bp15zckdt37pq72zvw3";
export const VSWITCH = "vsw-bp1s5fnvk4gn2tws03624";
export const TABLE = "vtb-bp145q7glnuzdvzu2pay2";
/** How far a client's clock may be off, ms. */
const SKEW_MS = 900_000;
/** Entries on a page at most. */
const PAGE = 100;
/** Looks until a new entry is in force. */
const SLOWNESS = 2;

/** Alibaba's VPC API on one VPC: parameters are checked against the names of its own SDK, and the signature by it. */
export class AliApi extends CloudApi {
  readonly instances = new Set<string>();
  entries: StateEntry[] = [];
  keys: CloudKeys = { id: "STS.test1", secret: "s3cr3t-Hunter2", token: "token-1" };
  #made = 0;

  /** Adds an entry that is in force. */
  add(dst: string, hop: string, rest: Partial<StateEntry> = {}): StateEntry {
    this.#made += 1;
    const entry: StateEntry = {
      id: `rte-${this.#made}`,
      dst,
      hop,
      hopType: "Instance",
      type: "Custom",
      description: "",
      usable: true,
      left: 0,
      ...rest,
    };
    this.entries.push(entry);
    return entry;
  }

  protected async receive(request: Request): Promise<CloudCall> {
    const url = new URL(request.url);
    const name = request.headers.get("x-acs-action") ?? "";
    if (request.headers.get("x-acs-version") !== VERSION)
      throw new Error(`version ${request.headers.get("x-acs-version")}`);
    const query = checkQuery(name, url.searchParams);
    const body = await request.text();
    const perform = () => {
      this.#admit(name, request, this.#judge(request, url, body));
      const answer = checkAnswer(name, { RequestId: crypto.randomUUID(), ...this.#perform(name, query) });
      return new Response(answer, { headers: { "content-type": "application/json" } });
    };
    return { name, perform };
  }

  protected refuse(status: number, Code: string, Message: string): Response {
    const HostId = new URL(this.url).host;
    return Response.json({ RequestId: crypto.randomUUID(), HostId, Code, Message }, { status });
  }

  /** Lets nobody in with other keys than ours, or with a clock that is off. */
  #admit(action: string, request: Request, problem: string | undefined): void {
    if (problem === "id")
      throw new Refusal(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.");
    if (problem !== undefined) problems.push(new Error(`${action}: ${problem}`));
    const date = Date.parse(request.headers.get("x-acs-date") ?? "");
    if (!(Math.abs(date - this.now) < SKEW_MS))
      throw new Refusal(400, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.");
  }

  /** What is wrong with the keys or the signature (ACS3-HMAC-SHA256), by the official signer. */
  #judge(request: Request, url: URL, body: string): string | undefined {
    const authorization = request.headers.get("authorization") ?? "";
    const id = /Credential=([^,]+),/.exec(authorization)?.[1];
    if (id !== this.keys.id) return "id";
    if ((request.headers.get("x-acs-security-token") ?? undefined) !== this.keys.token) return "id";
    const digest = createHash("sha256").update(body).digest("hex");
    if (request.headers.get("x-acs-content-sha256") !== digest) return "the body has another digest";
    const signed = /SignedHeaders=([^,]+),/.exec(authorization)?.[1]?.split(";") ?? [];
    for (const name of [
      "host",
      "x-acs-action",
      "x-acs-version",
      "x-acs-date",
      "x-acs-signature-nonce",
      "x-acs-content-sha256",
    ]) {
      if (!signed.includes(name)) return `${name} is not signed`;
    }
    const headers = Object.fromEntries(signed.map((name) => [name, request.headers.get(name) ?? ""]));
    const again = OpenApiUtil.getAuthorization(
      {
        method: request.method,
        pathname: url.pathname,
        query: Object.fromEntries(url.searchParams),
        headers,
      } as never,
      "ACS3-HMAC-SHA256",
      digest,
      this.keys.id,
      this.keys.secret,
    );
    return again === authorization ? undefined : "the signature does not match";
  }

  #perform(action: string, query: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
    if (query.RegionId !== REGION)
      throw new Refusal(400, "InvalidRegionId.NotFound", `region ${query.RegionId}`);
    switch (action) {
      case "DescribeRouteTableList":
        return this.#tables(query);
      case "DescribeRouteEntryList":
        return this.#list(query);
      case "CreateRouteEntry":
        return this.#create(query);
      case "DeleteRouteEntry":
        return this.#delete(query);
      case "ModifyRouteEntry":
        return this.#modify(query);
      default:
        throw new Error(action);
    }
  }

  #tables({ VpcId, PageNumber = "1", PageSize = "10" }: Readonly<Record<string, string>>) {
    if (VpcId !== VPC)
      throw new Refusal(400, "InvalidVpcId.NotFound", "Specified value of VpcId is not found in our record.");
    const all = [
      { RouteTableId: "vtb-0system", RouteTableType: "System", VSwitchIds: { VSwitchId: ["vsw-0other"] } },
      { RouteTableId: TABLE, RouteTableType: "Custom", VSwitchIds: { VSwitchId: [VSWITCH] } },
    ];
    const from = (Number(PageNumber) - 1) * Number(PageSize);
    return {
      TotalCount: all.length,
      PageNumber: Number(PageNumber),
      PageSize: Number(PageSize),
      RouterTableList: { RouterTableListType: all.slice(from, from + Number(PageSize)) },
    };
  }

  #list(query: Readonly<Record<string, string>>) {
    const { RouteTableId, MaxResult = "10", NextToken = "0", DestinationCidrBlock } = query;
    if (RouteTableId !== TABLE)
      throw new Refusal(400, "InvalidRouteTableId.NotFound", "Specified route table is not found.");
    const size = Number(MaxResult);
    if (size < 1 || size > PAGE) throw new Refusal(400, "InvalidParameter", `MaxResult ${size}`);
    const all = this.entries.filter(
      ({ dst }) => DestinationCidrBlock === undefined || dst === DestinationCidrBlock,
    );
    const from = Number(NextToken);
    const page = all.slice(from, from + size).map((entry) => {
      if (entry.left > 0) entry.left -= 1;
      return {
        RouteEntryId: entry.id,
        RouteTableId: TABLE,
        DestinationCidrBlock: entry.dst,
        Description: entry.description,
        Type: entry.type,
        Status: entry.left > 0 ? "Pending" : "Available",
        NextHops: {
          NextHop: [{ NextHopId: entry.hop, NextHopType: entry.hopType, Enabled: entry.usable ? 1 : 0 }],
        },
      };
    });
    return {
      RouteEntrys: { RouteEntry: page },
      ...(from + size < all.length ? { NextToken: String(from + size) } : {}),
    };
  }

  #create({
    RouteTableId,
    DestinationCidrBlock = "",
    NextHopId = "",
    NextHopType = "",
    Description = "",
  }: Readonly<Record<string, string>>) {
    if (RouteTableId !== TABLE)
      throw new Refusal(400, "InvalidRouteTableId.NotFound", "Specified route table is not found.");
    if (!this.instances.has(NextHopId)) throw new Refusal(400, "InvalidNextHopId.NotFound", NextHopId);
    if (this.entries.some(({ left }) => left > 0))
      throw new Refusal(400, "TaskConflict", "The operation is too frequent.");
    if (this.entries.some(({ dst }) => dst === DestinationCidrBlock)) {
      throw new Refusal(400, "InvalidCIDRBlock.Duplicate", "Specified CIDR block is already exists.");
    }
    const { id } = this.add(DestinationCidrBlock, NextHopId, {
      hopType: NextHopType,
      description: Description,
      left: SLOWNESS,
    });
    return { RouteEntryId: id };
  }

  #modify({ RouteEntryId, Description = "" }: Readonly<Record<string, string>>) {
    const at = this.entries.findIndex(({ id }) => id === RouteEntryId);
    const found = this.entries[at];
    if (!found)
      throw new Refusal(400, "InvalidRouteEntryId.NotFound", "Specified RouteEntryId does not exist.");
    this.entries[at] = { ...found, description: Description };
    return {};
  }

  #delete({ RouteEntryId, RouteTableId, DestinationCidrBlock }: Readonly<Record<string, string>>) {
    const found = this.entries.find(({ id, dst }) =>
      RouteEntryId === undefined
        ? dst === DestinationCidrBlock && RouteTableId === TABLE
        : id === RouteEntryId,
    );
    if (!found) throw new Refusal(400, "InvalidRouteEntry.NotFound", "Specified route entry does not exist.");
    if (found.type !== "Custom") throw new Refusal(400, "Forbidden.SystemRoute", "system route");
    this.entries = this.entries.filter((entry) => entry !== found);
    return {};
  }
}
