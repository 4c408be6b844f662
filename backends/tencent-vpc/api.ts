import type { CommonClient, CvmRoleCredential } from "tencentcloud-sdk-nodejs-common";
import { toCloudError } from "./errors.ts";
import type { Options } from "./options.ts";

/** Version of the VPC API. */
const VERSION = "2017-03-12";
const HOST = "vpc.tencentcloudapi.com";
/** A call gives up after this, seconds. */
const TIMEOUT_S = 15;

/** Keys, or the role of the instance, which fetches them. */
type Credential =
  | CvmRoleCredential
  | { readonly secretId: string; readonly secretKey: string; readonly token?: string };

/** Actions of the VPC API through Tencent's generic client, which signs them (TC3-HMAC-SHA256). */
export class Api {
  readonly #client: CommonClient;
  readonly #signal: AbortSignal;

  private constructor(client: CommonClient, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  /** Imports the client and finds credentials. */
  static async open(options: Options, region: string, signal: AbortSignal): Promise<Api> {
    const { CommonClient, CvmRoleCredential } = await import("tencentcloud-sdk-nodejs-common");
    const { protocol, endpoint } = endpointOf(options.Endpoint);
    const client = new CommonClient(endpoint, VERSION, {
      credential: findKeys(options) ?? new CvmRoleCredential(),
      region,
      profile: { httpProfile: { protocol, endpoint, reqTimeout: TIMEOUT_S } },
    } as ConstructorParameters<typeof CommonClient>[2]);
    return new Api(client, signal);
  }

  /** One action. Rejects with what the library throws. */
  async ask<T>(action: string, parameters: object): Promise<T> {
    return (await this.#client.request(action, parameters, { signal: this.#signal })) as T;
  }

  /** As {@link ask}. Rejects with CloudError. */
  async call<T>(action: string, parameters: object): Promise<T> {
    try {
      return await this.ask<T>(action, parameters);
    } catch (error) {
      throw toCloudError(error, action);
    }
  }
}

/** Of the options; of upstream's variables; of Tencent's own. */
function findKeys({ AccessKeyID, AccessKeySecret }: Options): Credential | undefined {
  const { ACCESS_KEY_ID, ACCESS_KEY_SECRET, TENCENTCLOUD_SECRET_ID, TENCENTCLOUD_SECRET_KEY } = process.env;
  const token = process.env.TENCENTCLOUD_SESSION_TOKEN;
  if (AccessKeyID !== "" && AccessKeySecret !== "")
    return { secretId: AccessKeyID, secretKey: AccessKeySecret };
  if (ACCESS_KEY_ID && ACCESS_KEY_SECRET) return { secretId: ACCESS_KEY_ID, secretKey: ACCESS_KEY_SECRET };
  if (!TENCENTCLOUD_SECRET_ID || !TENCENTCLOUD_SECRET_KEY) return undefined;
  const keys = { secretId: TENCENTCLOUD_SECRET_ID, secretKey: TENCENTCLOUD_SECRET_KEY };
  return token ? { ...keys, token } : keys;
}

function endpointOf(given: string): { readonly protocol: string; readonly endpoint: string } {
  const [, protocol = "https", endpoint = HOST] = /^(?:(https?):\/\/)?([^/]+)\/?$/.exec(given) ?? [];
  return { protocol: `${protocol}://`, endpoint };
}
