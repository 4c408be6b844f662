import type { Namespace } from "../../namespace.ts";
import { type Listener, listen } from "../listener.ts";
import type { AwsKeys } from "./signature.ts";

export interface InstanceMetadata {
  readonly instanceId: string;
  readonly region: string;
  /** Credentials of the instance's role, asked at each request. */
  readonly keys: () => AwsKeys;
}

const ADDRESS = "169.254.169.254";
const ROLE = "flannel-node";

/** The instance metadata service of one host: version 2 only, unless told otherwise. */
export class Imds implements AsyncDisposable {
  /** Paths asked for with a valid token (or without one, where version 1 is allowed). */
  readonly asked: string[] = [];
  /** Whether version 1 is served, and version 2 is not. */
  old = false;
  /** Whether no session token can be had, and version 1 is served: a container beyond the hop limit. */
  far = false;
  /** Whether nothing is answered properly. */
  broken = false;
  readonly #instance: InstanceMetadata;
  readonly #listener: Listener;
  readonly #tokens = new Set<string>();

  private constructor(instance: InstanceMetadata, namespace?: Namespace) {
    this.#instance = instance;
    const where = namespace ? { address: ADDRESS, port: 80 } : { address: "127.0.0.1" };
    this.#listener = listen(namespace, where, (request) => this.#answer(request));
  }

  /** Serves it on a loopback port of this process; {@link url} tells where. */
  static local(instance: InstanceMetadata): Imds {
    return new Imds(instance);
  }

  get url(): string {
    return this.#listener.url;
  }

  /** Gives the namespace the address of the service, and serves it there. */
  static async start(namespace: Namespace, instance: InstanceMetadata): Promise<Imds> {
    await namespace.ip(`address replace ${ADDRESS}/32 dev lo`);
    return new Imds(instance, namespace);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener[Symbol.asyncDispose]();
  }

  #answer(request: Request): Response {
    const { pathname } = new URL(request.url);
    if (this.broken || (this.far && request.method === "PUT")) return new Response("", { status: 503 });
    if (request.method === "PUT") return this.#token(request, pathname);
    if (request.method !== "GET") return new Response("", { status: 405 });
    const token = request.headers.get("x-aws-ec2-metadata-token");
    if (this.old || this.far ? token !== null : token === null || !this.#tokens.has(token))
      return new Response("", { status: 401 });
    this.asked.push(pathname);
    const { instanceId, region, keys } = this.#instance;
    if (pathname === "/latest/dynamic/instance-identity/document") {
      return Response.json({
        version: "2017-09-30",
        accountId: "123456789012",
        instanceId,
        region,
        availabilityZone: `${region}a`,
      });
    }
    if (pathname === "/latest/meta-data/iam/security-credentials/") return new Response(ROLE);
    if (pathname === `/latest/meta-data/iam/security-credentials/${ROLE}`) {
      const { accessKeyId, secretAccessKey, sessionToken } = keys();
      return Response.json({
        Code: "Success",
        Type: "AWS-HMAC",
        LastUpdated: new Date().toISOString(),
        Expiration: new Date(Date.now() + 3_600_000).toISOString(),
        AccessKeyId: accessKeyId,
        SecretAccessKey: secretAccessKey,
        Token: sessionToken,
      });
    }
    return new Response("", { status: 404 });
  }

  #token(request: Request, pathname: string): Response {
    const seconds = Number(request.headers.get("x-aws-ec2-metadata-token-ttl-seconds"));
    if (this.old || pathname !== "/latest/api/token") return new Response("", { status: 404 });
    if (!(seconds >= 1 && seconds <= 21_600)) return new Response("", { status: 400 });
    const token = crypto.randomUUID();
    this.#tokens.add(token);
    return new Response(token);
  }
}
