import Sign from "tencentcloud-sdk-nodejs-common/tencentcloud/common/sign";
import type { Namespace } from "../../namespace.ts";
import { Faults } from "../faults.ts";
import { type Listener, listen, problems } from "../listener.ts";
import { check, VERSION } from "./description.ts";

/** Keys that the API accepts. */
export interface TencentKeys {
  readonly id: string;
  readonly secret: string;
  /** Of a role; absent for a user's own keys. */
  readonly token?: string;
}

/** A route as the API describes it. */
export interface StateRoute {
  readonly RouteId: number;
  readonly DestinationCidrBlock: string;
  readonly GatewayType: string;
  readonly GatewayId: string;
  readonly RouteType: string;
  readonly RouteDescription: string;
  readonly Enabled: boolean;
}

interface RoutesRequest {
  readonly RouteTableId: string;
  readonly Routes?: readonly (Partial<StateRoute> &
    Pick<StateRoute, "DestinationCidrBlock" | "GatewayType" | "GatewayId">)[];
}

class Refusal extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export const REGION = "ap-guangzhou";
export const VPC = "vpc-0123abcd";
export const SUBNET = "subnet-0123abcd";
export const TABLE = "rtb-0123abcd";
/** How far a client's clock may be off, seconds. */
const SKEW_S = 300;
/** Tables on a page at most; little, so that ours is not on the first. */
const PAGE = 2;

/** Tencent's VPC API on one VPC: parameters are checked against its own SDK's types, the signature by its signer. */
export class TencentApi implements AsyncDisposable {
  readonly faults = new Faults();
  readonly calls: string[] = [];
  /** Private addresses of instances. */
  readonly instances = new Set<string>();
  routes: StateRoute[] = [];
  keys: TencentKeys = { id: "AKIDtest1", secret: "s3cr3t-Hunter2", token: "token-1" };
  /** ms by which the clock of the API is ahead. */
  ahead = 0;
  #made = 0;
  readonly #listener: Listener;

  constructor(namespace?: Namespace, address = "127.0.0.1") {
    this.#listener = listen(namespace, { address }, (request) => this.#answer(request));
  }

  get url(): string {
    return this.#listener.url;
  }

  /** Adds a route. */
  add(DestinationCidrBlock: string, GatewayId: string, rest: Partial<StateRoute> = {}): void {
    this.#made += 1;
    const common = { GatewayType: "NORMAL_CVM", RouteType: "USER", RouteDescription: "", Enabled: true };
    this.routes.push({ RouteId: this.#made, DestinationCidrBlock, GatewayId, ...common, ...rest });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener[Symbol.asyncDispose]();
  }

  async #answer(request: Request): Promise<Response> {
    const header = (name: string) => request.headers.get(name) ?? "";
    const action = header("x-tc-action");
    const body = await request.text();
    if (header("x-tc-version") !== VERSION) throw new Error(`version ${header("x-tc-version")}`);
    if (request.method !== "POST") throw new Error(`method ${request.method}`);
    const parameters: unknown = JSON.parse(body);
    check(`${action}Request`, parameters);
    this.calls.push(action);
    const answer = (value: object) =>
      Response.json({ Response: { ...value, RequestId: crypto.randomUUID() } });
    const refuse = (Code: string, Message: string) => answer({ Error: { Code, Message } });
    const fault = this.faults.take(action);
    if (fault && "hang" in fault) await Bun.sleep(fault.hang);
    if (fault && "status" in fault) {
      return fault.status === 200
        ? refuse(fault.code, fault.message ?? fault.code)
        : new Response(fault.code, { status: fault.status });
    }
    if (header("x-tc-region") !== REGION) return refuse("UnsupportedRegion", header("x-tc-region"));
    const problem = this.#judge(request, parameters);
    if (problem === "id")
      return refuse(
        "AuthFailure.SecretIdNotFound",
        "The SecretId is not found, please ensure that your SecretId is correct.",
      );
    if (problem !== undefined) problems.push(new Error(`${action}: ${problem}`));
    if (Math.abs(Number(header("x-tc-timestamp")) - (Date.now() + this.ahead) / 1000) > SKEW_S) {
      return refuse(
        "AuthFailure.SignatureExpire",
        "The provided credentials could not be validated. Please ensure your signature is valid and not expired.",
      );
    }
    try {
      const value = this.#perform(action, parameters);
      check(`${action}Response`, value);
      return fault && "doneBut" in fault ? new Response("", { status: fault.doneBut }) : answer(value);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return refuse(error.code, error.message);
    }
  }

  /** What is wrong with the keys or the signature (TC3-HMAC-SHA256), by the official signer. */
  #judge(request: Request, payload: unknown): string | undefined {
    const authorization = request.headers.get("authorization") ?? "";
    const [, id, service, signed] =
      /^TC3-HMAC-SHA256 Credential=([^/]+)\/[\d-]+\/([^/]+)\/tc3_request, SignedHeaders=([^,]+), /.exec(
        authorization,
      ) ?? [];
    if (id !== this.keys.id) return "id";
    if ((request.headers.get("x-tc-token") ?? undefined) !== this.keys.token) return "id";
    if (signed !== "content-type;host") return `signed headers ${signed}`;
    const again = Sign.sign3({
      method: request.method,
      url: request.url,
      payload,
      timestamp: Number(request.headers.get("x-tc-timestamp")),
      service: service ?? "",
      secretId: this.keys.id,
      secretKey: this.keys.secret,
      multipart: false,
      boundary: "",
      headers: { "Content-Type": request.headers.get("content-type") ?? "" },
    } as never);
    return again === authorization ? undefined : "the signature does not match";
  }

