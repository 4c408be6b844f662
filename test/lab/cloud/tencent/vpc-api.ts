import Sign from "tencentcloud-sdk-nodejs-common/tencentcloud/common/sign";
import { CloudApi, type CloudCall, type CloudKeys, Refusal } from "../api.ts";
import { problems } from "../listener.ts";
import { check, VERSION } from "./description.ts";

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

export const REGION = "ap-guangzhou";
export const VPC = "vpc-0123abcd";
export const SUBNET = "subnet-0123abcd";
export const TABLE = "rtb-0123abcd";
/** How far a client's clock may be off, seconds. */
const SKEW_S = 300;
/** Tables on a page at most; little, so that ours is not on the first. */
const PAGE = 2;
/** Status of all answers of the API. */
const OK = 200;

/** Tencent's VPC API on one VPC: parameters are checked against its own SDK's types, the signature by its signer. */
export class TencentApi extends CloudApi {
  /** Private addresses of instances. */
  readonly instances = new Set<string>();
  routes: StateRoute[] = [];
  keys: CloudKeys = { id: "AKIDtest1", secret: "s3cr3t-Hunter2", token: "token-1" };
  #made = 0;

  /** Adds a route. */
  add(DestinationCidrBlock: string, GatewayId: string, rest: Partial<StateRoute> = {}): void {
    this.#made += 1;
    const common = { GatewayType: "NORMAL_CVM", RouteType: "USER", RouteDescription: "", Enabled: true };
    this.routes.push({ RouteId: this.#made, DestinationCidrBlock, GatewayId, ...common, ...rest });
  }

  protected async receive(request: Request): Promise<CloudCall> {
    const header = (name: string) => request.headers.get(name) ?? "";
    const name = header("x-tc-action");
    if (header("x-tc-version") !== VERSION) throw new Error(`version ${header("x-tc-version")}`);
    if (request.method !== "POST") throw new Error(`method ${request.method}`);
    const parameters: unknown = JSON.parse(await request.text());
    check(`${name}Request`, parameters);
    const perform = () => {
      if (header("x-tc-region") !== REGION) throw new Refusal(OK, "UnsupportedRegion", header("x-tc-region"));
      this.#admit(name, request, this.#judge(request, parameters));
      const value = this.#perform(name, parameters);
      check(`${name}Response`, value);
      return answer(value);
    };
    return { name, perform };
  }

  /** What the API refuses has the status of what it does; other ones come from what stands before it. */
  protected refuse(status: number, Code: string, Message: string): Response {
    return status === OK ? answer({ Error: { Code, Message } }) : new Response(Code, { status });
  }

  /** Lets nobody in with other keys than ours, or with a clock that is off. */
  #admit(action: string, request: Request, problem: string | undefined): void {
    if (problem === "id")
      throw new Refusal(
        OK,
        "AuthFailure.SecretIdNotFound",
        "The SecretId is not found, please ensure that your SecretId is correct.",
      );
    if (problem !== undefined) problems.push(new Error(`${action}: ${problem}`));
    const timestamp = Number(request.headers.get("x-tc-timestamp"));
    if (Math.abs(timestamp - this.now / 1000) > SKEW_S) {
      throw new Refusal(
        OK,
        "AuthFailure.SignatureExpire",
        "The provided credentials could not be validated. Please ensure your signature is valid and not expired.",
      );
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
      throw new Refusal(OK, "ResourceNotFound", `The resource \`${RouteTableId}\` is not found.`);
    for (const route of Routes) {
      if (action !== "DeleteRoutes" && !this.instances.has(route.GatewayId))
        throw new Refusal(OK, "InvalidParameterValue", route.GatewayId);
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
    if (vpc !== VPC) throw new Refusal(OK, "ResourceNotFound", `The resource \`${vpc}\` is not found.`);
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
      throw new Refusal(OK, "InvalidParameterValue.Duplicate", `${route.DestinationCidrBlock} exists`);
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
    if (!found) throw new Refusal(OK, "ResourceNotFound", `The route ${route.RouteId} is not found.`);
    this.routes[at] = { ...found, ...route };
  }

  #delete({ RouteId, DestinationCidrBlock }: Partial<StateRoute>): void {
    const at = this.routes.findIndex((route) =>
      RouteId === undefined ? route.DestinationCidrBlock === DestinationCidrBlock : route.RouteId === RouteId,
    );
    if (at < 0) throw new Refusal(OK, "ResourceNotFound", `The route ${RouteId} is not found.`);
    if (this.routes[at]?.RouteType !== "USER")
      throw new Refusal(OK, "UnsupportedOperation.SystemRoute", "system route");
    this.routes.splice(at, 1);
  }
}

function answer(value: object): Response {
  return Response.json({ Response: { ...value, RequestId: crypto.randomUUID() } });
}
