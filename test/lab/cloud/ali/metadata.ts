import type { Namespace } from "../../namespace.ts";
import type { CloudKeys } from "../api.ts";
import { type Listener, listen } from "../listener.ts";
import { REGION, VPC, VSWITCH } from "./vpc-api.ts";

const ADDRESS = "100.100.100.200";
const ROLE = "flannel-node";

/** The metadata service of one ECS instance, in security hardened mode: no answer without a token. */
export class AliMetadata implements AsyncDisposable {
  broken = false;
  /** Whether a RAM role is attached. */
  hasRole = true;
  readonly #instance: string;
  readonly #keys: () => CloudKeys;
  readonly #tokens = new Set<string>();
  readonly #listener: Listener;

  private constructor(namespace: Namespace, instance: string, keys: () => CloudKeys) {
    this.#instance = instance;
    this.#keys = keys;
    this.#listener = listen(namespace, { address: ADDRESS, port: 80 }, (request) => this.#answer(request));
  }

  /** Gives the namespace the address of the service, and serves it there. */
  static async start(namespace: Namespace, instance: string, keys: () => CloudKeys): Promise<AliMetadata> {
    await namespace.ip(`address replace ${ADDRESS}/32 dev lo`);
    return new AliMetadata(namespace, instance, keys);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener[Symbol.asyncDispose]();
  }

  #answer(request: Request): Response {
    if (this.broken) return new Response("", { status: 503 });
    const { pathname } = new URL(request.url);
    if (request.method === "PUT" && pathname === "/latest/api/token") {
      const seconds = Number(request.headers.get("x-aliyun-ecs-metadata-token-ttl-seconds"));
      if (!(seconds >= 1 && seconds <= 21_600)) return new Response("", { status: 400 });
      const token = crypto.randomUUID();
      this.#tokens.add(token);
      return new Response(token);
    }
    if (!this.#tokens.has(request.headers.get("x-aliyun-ecs-metadata-token") ?? ""))
      return new Response("", { status: 403 });
    const { id, secret, token } = this.#keys();
    const credentials = {
      AccessKeyId: id,
      AccessKeySecret: secret,
      SecurityToken: token,
      Expiration: new Date(Date.now() + 7_200_000).toISOString().replace(/\.\d+Z$/, "Z"),
      LastUpdated: new Date().toISOString(),
      Code: "Success",
    };
    const texts: Readonly<Record<string, string>> = {
      "region-id": REGION,
      "instance-id": this.#instance,
      "vpc-id": VPC,
      "vswitch-id": VSWITCH,
      ...(this.hasRole
        ? {
            "ram/security-credentials/": ROLE,
            [`ram/security-credentials/${ROLE}`]: JSON.stringify(credentials),
          }
        : {}),
    };
    const text = texts[pathname.replace("/latest/meta-data/", "")];
    return new Response(text ?? "", { status: text === undefined ? 404 : 200 });
  }
}