  #perform(action: string, parameters: unknown): object {
    if (action === "DescribeRouteTables") {
      return this.#describe(
        parameters as { Filters?: { Name: string; Values: string[] }[]; Offset?: string; Limit?: string },
      );
    }
    const { RouteTableId, Routes = [] } = parameters as RoutesRequest;
    if (RouteTableId !== TABLE)
      throw new Refusal("ResourceNotFound", `The resource \`${RouteTableId}\` is not found.`);
    for (const route of Routes) {
      if (action !== "DeleteRoutes" && !this.instances.has(route.GatewayId))
        throw new Refusal("InvalidParameterValue", route.GatewayId);
      if (action === "CreateRoutes") this.#create(route);
      else if (action === "ReplaceRoutes") this.#replace(route);
      else if (action === "DeleteRoutes") this.#delete(route);
      else throw new Error(action);
    }
    const changed = { TotalCount: 1, RouteTableSet: [{ RouteTableId: TABLE, RouteSet: this.routes }] };
    return action === "CreateRoutes" ? changed : {};
  }

  #describe({
    Filters = [],
    Offset = "0",
    Limit = "20",
  }: {
    Filters?: { Name: string; Values: string[] }[];
    Offset?: string;
    Limit?: string;
  }): object {
    const vpc = Filters.find(({ Name }) => Name === "vpc-id")?.Values[0];
    if (vpc !== VPC) throw new Refusal("ResourceNotFound", `The resource \`${vpc}\` is not found.`);
    const other = (RouteTableId: string, Main: boolean) => ({
      RouteTableId,
      VpcId: VPC,
      Main,
      AssociationSet: [],
      RouteSet: [],
    });
    const own = {
      RouteTableId: TABLE,
      VpcId: VPC,
      Main: false,
      AssociationSet: [{ SubnetId: SUBNET, RouteTableId: TABLE }],
      RouteSet: this.routes,
    };
    const all = [other("rtb-0main", true), other("rtb-0other", false), own];
    const from = Number(Offset);
    return { TotalCount: all.length, RouteTableSet: all.slice(from, from + Math.min(PAGE, Number(Limit))) };
  }

  #create(route: Pick<StateRoute, "DestinationCidrBlock" | "GatewayId"> & Partial<StateRoute>): void {
    if (this.routes.some(({ DestinationCidrBlock }) => DestinationCidrBlock === route.DestinationCidrBlock)) {
      throw new Refusal("InvalidParameterValue.Duplicate", `${route.DestinationCidrBlock} exists`);
    }
    const {
      DestinationCidrBlock,
      GatewayId,
      GatewayType = "",
      RouteDescription = "",
      Enabled = true,
    } = route;
    this.add(DestinationCidrBlock, GatewayId, { GatewayType, RouteDescription, Enabled });
  }

  #replace(route: Partial<StateRoute>): void {
    const at = this.routes.findIndex(({ RouteId }) => RouteId === route.RouteId);
    const found = this.routes[at];
    if (!found) throw new Refusal("ResourceNotFound", `The route ${route.RouteId} is not found.`);
    this.routes[at] = { ...found, ...route };
  }

  #delete({ RouteId, DestinationCidrBlock }: Partial<StateRoute>): void {
    const at = this.routes.findIndex((route) =>
      RouteId === undefined ? route.DestinationCidrBlock === DestinationCidrBlock : route.RouteId === RouteId,
    );
    if (at < 0) throw new Refusal("ResourceNotFound", `The route ${RouteId} is not found.`);
    if (this.routes[at]?.RouteType !== "USER")
      throw new Refusal("UnsupportedOperation.SystemRoute", "system route");
    this.routes.splice(at, 1);
  }
}
