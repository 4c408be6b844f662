import type Credential from "@alicloud/credentials";
import type Client from "@alicloud/openapi-core";
import { toCloudError } from "./errors.ts";
import type { Options } from "./options.ts";

/** Version of the VPC API. */
const VERSION = "2016-04-28";
/** A call gives up after this, ms. */
const CONNECT_MS = 3_000;
const ANSWER_MS = 10_000;

/** Parameters of an action; `undefined` ones are left out. */
export type Query = Readonly<Record<string, string | undefined>>;

/** Actions of the VPC API through Alibaba's generic client, which signs them. */
export class Api {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  /** Imports the client and finds credentials: of the options, of upstream's variables, else the library's chain. */
  static async open(options: Options, region: string): Promise<Api> {
    const [core, credentials] = await Promise.all([
      import("@alicloud/openapi-core"),
      import("@alicloud/credentials"),
    ]);
    const { protocol, endpoint } = endpointOf(options.Endpoint, region);
    const config = new core.$OpenApiUtil.Config({
      credential: openCredential(defaultOf(credentials), options),
      regionId: region,
      endpoint,
      protocol,
    });
    const Generic = defaultOf(core);
    return new Api(new Generic(config));
  }

  /** One action. Rejects with what the library throws. */
  async ask<T>(action: string, query: Query): Promise<T> {
    const { $OpenApiUtil } = await import("@alicloud/openapi-core");
    const params = new $OpenApiUtil.Params({
      action,
      version: VERSION,
      protocol: "HTTPS",
      pathname: "/",
      method: "POST",
      authType: "AK",
      style: "RPC",
      reqBodyType: "formData",
      bodyType: "json",
    });
    const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
    const request = new $OpenApiUtil.OpenApiRequest({ query: given });
    const runtime = { connectTimeout: CONNECT_MS, readTimeout: ANSWER_MS };
    const answer = await this.#client.callApi(params, request, runtime as Parameters<Client["callApi"]>[2]);
    return answer.body as T;
  }

  /** As {@link ask}. Rejects with CloudError. */
  async call<T>(action: string, query: Query): Promise<T> {
    try {
      return await this.ask<T>(action, query);
    } catch (error) {
      throw toCloudError(error, action);
    }
  }
}

/** What a CommonJS module exports by default; a bundler may wrap it once more. */
function defaultOf<T extends object>(module: { readonly default: T }): T {
  const inner = module.default;
  return "default" in inner ? (inner.default as T) : inner;
}

/** Host and protocol of a given endpoint, or of the region's public one. */
function endpointOf(given: string, region: string): { readonly protocol: string; readonly endpoint: string } {
  const [, protocol = "https", endpoint = `vpc.${region}.aliyuncs.com`] =
    /^(?:(https?):\/\/)?([^/]+)\/?$/.exec(given) ?? [];
  return { protocol, endpoint };
}

function openCredential(Class: typeof Credential, { AccessKeyID, AccessKeySecret }: Options): Credential {
  const isGiven = AccessKeyID !== "" && AccessKeySecret !== "";
  const accessKeyId = isGiven ? AccessKeyID : process.env.ACCESS_KEY_ID;
  const accessKeySecret = isGiven ? AccessKeySecret : process.env.ACCESS_KEY_SECRET;
  if (!accessKeyId || !accessKeySecret) return new Class();
  return new Class({ type: "access_key", accessKeyId, accessKeySecret } as ConstructorParameters<
    typeof Credential
  >[0]);
}
